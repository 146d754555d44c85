// The server that dies at a chosen commit: ARS_KILL_AT="before 12" or "after 12" is SIGKILL at the
// twelfth durable write since the start. While the file that ARS_FAIL_WHILE names is there, every
// commit (from number ARS_FAIL_FROM on) fails as on a disk that refuses to sync, or with
// ARS_FAIL_WITH="map full" as in a full map. Only the program of the fault tests is linked with
// this.
#include "runtime/store/commit_hook.hpp"
#include "runtime/store/lmdb_env.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include <signal.h>
#include <unistd.h>

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
    static const char* const fail_while = std::getenv("ARS_FAIL_WHILE");
    static const char* const fail_from = std::getenv("ARS_FAIL_FROM");
    if (before && number >= (fail_from != nullptr ? std::strtoul(fail_from, nullptr, 10) : 0) &&
        fail_while != nullptr && ::access(fail_while, F_OK) == 0) {
        const char* const with = std::getenv("ARS_FAIL_WITH");
        const bool map_full = with != nullptr && std::string_view(with) == "map full";
        throw Failure(map_full ? MDB_MAP_FULL : EIO, "commit: as the test asked");
    }
}

}  // namespace ars::store
