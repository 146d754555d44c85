// What stands on a thread's table (agent_state): todos, artifacts, sub-agent runs, the skills that
// were activated, and what its model calls cost. Tools change their own part of it; it is stored
// with each checkpoint.
#pragma once

#include "runtime/models/model_client.hpp"
#include "runtime/store/store.hpp"

#include <boost/json/object.hpp>

namespace ars::runs {

// Adds a model call to state["token_usage"]: `latest`, the `run` (a new one begins at zero) and the
// `thread`, which has a bucket for each model. `complete` as long as every call said what it used.
void count_usage(
    boost::json::object& state,
    const store::RunRecord& run,
    const models::Usage& usage,
    bool usage_known
);

// The newest state, every key present, with the sub-agent runs as they stand now: a child that goes
// on by itself has no tool call that would note its end.
[[nodiscard]] boost::json::object thread_state(
    const store::ReadTxn& txn, const store::ThreadRecord& thread
);

}  // namespace ars::runs
