#include "runtime/runs/run_loop.hpp"

#include "base/clock.hpp"
#include "base/task_group.hpp"
#include "base/text.hpp"
#include "runtime/runs/delta_writer.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/lineage.hpp"
#include "runtime/runs/loop_guard.hpp"
#include "runtime/runs/prompt.hpp"
#include "runtime/runs/thread_state.hpp"
#include "runtime/runs/tool_round.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace ars::runs {

namespace {

RunEnd failed(std::string type, std::string message) {
    return RunEnd{store::RunStatus::failed, std::move(type), std::move(message)};
}

// What one model step stores. Shared with the write closure, which fills in places and ids.
struct StepCommit {
    store::RunRecord run;
    store::MessageRecord message;
    std::vector<store::MessageRecord> refused;  // results of calls that must not run
    std::vector<store::CallRecord> intents;
    std::vector<StoredResult> answered;  // by pure tools; their calls are among the intents
    DeltaWriter::Rest deltas;
    std::string state;
};

// A parent that waits through many boots is moved on by what its child commits.
void move_parent_on(store::WriteTxn& txn, store::RunNo parent) {
    store::RunRecord served = latest_of_lineage(txn, txn.run(parent).value());
    if (served.idle_attempts > 0 && !store::is_terminal(served.status)) {
        served.idle_attempts = 0;
        txn.put_run(served);
    }
}

base::Result<bool> write_step(store::WriteTxn& txn, StepCommit& step) {
    const auto stored = txn.run_status(step.run.no);
    if (stored && stored != store::RunStatus::running) {
        return base::fail(
            base::ErrorKind::cancelled, "run_not_running", "the run was asked to stop"
        );
    }
    for (store::EventRecord& event : step.deltas.events) {
        txn.add_event(event);
    }
    txn.add_message(step.message);
    if (step.deltas.whole_message) {
        store::EventRecord said = events::message(step.run, step.message);
        txn.add_event(said);
    }
    const bool runs_tools = !step.message.tool_calls.empty() && step.refused.empty();
    for (std::size_t i = 0; i < step.message.tool_calls.size(); ++i) {
        const auto index = static_cast<std::uint32_t>(i);
        store::EventRecord call = events::tool_call(step.run, step.message.seq, index);
        txn.add_event(call);
        const bool starts =
            std::ranges::find(step.intents, i, &store::CallRecord::index) != step.intents.end();
        if (runs_tools && starts) {
            store::EventRecord started = events::tool_started(step.run, step.message.seq, index);
            txn.add_event(started);
        }
    }
    for (const store::CallRecord& intent : step.intents) {
        txn.put_call(intent);
    }
    for (store::MessageRecord& result : step.refused) {
        txn.add_message(result);
        store::EventRecord finished = events::tool_finished(step.run, result, {});
        txn.add_event(finished);
    }
    if (step.run.type == store::RunType::subagent) {
        move_parent_on(txn, step.run.parent);
    }
    store::CheckpointRecord checkpoint;
    checkpoint.thread = step.run.thread;
    checkpoint.run = step.run.no;
    checkpoint.step = step.run.steps;
    checkpoint.message_head = step.message.seq;
    checkpoint.state = step.state;
    txn.add_checkpoint(checkpoint);
    for (StoredResult& result : step.answered) {
        write_result(txn, step.run, result);
    }
    if (step.message.tool_calls.empty()) {
        step.run.output_message = step.message.seq;
        write_end(txn, step.run, RunEnd{});
    } else {
        txn.put_run(step.run);
    }
    return true;
}

}  // namespace

base::Task<std::optional<RunEnd>> RunLoop::serve() {
    offered_ = offered_tools(*run_, tools_);
    for (;;) {
        if (run_->stop == StopReason::shutdown) {
            co_return std::nullopt;  // the next boot goes on from here
        }
        const OpenCalls open = open_calls(run_->history);
        if (!open.indexes.empty()) {
            const std::optional<RunEnd> end = co_await tool_step(*open.message, open);
            if (end) {
                co_return end;
            }
            continue;
        }
        if (run_->taken_over && run_->record.attempt > 1) {
            // The process before may have been in a model call: what that cost nobody knows.
            run_->record.usage.complete = false;
        }
        run_->taken_over = false;
        if (is_steered()) {
            co_return hand_over();
        }
        if (run_->deadline.passed()) {
            co_return failed(
                "run_timeout",
                fmt::format("the run used up its {} s", run_->record.timeout_ms / 1000)
            );
        }
        if (run_->record.steps >= run_->record.max_steps) {
            co_return failed(
                "step_limit",
                fmt::format(
                    "the run made {} model calls without finishing; raise max_execution_steps or "
                    "split the task",
                    run_->record.steps
                )
            );
        }
        const std::optional<RunEnd> end = co_await model_step();
        if (end || store::is_terminal(run_->record.status)) {
            co_return end;
        }
    }
}

