#include "runtime/runs/run_view.hpp"

#include "base/text.hpp"
#include "runtime/runs/lineage.hpp"

#include <algorithm>

namespace ars::runs {

namespace json = boost::json;

namespace {

constexpr std::size_t kProgressItems = 3;
constexpr std::size_t kProgressBytes = 800;

std::string last_part(std::string_view text) {
    const std::string_view tail = base::utf8_tail(text, kProgressBytes);
    return (tail.size() < text.size() ? "..." : "") + std::string(tail);
}

}  // namespace

std::string output_of(const store::ReadTxn& txn, const store::RunRecord& run) {
    if (run.status != store::RunStatus::completed) {
        return {};
    }
    const auto message = txn.message(run.output_message);
    return message && message->run == run.no ? message->content : std::string();
}

std::optional<store::TokenUsage> usage_of_children(
    const store::ReadTxn& txn, const store::RunRecord& run
) {
    std::optional<store::TokenUsage> sum;
    for (const store::RunRecord& member : lineage_of(txn, run.no)) {
        for (const store::RunNo no : txn.children_of(member.no)) {
            const store::RunRecord child = txn.run(no).value();
            if (child.type != store::RunType::subagent) {
                continue;
            }
            sum = sum.value_or(store::TokenUsage{});
            sum->input += child.usage.input;
            sum->output += child.usage.output;
            sum->complete = sum->complete && child.usage.complete;
        }
    }
    return sum;
}

json::object result_of(const store::ReadTxn& txn, const store::RunRecord& run) {
    json::object result{
        {"status", store::to_string(run.status)},
        {"output", output_of(txn, run)},
        {"run_id", run.id},
        {"thread_id", run.thread_id},
        {"token_usage",
         json::object{
             {"input_tokens", run.usage.input},
             {"output_tokens", run.usage.output},
             {"complete", run.usage.complete}
         }},
    };
    if (run.status == store::RunStatus::failed || run.status == store::RunStatus::cancelled) {
        result["error"] = json::object{{"type", run.error_type}, {"message", run.error_message}};
    }
    return result;
}

json::object progress_of(const store::ReadTxn& txn, const store::RunRecord& run) {
    std::vector<json::object> newest;
    const std::vector<store::MessageRecord> messages = txn.messages(run.thread, run.input_message);
    for (auto it = messages.rbegin(); it != messages.rend() && newest.size() < kProgressItems;
         ++it) {
        if (it->run != run.no || it->role != store::Role::assistant) {
            continue;
        }
        for (auto call = it->tool_calls.rbegin();
             call != it->tool_calls.rend() && newest.size() < kProgressItems;
             ++call) {
            newest.push_back(
                {{"type", "tool_call"}, {"content", last_part(call->name + " " + call->arguments)}}
            );
        }
        if (!it->content.empty() && newest.size() < kProgressItems) {
            newest.push_back({{"type", "assistant_message"}, {"content", last_part(it->content)}});
        }
    }
    std::reverse(newest.begin(), newest.end());
    json::array items;
    for (json::object& item : newest) {
        items.emplace_back(std::move(item));
    }
    const auto last = txn.last_event_id(run.no);
    return {
        {"last_seq", last ? store::to_string(*last) : std::string("0-0")},
        {"messages", std::move(items)}
    };
}

}  // namespace ars::runs
