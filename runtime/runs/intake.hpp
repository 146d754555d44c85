// From a request to records: what a submission or a new thread must satisfy before anything is
// written.
#pragma once

#include "runtime/runs/run_manager.hpp"
#include "runtime/runs/run_parts.hpp"

namespace ars::runs {

// A checked submission, ready for its transaction.
struct Intake {
    store::RunRecord run;
    store::ThreadRecord thread;  // no == 0: to be made
    std::string query;
    std::vector<std::string> attachments;
};
[[nodiscard]] base::Result<Intake> check_submission(
    const RunParts& parts, const SubmitRun& request
);
[[nodiscard]] base::Result<store::ThreadRecord> check_new_thread(
    const RunParts& parts, const NewThread& request
);

// A request that is a run.
[[nodiscard]] Submitted submitted_run(
    const store::ReadTxn& txn, store::RunRecord run, bool replayed
);

struct IntakeBounds {
    bool no_slot = false;  // a new run can't begin now
    bool starts = false;   // its slot is taken: it is served as soon as it is committed
    std::size_t max_queued = kMaxQueuedRequests;
};
// Key look-up, the thread's queue, thread, message, run and first event in one transaction. Sets
// `replayed` when the request id is known with the same digest. A message that is queued behind
// nothing but a queue that may go on is left to RequestService::advance().
[[nodiscard]] base::Result<Submitted> write_intake(
    store::WriteTxn& txn, Intake intake, const IntakeBounds& bounds
);

}  // namespace ars::runs
