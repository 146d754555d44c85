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
};
[[nodiscard]] base::Result<Intake> check_submission(
    const RunParts& parts, const SubmitRun& request
);
[[nodiscard]] base::Result<store::ThreadRecord> check_new_thread(
    const RunParts& parts, const NewThread& request
);

// Key look-up, busy check, thread, message, run and first event in one transaction. Sets `replayed`
// when the request id is known with the same digest.
[[nodiscard]] base::Result<Submitted> write_intake(store::WriteTxn& txn, Intake intake);

}  // namespace ars::runs
