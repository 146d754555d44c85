#include "runtime/runs/loop_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace ars::runs {

namespace {

bool watches_others(std::string_view tool) {
    return tool.starts_with("subagent_") || tool.starts_with("execute_");
}

struct Turn {
    const store::MessageRecord* message = nullptr;
    std::map<std::string_view, std::string_view> results;  // of call ids
};

bool is_same(const Turn& one, const Turn& other) {
    const auto& calls = one.message->tool_calls;
    return std::equal(
        calls.begin(),
        calls.end(),
        other.message->tool_calls.begin(),
        other.message->tool_calls.end(),
        [&](const store::ToolCall& a, const store::ToolCall& b) {
            const auto result_a = one.results.find(a.id);
            const auto result_b = other.results.find(b.id);
            return a.name == b.name && a.arguments == b.arguments && !watches_others(a.name) &&
                   result_a != one.results.end() && result_b != other.results.end() &&
                   result_a->second == result_b->second;
        }
    );
}

// The turn before `end`, which is moved to its beginning; one without a message when there is none.
Turn turn_before(
    std::vector<store::MessageRecord>::const_reverse_iterator& at,
    std::vector<store::MessageRecord>::const_reverse_iterator end
) {
    Turn turn;
    for (; at != end && at->role == store::Role::tool; ++at) {
        turn.results.emplace(at->tool_call_id, at->content);
    }
    if (at != end && at->role == store::Role::assistant && !turn.results.empty()) {
        turn.message = &*at++;
    }
    return turn;
}

}  // namespace

std::uint32_t repeated_turns(const std::vector<store::MessageRecord>& history) {
    auto at = history.rbegin();
    const Turn last = turn_before(at, history.rend());
    if (last.message == nullptr) {
        return 0;
    }
    std::uint32_t turns = 1;
    for (;;) {
        const Turn earlier = turn_before(at, history.rend());
        if (earlier.message == nullptr || !is_same(last, earlier)) {
            return turns;
        }
        ++turns;
    }
}

std::string repetition_notice(const std::vector<store::MessageRecord>& history) {
    const std::uint32_t turns = repeated_turns(history);
    if (turns < kRepeatsNoticed) {
        return {};
    }
    return fmt::format(
        "\n\n[You have made exactly this call {} times in a row, with the same result each time. "
        "Do something else, or answer with what you know. The run ends after {}.]",
        turns,
        kRepeatsLimit
    );
}

}  // namespace ars::runs
