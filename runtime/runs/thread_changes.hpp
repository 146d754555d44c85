// What a user changes of a thread itself: its title, its place in the list, how its runs ask, and
// that its latest run was seen.
#pragma once

#include "base/result.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/store/store.hpp"

#include <optional>
#include <string>

namespace ars::runs {

// What is absent stays.
struct ChangeThread {
    agents::User user;
    std::string thread_id;
    std::optional<std::string> title;
    std::optional<bool> is_pinned;
    std::optional<agents::ApprovalMode> approval_mode;  // of runs to come, over the agent's own
};

// Error conflict "thread_is_subagent": such a thread is in no list and starts no runs.
[[nodiscard]] base::Result<store::ThreadRecord> write_thread_change(
    store::WriteTxn& txn, store::ThreadNo thread, const ChangeThread& change
);

// A run that has not ended yet is not seen by this.
[[nodiscard]] base::Result<store::ThreadRecord> write_thread_viewed(
    store::WriteTxn& txn, store::ThreadNo thread
);

// "done": no run, or its end was seen; "loading": a run is at work; "ready": an end, or a question,
// that its user has not seen. Runs of sub-agents have threads of their own and don't count.
[[nodiscard]] const char* thread_status(
    const store::ReadTxn& txn, const store::ThreadRecord& thread
);

}  // namespace ars::runs
