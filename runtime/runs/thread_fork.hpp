// A thread that goes on from an earlier point of another one.
#pragma once

#include "runtime/agents/agent_table.hpp"
#include "runtime/store/store.hpp"

#include <string>

namespace ars::runs {

struct ForkThread {
    agents::User user;
    std::string thread_id;
    std::string checkpoint_id;  // empty = the latest
    std::string title;          // empty = the origin's
    std::string request_id;     // idempotency per user; empty = none
};

// Copies the messages up to the checkpoint and its state into a new thread, with a result for each
// call that had none yet. Files are not versioned: both threads work in the same directory. Inside
// a write transaction. Errors: not_found "checkpoint_not_found", conflict "request_id_conflict",
// too_large "thread_too_long".
[[nodiscard]] base::Result<store::ThreadRecord> write_fork(
    store::WriteTxn& txn, const store::ThreadRecord& origin, const ForkThread& request
);

}  // namespace ars::runs
