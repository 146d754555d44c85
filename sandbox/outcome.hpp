// How a command ended: one value whose kinds can't be confused.
#pragma once

#include "base/deadline.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ars::sandbox {

enum class OutcomeStatus : std::uint8_t {
    exited,        // by itself, `exit_code`
    signalled,     // `signal`, not sent by us
    timed_out,     // its time limit
    cancelled,     // the caller went away
    oom,           // `detail` names the evidence: "cgroup" or "watch"
    violation,     // failed, and the sandbox denied it a call: see name_violation()
    setup_failed,  // never started: `detail` names step and errno
};
[[nodiscard]] const char* to_string(OutcomeStatus status);

struct BackgroundProcess {
    int pid = 0;  // inside the scope
    std::string command;
};

struct Outcome {
    OutcomeStatus status = OutcomeStatus::setup_failed;
    int exit_code = 0;
    int signal = 0;
    int setup_errno = 0;  // setup_failed: ENOENT and EACCES of the exec become 127 and 126
    std::string detail;
    std::string out;     // captured stdout, valid UTF-8, head and tail
    std::string err;     // captured stderr
    std::string merged;  // both in the order of arrival, head and tail
    bool lossy = false;  // invalid bytes were replaced
    std::uint64_t omitted_bytes = 0;
    std::string log_path;  // guest path of the full text; empty when all of it is above
    base::milliseconds duration{0};
    std::vector<BackgroundProcess> background;
    // oom only, in bytes: what the command used, what the whole scope used, what it may use.
    std::uint64_t peak_bytes = 0;
    std::uint64_t scope_bytes = 0;
    std::uint64_t limit_bytes = 0;
    std::vector<std::string> denied;        // system calls the sandbox refused it, each named once
    std::vector<std::string> denied_hosts;  // that an allow-list refused while it ran
    std::string id;       // of a command that can be asked for again: Scope::find()
    bool raw = false;     // show raw_out and raw_err instead of out and err
    std::string raw_out;  // head and tail as they came, with nothing between them
    std::string raw_err;

    // A command that failed (exit code or signal) after the sandbox had denied it a call becomes a
    // `violation` that names the calls and keeps its code or signal. Others stay what they are.
    void name_violation();

    // Appends to `detail`; nothing when empty.
    void add_detail(const std::string& text);
    // oom: "used 300 MiB of 256 MiB".
    [[nodiscard]] std::string memory_text() const;
    // The code a shell would give: exit code, 124 timed out, 128+n, 126/127, 125 set-up failed.
    [[nodiscard]] int shell_code() const;
    [[nodiscard]] boost::json::object to_json() const;  // ARCHITECTURE.md, "An outcome as JSON"
};

}  // namespace ars::sandbox