// Runs the open calls that need nobody; when only such are left that a person must decide about,
// the run waits.
base::Task<std::optional<RunEnd>> RunLoop::tool_step(store::MessageRecord message, OpenCalls open) {
    std::vector<std::size_t> ready;
    for (const std::size_t index : open.indexes) {
        if (!still_waits(message.tool_calls[index], index)) {
            ready.push_back(index);
        }
    }
    if (ready.empty()) {
        co_return interrupted_at(message.seq);
    }
    const bool some_wait = ready.size() < open.indexes.size();
    ToolRound round(parts_, run_, offered_);
    const base::Result<void> done = co_await round.run(std::move(message), ready);
    run_->taken_over = false;  // later calls are this process's own
    if (!done) {
        co_return failed(done.error().code, done.error().message);
    }
    run_->malformed_turns = round.any_readable() || some_wait ? 0 : run_->malformed_turns + 1;
    if (run_->malformed_turns >= base::limits::kMalformedTurnsLimit) {
        co_return failed(
            "malformed_tool_calls",
            fmt::format(
                "the model's tool calls were unreadable {} turns in a row", run_->malformed_turns
            )
        );
    }
    if (const std::uint32_t turns = repeated_turns(run_->history); turns >= kRepeatsLimit) {
        co_return failed(
            "repeated_tool_calls",
            fmt::format(
                "the model made the same tool calls with the same results {} turns in a row", turns
            )
        );
    }
    co_return std::nullopt;
}

// What a person approved has an intent: it was stored with the answer.
bool RunLoop::still_waits(const store::ToolCall& call, std::size_t index) const {
    return waits_for_person(run_->record, offered_, call) &&
           !parts_.store.read([&](const store::ReadTxn& txn) {
               return txn.call(
                   run_->record.no, step_of_call_id(call.id), static_cast<std::uint32_t>(index)
               );
           });
}

RunEnd RunLoop::interrupted_at(store::Seq message) {
    run_->record.output_message = message;
    run_->record.idle_attempts = 0;
    run_->record.served_ms += std::chrono::duration_cast<base::milliseconds>(
                                  std::chrono::steady_clock::now() - run_->serving_since
    )
                                  .count();
    return RunEnd{store::RunStatus::interrupted, "", ""};
}

// A message that steers the thread goes on from what this run has done, so there must be something:
// the first model call is always made.
bool RunLoop::is_steered() const {
    return run_->record.type == store::RunType::chat && run_->record.steps > 0 &&
           parts_.store.read([this](const store::ReadTxn& txn) {
               return txn.has_steer(run_->record.thread);
           });
}

// Completed, with what it said last.
RunEnd RunLoop::hand_over() {
    const auto last = std::find_if(
        run_->history.rbegin(),
        run_->history.rend(),
        [](const store::MessageRecord& message) { return message.role == store::Role::assistant; }
    );
    run_->record.output_message = last->seq;
    return RunEnd{};
}

base::Task<std::optional<RunEnd>> RunLoop::model_step() {
    const auto resolved = parts_.models.resolve(run_->record.model_spec);
    if (!resolved) {
        co_return failed(resolved.error().code, resolved.error().message);
    }
    const models::ModelRequest request = model_request(*run_, offered_, schemas_, resolved->model);
    DeltaWriter deltas(parts_.store, *run_, parts_.log);
    base::Result<models::ModelReply> reply = co_await ask_model(deltas, request, *resolved->client);
    if (!reply) {
        co_return failed(reply.error().code, reply.error().message);
    }
    co_return co_await commit_reply(std::move(*reply), deltas.message_id(), deltas.take_rest());
}

base::Task<base::Result<models::ModelReply>> RunLoop::ask_model(
    DeltaWriter& deltas, const models::ModelRequest& request, models::ModelClient& client
) {
    base::TaskGroup group(parts_.executor);
    deltas.when_first_piece_came([&] { group.spawn(deltas.pump()); });
    std::exception_ptr error;
    base::Result<models::ModelReply> reply;
    try {
        reply = co_await client.complete(request, deltas);
    } catch (...) {
        error = std::current_exception();
    }
    // A cancel may also come when the reply is there and this was not resumed yet: an await would
    // throw then, and leave the pump behind.
    const auto state = co_await base::asio::this_coro::cancellation_state;
    const bool cancelled = state.cancelled() != base::asio::cancellation_type::none;
    if (error || cancelled) {
        co_await base::shield_from_cancellation();
    }
    deltas.close();
    co_await group.join();
    if (error) {
        std::rethrow_exception(error);
    }
    if (cancelled) {
        throw boost::system::system_error(base::asio::error::operation_aborted);
    }
    co_return reply;
}

