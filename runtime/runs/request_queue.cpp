#include "runtime/runs/request_queue.hpp"

#include "base/clock.hpp"
#include "runtime/runs/events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace ars::runs {

using base::ErrorKind;
using base::fail;

namespace {

// A request that left the queue keeps who asked what came of it, not what was asked: a dispatched
// one's text is in the thread.
void leave_queue(store::WriteTxn& txn, store::RequestRecord& request, store::RequestStatus status) {
    request.status = status;
    request.content.clear();
    request.agent_config.clear();
    txn.put_request(request);
}

store::RunRecord dispatch(store::WriteTxn& txn, store::RequestRecord request) {
    store::RunRecord run;
    run.uid = request.uid;
    run.agent_slug = request.agent_slug;
    run.request_id = request.request_id;
    run.body_digest = request.body_digest;
    run.source = request.source;
    run.queue_policy = request.policy;
    run.model_spec = request.model_spec;
    run.approval_mode = request.approval_mode;
    run.agent_config = request.agent_config;
    run.agent_version = request.agent_version;
    run.agent_digest = request.agent_digest;
    run.max_steps = request.max_steps;
    run.timeout_ms = request.timeout_ms;
    store::MessageRecord message;
    message.id = request.message_id;
    message.content = request.content;
    message.created_ms = request.created_ms;
    begin_run(txn, run, txn.thread(request.thread).value(), std::move(message));
    request.run = run.no;
    request.dispatched_ms = base::now_ms();
    leave_queue(txn, request, store::RequestStatus::dispatched);
    return run;
}

bool is_steerable(const QueueState& state) {
    return state.status == QueueStatus::running && state.blocker &&
           state.blocker->status == store::RunStatus::running &&
           state.blocker->type == store::RunType::chat &&
           (state.blocker->source == "chat" || state.blocker->source == "channel");
}

std::unexpected<base::Error> not_steerable() {
    return fail(
        ErrorKind::conflict,
        "run_not_steerable",
        "only a running run that a chat message started can be steered; enqueue the message instead"
    );
}

}  // namespace

const char* to_string(QueueStatus status) {
    switch (status) {
        case QueueStatus::idle:
            return "idle";
        case QueueStatus::ready:
            return "ready";
        case QueueStatus::running:
            return "running";
        case QueueStatus::paused:
            return "paused";
        case QueueStatus::interrupted:
            return "interrupted";
    }
    return "unknown";
}

QueueState queue_state(const store::ReadTxn& txn, store::ThreadNo thread) {
    if (const auto open = txn.open_run_of_thread(thread)) {
        return {QueueStatus::running, txn.run(*open)};
    }
    const auto number = txn.latest_run_of_thread(thread);
    std::optional<store::RunRecord> latest = number ? txn.run(*number) : std::nullopt;
    if (latest && latest->status == store::RunStatus::interrupted) {
        return {QueueStatus::interrupted, std::move(latest)};
    }
    const std::vector<store::RequestNo> queue = txn.queue_of(thread);
    if (queue.empty()) {
        return {};
    }
    if (latest && latest->finished_ms == 0) {
        throw std::logic_error("run " + latest->id + " has ended without a time of its end");
    }
    const store::RequestRecord head = txn.request(queue.front()).value();
    if (latest && latest->status != store::RunStatus::completed &&
        head.created_ms <= latest->finished_ms) {
        return {QueueStatus::paused, std::move(latest)};
    }
    return {QueueStatus::ready, std::nullopt};
}

std::size_t queue_position(const store::ReadTxn& txn, const store::RequestRecord& request) {
    if (request.status != store::RequestStatus::queued) {
        return 0;
    }
    const std::vector<store::RequestNo> queue = txn.queue_of(request.thread);
    const auto place = std::ranges::find(queue, request.no);
    return place == queue.end() ? 0 : static_cast<std::size_t>(place - queue.begin()) + 1;
}

store::RequestRecord request_of(const store::ReadTxn& txn, const store::RunRecord& run) {
    store::RequestRecord request;
    request.request_id = run.request_id;
    request.thread = run.thread;
    request.thread_id = run.thread_id;
    request.uid = run.uid;
    request.agent_slug = run.agent_slug;
    request.body_digest = run.body_digest;
    request.source = run.source;
    request.policy = run.queue_policy;
    request.status = store::RequestStatus::dispatched;
    const auto message = txn.message(run.input_message);
    request.message_id = message ? message->id : std::string();
    request.model_spec = run.model_spec;
    request.approval_mode = run.approval_mode;
    request.max_steps = run.max_steps;
    request.timeout_ms = run.timeout_ms;
    request.run = run.no;
    request.created_ms = run.created_ms;
    request.dispatched_ms = run.created_ms;
    request.updated_ms = run.created_ms;
    return request;
}

