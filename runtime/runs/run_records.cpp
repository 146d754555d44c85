#include "runtime/runs/run_records.hpp"

#include "base/clock.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/prompt.hpp"

#include <boost/json/array.hpp>

namespace ars::runs {

namespace json = boost::json;

void write_end(
    store::WriteTxn& txn,
    store::RunRecord& run,
    const RunEnd& end,
    std::vector<store::MessageRecord> synthetic_results
) {
    const auto stored = txn.run(run.no);
    if (stored && store::is_terminal(stored->status)) {
        run = *stored;
        return;
    }
    const bool cancelled = (stored && stored->status == store::RunStatus::cancel_requested) ||
                           end.status == store::RunStatus::cancelled;
    run.status = cancelled ? store::RunStatus::cancelled : end.status;
    run.error_type = cancelled && end.error_type.empty() ? "cancelled" : end.error_type;
    run.error_message = end.error_message;
    if (cancelled) {
        run.output_message = 0;
        run.error_message = "the run was cancelled";
    }
    run.finished_ms = base::now_ms();
    for (store::MessageRecord& message : synthetic_results) {
        txn.add_message(message);
        store::EventRecord finished =
            events::tool_finished(run, message, {{"status", "cancelled"}});
        txn.add_event(finished);
    }
    txn.put_run(run);
    if (run.status == store::RunStatus::failed) {
        store::EventRecord event = events::error(run);
        txn.add_event(event);
    }
    if (run.status == store::RunStatus::cancelled) {
        store::EventRecord event = events::interrupt(run, "cancelled");
        txn.add_event(event);
    }
    store::EventRecord last = events::end(run);
    txn.add_event(last);
    if (run.parent != 0) {
        const auto parent = txn.run(run.parent);
        if (parent && !store::is_terminal(parent->status)) {
            store::EventRecord update = events::subagent_update(run);
            txn.add_event(update);
        }
    }
}

std::vector<store::MessageRecord> synthetic_results(
    const std::vector<store::MessageRecord>& history, store::RunNo run, std::string_view text
) {
    std::vector<store::MessageRecord> out;
    const OpenCalls open = open_calls(history);
    for (const std::size_t index : open.indexes) {
        const store::ToolCall& call = open.message->tool_calls[index];
        store::MessageRecord message;
        message.thread = open.message->thread;
        message.run = run;
        message.role = store::Role::tool;
        message.content = text;
        message.tool_call_id = call.id;
        message.tool_name = call.name;
        message.is_error = true;
        out.push_back(std::move(message));
    }
    return out;
}

void merge_state(json::object& state, const json::object& update) {
    for (const auto& [key, value] : update) {
        if (key != "subagent_runs") {
            state[key] = value;
            continue;
        }
        json::value& list = state[key];
        if (!list.is_array()) {
            list = json::array{};
        }
        for (const json::value& entry : value.as_array()) {
            const json::value* id = entry.as_object().if_contains("run_id");
            json::object* known = nullptr;
            for (json::value& other : list.as_array()) {
                if (id != nullptr && other.as_object().if_contains("run_id") != nullptr &&
                    other.as_object().at("run_id") == *id) {
                    known = &other.as_object();
                }
            }
            if (known == nullptr) {
                list.as_array().push_back(entry);
                continue;
            }
            for (const auto& [field, text] : entry.as_object()) {
                (*known)[field] = text;
            }
        }
    }
}

bool is_storage_pressure(const base::Error& error) {
    return error.code == "store_full" || error.code == "disk_full" || error.code == "store_busy";
}

}  // namespace ars::runs
