// The names that stored enumerations and event ids have outside.
#include "runtime/store/records.hpp"

#include <charconv>
#include <string_view>

namespace ars::store {

const char* to_string(RunStatus status) {
    switch (status) {
        case RunStatus::pending:
            return "pending";
        case RunStatus::running:
            return "running";
        case RunStatus::interrupted:
            return "interrupted";
        case RunStatus::cancel_requested:
            return "cancel_requested";
        case RunStatus::completed:
            return "completed";
        case RunStatus::failed:
            return "failed";
        case RunStatus::cancelled:
            return "cancelled";
    }
    return "unknown";
}

const char* to_string(RunType type) {
    switch (type) {
        case RunType::chat:
            return "chat";
        case RunType::resume:
            return "resume";
        case RunType::subagent:
            return "subagent";
    }
    return "unknown";
}

const char* to_string(QueuePolicy policy) {
    switch (policy) {
        case QueuePolicy::enqueue:
            return "enqueue";
        case QueuePolicy::reject:
            return "reject";
        case QueuePolicy::steer:
            return "steer";
    }
    return "unknown";
}

const char* to_string(RequestStatus status) {
    switch (status) {
        case RequestStatus::queued:
            return "queued";
        case RequestStatus::dispatched:
            return "dispatched";
        case RequestStatus::cancelled:
            return "cancelled";
        case RequestStatus::rejected:
            return "rejected";
    }
    return "unknown";
}

const char* to_string(ThreadStatus status) {
    switch (status) {
        case ThreadStatus::active:
            return "active";
        case ThreadStatus::archived:
            return "archived";
        case ThreadStatus::deleted:
            return "deleted";
        case ThreadStatus::subagent:
            return "subagent";
    }
    return "unknown";
}

const char* to_string(Role role) {
    switch (role) {
        case Role::user:
            return "user";
        case Role::assistant:
            return "assistant";
        case Role::tool:
            return "tool";
    }
    return "unknown";
}

std::string to_string(EventId id) { return std::to_string(id.ms) + "-" + std::to_string(id.n); }

namespace {

// Digits only, all of them: from_chars alone would leave a tail unread.
template <class Number>
bool parse_number(std::string_view text, Number& out) {
    if (text.empty()) {
        return false;
    }
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, out);
    return error == std::errc() && stop == end;
}

}  // namespace

bool parse_event_id(const std::string& text, EventId& out) {
    const std::size_t dash = text.find('-');
    if (dash == std::string::npos) {
        return false;
    }
    const std::string_view view = text;
    EventId parsed;
    if (!parse_number(view.substr(0, dash), parsed.ms) ||
        !parse_number(view.substr(dash + 1), parsed.n)) {
        return false;
    }
    out = parsed;
    return true;
}

}  // namespace ars::store