base::Result<void> check_steer(
    const store::ReadTxn& txn, store::ThreadNo thread, const QueueState& state
) {
    if (txn.has_steer(thread)) {
        return fail(
            ErrorKind::conflict,
            "steer_already_pending",
            "another message steers this thread already; enqueue this one"
        );
    }
    // On a thread without an open run a steer is a message that goes first.
    if (state.status == QueueStatus::running && !is_steerable(state)) {
        return not_steerable();
    }
    return {};
}

void begin_run(
    store::WriteTxn& txn,
    store::RunRecord& run,
    const store::ThreadRecord& thread,
    store::MessageRecord message
) {
    run.thread = thread.no;
    run.thread_id = thread.id;
    run.scope_id = thread.id;
    txn.put_run(run);
    message.thread = run.thread;
    message.run = run.no;
    message.role = store::Role::user;
    txn.add_message(message);
    run.input_message = message.seq;
    txn.put_run(run);
    store::EventRecord metadata = events::metadata(run);
    txn.add_event(metadata);
}

std::optional<store::RunRecord> dispatch_ready(store::WriteTxn& txn, store::ThreadNo thread) {
    if (queue_state(txn, thread).status != QueueStatus::ready) {
        return std::nullopt;
    }
    return dispatch(txn, txn.request(txn.queue_of(thread).front()).value());
}

base::Result<store::RunRecord> dispatch_paused(store::WriteTxn& txn, store::ThreadNo thread) {
    const QueueState state = queue_state(txn, thread);
    if (state.status == QueueStatus::interrupted) {
        return fail(
            ErrorKind::conflict,
            "run_interrupted",
            fmt::format("run {} waits for an answer; resume or cancel it", state.blocker->id)
        );
    }
    const std::vector<store::RequestNo> queue = txn.queue_of(thread);
    if (queue.empty()) {
        return fail(ErrorKind::conflict, "queue_empty", "no message waits in this thread");
    }
    if (state.status == QueueStatus::running) {
        return fail(
            ErrorKind::conflict,
            "run_active",
            fmt::format(
                "run {} of this thread has not ended; the queue goes on after it", state.blocker->id
            )
        );
    }
    if (state.status != QueueStatus::paused) {
        return fail(
            ErrorKind::conflict, "queue_not_paused", "the queue is not paused: it goes on by itself"
        );
    }
    return dispatch(txn, txn.request(queue.front()).value());
}

base::Result<store::RequestRecord> withdraw(store::WriteTxn& txn, store::RequestNo number) {
    store::RequestRecord request = txn.request(number).value();
    if (request.status == store::RequestStatus::dispatched) {
        return fail(
            ErrorKind::conflict,
            "request_already_dispatched",
            "this request is a run already; cancel the run"
        );
    }
    if (request.status != store::RequestStatus::queued) {
        return request;
    }
    if (request.policy == store::QueuePolicy::steer && txn.open_run_of_thread(request.thread)) {
        return fail(
            ErrorKind::conflict,
            "steer_in_progress",
            "the active run is about to end for this message; it can't be taken back now"
        );
    }
    leave_queue(txn, request, store::RequestStatus::cancelled);
    return request;
}

void withdraw_all(store::WriteTxn& txn, store::ThreadNo thread) {
    for (const store::RequestNo number : txn.queue_of(thread)) {
        store::RequestRecord request = txn.request(number).value();
        leave_queue(txn, request, store::RequestStatus::cancelled);
    }
}

base::Result<store::RequestRecord> promote(store::WriteTxn& txn, store::RequestNo number) {
    store::RequestRecord request = txn.request(number).value();
    if (request.status != store::RequestStatus::queued) {
        return fail(
            ErrorKind::conflict,
            "request_not_queued",
            fmt::format("this request is {}", store::to_string(request.status))
        );
    }
    if (request.policy == store::QueuePolicy::steer) {
        return request;
    }
    const QueueState state = queue_state(txn, request.thread);
    if (auto allowed = check_steer(txn, request.thread, state); !allowed) {
        return std::unexpected(allowed.error());
    }
    if (!is_steerable(state)) {
        return not_steerable();
    }
    request.policy = store::QueuePolicy::steer;
    txn.put_request(request);
    return request;
}

}  // namespace ars::runs
