#include "sandbox/outcome.hpp"

#include "base/text.hpp"
#include "sandbox/violation.hpp"

#include <boost/json/array.hpp>

#include <cerrno>

namespace ars::sandbox {

namespace {

constexpr int kTimedOutCode = 124;
constexpr int kSetupFailedCode = 125;
constexpr int kNotExecutableCode = 126;
constexpr int kNotFoundCode = 127;
constexpr int kSignalBase = 128;
constexpr int kInterrupt = 2;
constexpr int kKill = 9;
constexpr std::uint64_t kMiB = 1024 * 1024;

}  // namespace

const char* to_string(OutcomeStatus status) {
    switch (status) {
        case OutcomeStatus::exited:
            return "exited";
        case OutcomeStatus::signalled:
            return "signalled";
        case OutcomeStatus::timed_out:
            return "timed_out";
        case OutcomeStatus::cancelled:
            return "cancelled";
        case OutcomeStatus::oom:
            return "oom";
        case OutcomeStatus::violation:
            return "violation";
        case OutcomeStatus::setup_failed:
            break;
    }
    return "setup_failed";
}

void Outcome::name_violation() {
    const bool failed =
        (status == OutcomeStatus::exited && exit_code != 0) || status == OutcomeStatus::signalled;
    if (!failed || denied.empty()) {
        return;
    }
    std::string names;
    for (const std::string& call : denied) {
        names += (names.empty() ? "" : ", ") + call;
    }
    status = OutcomeStatus::violation;
    const std::string advice = denied_call_advice(denied);
    detail = names + " denied by the sandbox (EPERM)" + (advice.empty() ? "" : ": " + advice) +
             (detail.empty() ? "" : "; " + detail);
}

void Outcome::add_detail(const std::string& text) {
    detail += (detail.empty() || text.empty() ? "" : "; ") + text;
}

std::string Outcome::memory_text() const {
    const auto mib = [](std::uint64_t bytes) {
        return std::to_string((bytes + kMiB / 2) / kMiB) + " MiB";
    };
    if (scope_bytes > peak_bytes + kMiB) {
        return "the sandbox used " + mib(scope_bytes) + " of " + mib(limit_bytes) + ", " +
               mib(peak_bytes) + " of it this command";
    }
    return "used " + mib(peak_bytes) + " of " + mib(limit_bytes);
}

int Outcome::shell_code() const {
    switch (status) {
        case OutcomeStatus::exited:
            return exit_code;
        case OutcomeStatus::violation:
            return signal != 0 ? kSignalBase + signal : exit_code;
        case OutcomeStatus::signalled:
            return kSignalBase + signal;
        case OutcomeStatus::timed_out:
            return kTimedOutCode;
        case OutcomeStatus::cancelled:
            return kSignalBase + kInterrupt;
        case OutcomeStatus::oom:
            return kSignalBase + kKill;
        case OutcomeStatus::setup_failed:
            break;
    }
    if (setup_errno == ENOENT || setup_errno == ENOTDIR) {
        return kNotFoundCode;
    }
    if (setup_errno == EACCES || setup_errno == EPERM || setup_errno == ENOEXEC) {
        return kNotExecutableCode;
    }
    return kSetupFailedCode;
}

boost::json::object Outcome::to_json() const {
    boost::json::object json;
    const bool violation = status == OutcomeStatus::violation;
    json["status"] = to_string(status);
    if (!id.empty()) {
        json["id"] = id;
    }
    if (status == OutcomeStatus::exited || (violation && signal == 0)) {
        json["exit_code"] = exit_code;
    }
    if (status == OutcomeStatus::signalled || (violation && signal != 0)) {
        json["signal"] = signal;
    }
    if (raw) {
        json["stdout_base64"] = base::to_base64(raw_out);
        json["stderr_base64"] = base::to_base64(raw_err);
    } else {
        json["stdout"] = out;
        json["stderr"] = err;
    }
    if (lossy && !raw) {
        json["lossy"] = true;
    }
    if (omitted_bytes != 0) {
        json["omitted_bytes"] = omitted_bytes;
    }
    if (!log_path.empty()) {
        json["log_path"] = log_path;
    }
    json["duration_ms"] = duration.count();
    if (!background.empty()) {
        boost::json::array list;
        for (const BackgroundProcess& process : background) {
            list.push_back(boost::json::object{{"pid", process.pid}, {"command", process.command}});
        }
        json["background"] = std::move(list);
    }
    if (status == OutcomeStatus::oom) {
        json["peak_bytes"] = peak_bytes;
        json["limit_bytes"] = limit_bytes;
    }
    if (!denied.empty()) {
        json["denied"] = boost::json::array(denied.begin(), denied.end());
    }
    if (!denied_hosts.empty()) {
        json["denied_hosts"] = boost::json::array(denied_hosts.begin(), denied_hosts.end());
    }
    if (!detail.empty()) {
        json["detail"] = detail;
    }
    return json;
}

}  // namespace ars::sandbox