store::MessageRecord RunLoop::assistant_message(
    const models::ModelReply& reply, std::string message_id
) const {
    store::MessageRecord message;
    message.id = std::move(message_id);
    message.thread = run_->record.thread;
    message.run = run_->record.no;
    message.role = store::Role::assistant;
    message.content = base::to_utf8(reply.content).text;
    message.reasoning = base::to_utf8(reply.reasoning).text;
    std::unordered_set<std::string> seen;
    for (std::size_t i = 0; i < reply.tool_calls.size(); ++i) {
        const models::ToolCall& call = reply.tool_calls[i];
        store::ToolCall stored;
        stored.id = make_call_id(run_->record.id, run_->record.steps + 1, i);
        // Providers give empty and repeated ids; what we send back must pair uniquely within the
        // turn.
        const bool usable =
            !call.id.empty() && base::is_utf8(call.id) && seen.insert(call.id).second;
        stored.provider_id = usable ? call.id : stored.id;
        stored.name = base::to_utf8(call.name).text;
        stored.arguments = base::to_utf8(call.arguments).text;
        message.tool_calls.push_back(std::move(stored));
    }
    return message;
}

std::vector<store::CallRecord> RunLoop::intents(const store::MessageRecord& message) const {
    std::vector<store::CallRecord> out;
    const auto wait_until_ms =
        base::now_ms() +
        std::min(
            std::chrono::duration_cast<base::milliseconds>(base::limits::kAwaitLimit),
            run_->deadline.remaining()
        )
            .count();
    for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
        if (waits_for_person(run_->record, offered_, message.tool_calls[i])) {
            continue;
        }
        store::CallRecord intent;
        intent.run = run_->record.no;
        intent.step = run_->record.steps + 1;
        intent.index = static_cast<std::uint32_t>(i);
        for (const tools::Tool* tool : offered_) {
            if (tool->spec().name == message.tool_calls[i].name &&
                tool->spec().effect == tools::Effect::waiting) {
                intent.deadline_ms = wait_until_ms;
            }
        }
        out.push_back(intent);
    }
    return out;
}

base::Task<std::optional<RunEnd>> RunLoop::commit_reply(
    models::ModelReply reply, std::string message_id, DeltaWriter::Rest rest
) {
    if (reply.tool_calls.size() > base::limits::kMaxToolCallsPerTurn) {
        co_return failed(
            "too_many_tool_calls",
            fmt::format("the model asked for {} tool calls in one turn", reply.tool_calls.size())
        );
    }
    const auto shared = std::make_shared<StepCommit>();
    StepCommit& step = *shared;
    step.message = assistant_message(reply, std::move(message_id));
    step.intents = intents(step.message);
    step.deltas = std::move(rest);
    count_usage(run_->state, run_->record, reply.usage, reply.usage_known);
    step.state = boost::json::serialize(run_->state);
    step.run = run_->record;
    step.run.steps += 1;
    step.run.idle_attempts = 0;
    step.run.usage.input += reply.usage.input_tokens;
    step.run.usage.output += reply.usage.output_tokens;
    step.run.usage.complete = step.run.usage.complete && reply.usage_known;
    const auto now = std::chrono::steady_clock::now();
    step.run.served_ms +=
        std::chrono::duration_cast<base::milliseconds>(now - run_->serving_since).count();
    if (reply.cut_by_length && !step.message.tool_calls.empty()) {
        std::vector<store::MessageRecord> only{step.message};
        step.refused = synthetic_results(
            only,
            run_->record.no,
            "Not run: the reply was cut off at the model's output limit, so the arguments may be "
            "incomplete. "
            "Call again with less output at a time."
        );
    }
    if (step.refused.empty() && !step.message.tool_calls.empty()) {
        ToolRound round(parts_, run_, offered_);
        step.answered = co_await round.answer_pure(step.message);
        run_->malformed_turns = round.any_readable() ? 0 : run_->malformed_turns;
    }
    std::function<base::Result<bool>(store::WriteTxn&)> change = [shared](store::WriteTxn& txn) {
        return write_step(txn, *shared);
    };
    const base::Result<bool> written =
        co_await commit<bool>(parts_.store, run_->deadline, run_->process_ends, std::move(change));
    if (!written) {
        if (written.error().kind == base::ErrorKind::cancelled) {
            co_return RunEnd{store::RunStatus::cancelled, "cancelled", written.error().message};
        }
        co_return failed(written.error().code, written.error().message);
    }
    run_->serving_since = now;
    run_->record = std::move(step.run);
    run_->history.push_back(std::move(step.message));
    for (store::MessageRecord& result : step.refused) {
        run_->history.push_back(std::move(result));
    }
    for (StoredResult& result : step.answered) {
        run_->history.push_back(std::move(result.message));
    }
    run_->changed.notify_all();
    co_return std::nullopt;
}

}  // namespace ars::runs
