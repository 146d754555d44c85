// The server that dies at a chosen commit: ARS_KILL_AT="before 12" or "after 12" is SIGKILL at the
// twelfth durable write since the start. Only the program of the failpoint test is linked with
// this.
#include "runtime/store/commit_hook.hpp"

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string>

#include <signal.h>

namespace ars::store {

namespace {

struct KillAt {
    std::string moment;
    unsigned long number = 0;  // 0 = never
    KillAt() {
        if (const char* const text = std::getenv("ARS_KILL_AT")) {
            std::istringstream(text) >> moment >> number;
        }
    }
};

}  // namespace

void at_commit(CommitMoment moment) {
    static const KillAt kill_at;
    static std::atomic<unsigned long> commits{0};
    const bool before = moment == CommitMoment::before;
    const unsigned long number = before ? ++commits : commits.load();
    if (number == kill_at.number && kill_at.moment == (before ? "before" : "after")) {
        ::raise(SIGKILL);
    }
}

}  // namespace ars::store
