// From a person's answers to a run that goes on: reads them, matches them with what an interrupted
// run waits for, and stores them together with the run that acts on them.
#pragma once

#include "runtime/runs/run_manager.hpp"

#include <map>
#include <optional>
#include <string>

namespace ars::runs {

struct Decision {
    enum class Kind : std::uint8_t { approve, reject, answers };
    Kind kind = Kind::approve;
    boost::json::object answers;  // of `answers`, by question id
    std::string reason;           // of `reject`, for the model; may be empty
};

// `bare`: for the one thing that is pending; else by interrupt id.
struct Decisions {
    std::optional<Decision> bare;
    std::map<std::string, Decision> by_id;
};
// {"<interrupt id>": {"answers": {...}} | {"decision": "approve" | "reject", "reason"?}}, or such a
// value alone. Errors: "bad_resume".
[[nodiscard]] base::Result<Decisions> read_decisions(const boost::json::value& resume);

struct Resumption {
    ResumeRun request;  // with its request id
    Decisions decisions;
    std::string digest;
    bool no_slot = false;  // every slot is taken: only what needs none may be accepted
};
[[nodiscard]] base::Result<Resumption> check_resumption(ResumeRun request);

// One transaction: results of what was answered or rejected, intents of what was approved, and the
// run that goes on. It stays interrupted while a part of the calls is undecided: approved calls
// start together, when all are decided. Sets `replayed` when the request id is known with the same
// digest. Errors: not_found, conflict "run_not_interrupted", "resume_superseded",
// "interrupt_id_required", "request_id_conflict"; invalid "unknown_interrupt", "wrong_answer",
// "bad_answers"; exhausted "runs_full".
[[nodiscard]] base::Result<Submitted> write_resumption(
    store::WriteTxn& txn, const Resumption& resumption
);

}  // namespace ars::runs
