#include "runtime/tools/command_report.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace ars::tools {

namespace {

using sandbox::Outcome;
using sandbox::OutcomeStatus;

std::string mark_of(const sandbox::Scope& scope) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15U;  // neighbours get unlike marks
    return fmt::format("{:04x}", scope.generation() * kSpread >> 48U);
}

std::string background(const Outcome& outcome) {
    if (outcome.background.empty()) {
        return {};
    }
    std::string out = fmt::format(
        "[{} background process{} left running:",
        outcome.background.size(),
        outcome.background.size() == 1 ? "" : "es"
    );
    for (const sandbox::BackgroundProcess& process : outcome.background) {
        out += fmt::format(" {} ({})", process.pid, base::utf8_head(process.command, 120));
        out += &process == &outcome.background.back() ? "]\n" : ",";
    }
    return out;
}

// What a failed command was denied, with advice; of one that succeeded only the names.
std::string denied(const Outcome& outcome) {
    if (outcome.status == OutcomeStatus::violation) {
        return fmt::format("[{}]\n", outcome.detail);
    }
    std::string names;
    for (const std::string& call : outcome.denied) {
        names += (names.empty() ? "" : ", ") + call;
    }
    return names.empty() ? names : fmt::format("[denied by the sandbox (EPERM): {}]\n", names);
}

std::string detail_of(const Outcome& outcome) {
    const bool shown =
        outcome.status == OutcomeStatus::exited || outcome.status == OutcomeStatus::signalled ||
        outcome.status == OutcomeStatus::timed_out || outcome.status == OutcomeStatus::cancelled;
    return shown && !outcome.detail.empty() ? ", " + outcome.detail : std::string();
}

std::string last_line(const Outcome& outcome, std::int64_t timeout) {
    switch (outcome.status) {
        case OutcomeStatus::exited:
            return fmt::format("[exit code {}{}]", outcome.exit_code, detail_of(outcome));
        case OutcomeStatus::violation:
            return fmt::format("[exit code {}]", outcome.shell_code());
        case OutcomeStatus::signalled:
            return fmt::format(
                "[killed by signal {}, exit code {}{}]",
                outcome.signal,
                outcome.shell_code(),
                detail_of(outcome)
            );
        case OutcomeStatus::timed_out:
            return timeout == 0
                       ? fmt::format("[timed out; its processes were killed{}]", detail_of(outcome))
                       : fmt::format(
                             "[timed out after {} s; its processes were killed{}]",
                             timeout,
                             detail_of(outcome)
                         );
        case OutcomeStatus::cancelled:
            return fmt::format("[cancelled; its processes were killed{}]", detail_of(outcome));
        case OutcomeStatus::oom:
            return fmt::format("[killed: out of memory: {}]", outcome.memory_text());
        case OutcomeStatus::setup_failed:
            break;
    }
    return fmt::format("[could not be started: {}]", outcome.detail);
}

}  // namespace

std::string command_id(const sandbox::Scope& scope, const sandbox::Process& process) {
    return fmt::format("{}-{}", process.id(), mark_of(scope));
}

base::Result<std::shared_ptr<sandbox::Process>> find_command(
    const sandbox::Scope& scope, const std::string& id
) {
    const std::size_t dash = id.find('-');
    if (dash == std::string::npos || id.substr(dash + 1) != mark_of(scope)) {
        return base::fail(
            base::ErrorKind::not_found,
            "command_gone",
            fmt::format(
                "command {} is gone with the restart or release of its sandbox; its processes were "
                "killed and /tmp was reset",
                id
            )
        );
    }
    auto process = scope.find(id.substr(0, dash));
    if (!process) {
        return base::fail(
            base::ErrorKind::not_found,
            "not_found",
            fmt::format(
                "there is no command {}, or it ended long ago; execute_output without an id lists "
                "those there are",
                id
            )
        );
    }
    return process;
}

std::string ending(const Outcome& outcome, std::int64_t timeout) {
    return background(outcome) + denied(outcome) + last_line(outcome, timeout);
}

std::string going_on(const std::string& id, std::uint64_t next_offset) {
    return fmt::format(
        "[still running as command {0}; read on: execute_output {{\"id\": \"{0}\", \"offset\": "
        "{1}}}; end it: execute_kill]",
        id,
        next_offset
    );
}

boost::json::object facts_of(const Outcome& outcome) {
    boost::json::object facts{
        {"status", sandbox::to_string(outcome.status)}, {"duration_ms", outcome.duration.count()}
    };
    if (outcome.status == OutcomeStatus::exited || outcome.status == OutcomeStatus::violation) {
        facts["exit_code"] = outcome.shell_code();
    }
    if (outcome.status == OutcomeStatus::signalled) {
        facts["signal"] = outcome.signal;
    }
    if (!outcome.background.empty()) {
        facts["background"] = outcome.background.size();
    }
    if (!outcome.denied.empty()) {
        facts["denied"] = boost::json::array(outcome.denied.begin(), outcome.denied.end());
    }
    return facts;
}

bool is_error(const Outcome& outcome) {
    return outcome.status != OutcomeStatus::exited && outcome.status != OutcomeStatus::violation;
}

std::string whole_lines(std::string text) {
    if (!text.empty() && !text.ends_with('\n')) {
        text += '\n';
    }
    return text;
}

}  // namespace ars::tools
