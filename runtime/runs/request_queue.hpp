// The queue of a thread, as transactions: what waits, whether it may go on, and how a request
// becomes a run. At most one run of a thread is open; the rest of its messages wait here, on disk.
#pragma once

#include "runtime/store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ars::runs {

// Requests of all threads that may wait: each holds up to a message of a MiB and its agent's
// snapshot.
inline constexpr std::uint32_t kMaxQueuedRequests = 1000;

enum class QueueStatus : std::uint8_t {
    idle,         // nothing waits, nothing runs
    ready,        // the head is about to be dispatched
    running,      // behind an open run
    paused,       // its head waited when a run failed or was cancelled: `continue` goes on
    interrupted,  // behind a run that waits for a person
};
[[nodiscard]] const char* to_string(QueueStatus status);

struct QueueState {
    QueueStatus status = QueueStatus::idle;
    std::optional<store::RunRecord> blocker;  // the open or interrupted run, or the one that paused
};
// Throws std::logic_error when a terminal run has no end time: whether it paused is unknown then.
[[nodiscard]] QueueState queue_state(const store::ReadTxn& txn, store::ThreadNo thread);

// 1 = next; 0 = not queued.
[[nodiscard]] std::size_t queue_position(
    const store::ReadTxn& txn, const store::RequestRecord& request
);

// A request as it is shown, of a run that never waited.
[[nodiscard]] store::RequestRecord request_of(
    const store::ReadTxn& txn, const store::RunRecord& run
);

// Whether a steer may be sent to `thread` now; the codes are those of the contract.
[[nodiscard]] base::Result<void> check_steer(
    const store::ReadTxn& txn, store::ThreadNo thread, const QueueState& state
);

// Writes a new run with its message and first event. `run` has its snapshots already.
void begin_run(
    store::WriteTxn& txn,
    store::RunRecord& run,
    const store::ThreadRecord& thread,
    store::MessageRecord message
);

// The head of a ready queue as a new pending run; nothing when the queue is not ready.
[[nodiscard]] std::optional<store::RunRecord> dispatch_ready(
    store::WriteTxn& txn, store::ThreadNo thread
);
// Exactly one, the head of a paused queue. Errors: conflict "queue_empty", "run_active",
// "run_interrupted", "queue_not_paused".
[[nodiscard]] base::Result<store::RunRecord> dispatch_paused(
    store::WriteTxn& txn, store::ThreadNo thread
);
// No-op when it is cancelled or rejected. Errors: conflict "request_already_dispatched",
// "steer_in_progress".
[[nodiscard]] base::Result<store::RequestRecord> withdraw(
    store::WriteTxn& txn, store::RequestNo request
);
// Every queued request of a thread that is going away, a steer on its way too.
void withdraw_all(store::WriteTxn& txn, store::ThreadNo thread);
// A queued request goes first. Id, time and text stay. Errors: conflict "request_not_queued",
// "steer_already_pending", "run_not_steerable".
[[nodiscard]] base::Result<store::RequestRecord> promote(
    store::WriteTxn& txn, store::RequestNo request
);

}  // namespace ars::runs
