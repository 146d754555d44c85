#include "runtime/runs/run_records.hpp"

#include "base/clock.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/lineage.hpp"
#include "runtime/runs/prompt.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <stdexcept>

namespace ars::runs {

namespace json = boost::json;

namespace {

constexpr std::size_t kArtifacts = 200;  // of a thread: every checkpoint holds them

// A child's news go to whoever is served of its parent's lineage; when that waits for a person or
// has ended, its log is closed.
void tell_parent(store::WriteTxn& txn, const store::RunRecord& child) {
    const auto parent = txn.run(child.parent);
    if (!parent) {
        return;
    }
    const store::RunRecord served = latest_of_lineage(txn, *parent);
    if (!store::is_terminal(served.status) && served.status != store::RunStatus::interrupted) {
        store::EventRecord update = events::subagent_update(child, served.no);
        txn.add_event(update);
    }
}

// A closure that ends a run with another message than an answer of its own commits nothing.
void require_answer(const store::ReadTxn& txn, const store::RunRecord& run) {
    const auto answer = txn.message(run.output_message);
    if (!answer || answer->run != run.no || answer->role != store::Role::assistant) {
        throw std::logic_error("a run is completed by an assistant message of its own");
    }
}

void write_end_events(store::WriteTxn& txn, const store::RunRecord& run) {
    if (run.status == store::RunStatus::failed) {
        store::EventRecord event = events::error(run);
        txn.add_event(event);
    }
    if (run.status == store::RunStatus::cancelled) {
        store::EventRecord event = events::interrupt(run, "cancelled");
        txn.add_event(event);
    }
    for (const Interrupt& interrupt : pending_interrupts(txn, run)) {
        store::EventRecord event = interrupt_event(run, interrupt);
        txn.add_event(event);
    }
    store::EventRecord last = events::end(run);
    txn.add_event(last);
}

}  // namespace

void write_end(
    store::WriteTxn& txn, store::RunRecord& run, const RunEnd& end, std::string_view open_call_text
) {
    const auto stored = txn.run_status(run.no);
    if (stored && store::is_terminal(*stored)) {
        run = txn.run(run.no).value();
        return;
    }
    const bool log_is_closed = stored == store::RunStatus::interrupted;
    const bool cancelled =
        stored == store::RunStatus::cancel_requested || end.status == store::RunStatus::cancelled;
    run.status = cancelled ? store::RunStatus::cancelled : end.status;
    run.error_type = cancelled && end.error_type.empty() ? "cancelled" : end.error_type;
    run.error_message = end.error_message;
    if (cancelled) {
        run.error_message = "the run was cancelled";
    }
    if (run.status == store::RunStatus::completed) {
        require_answer(txn, run);
    }
    if (store::is_terminal(run.status)) {
        run.finished_ms = base::now_ms();
    }
    if (cancelled || run.status == store::RunStatus::failed) {
        run.output_message = 0;
        const std::vector<store::MessageRecord> history =
            open_call_text.empty() ? std::vector<store::MessageRecord>() : txn.messages(run.thread);
        for (store::MessageRecord& message : synthetic_results(history, run.no, open_call_text)) {
            txn.add_message(message);
            if (!log_is_closed) {
                store::EventRecord finished =
                    events::tool_finished(run, message, {{"status", "cancelled"}});
                txn.add_event(finished);
            }
        }
    }
    txn.put_run(run);
    if (!log_is_closed) {
        write_end_events(txn, run);
    }
    if (run.type == store::RunType::subagent) {
        tell_parent(txn, run);
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

namespace {

// In the order in which they were first presented; the newest, when there are too many.
void add_artifacts(json::object& state, const json::array& more) {
    json::value& stored = state["artifacts"];
    json::array& all = stored.is_array() ? stored.get_array() : stored.emplace_array();
    for (const json::value& path : more) {
        if (std::ranges::find(all, path) == all.end()) {
            all.push_back(path);
        }
    }
    if (all.size() > kArtifacts) {
        all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kArtifacts));
    }
}

}  // namespace

void merge_state(json::object& state, const json::object& update) {
    for (const auto& [key, value] : update) {
        if (key == "artifacts") {
            add_artifacts(state, value.as_array());
            continue;
        }
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
    return error.code == "store_full" || error.code == "disk_full" || error.code == "disk_failed" ||
           error.code == "store_busy";
}

}  // namespace ars::runs
