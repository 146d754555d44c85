// What others may read of a run: its end, and its newest readable steps.
#pragma once

#include "runtime/store/store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <optional>
#include <string>

namespace ars::runs {

// The text of the bound assistant message; empty unless the run completed.
[[nodiscard]] std::string output_of(const store::ReadTxn& txn, const store::RunRecord& run);

// What the sub-agents of the run's lineage used, also those that failed or were cancelled. Absent
// when it has none.
[[nodiscard]] std::optional<store::TokenUsage> usage_of_children(
    const store::ReadTxn& txn, const store::RunRecord& run
);

// {status, output, run_id, thread_id, token_usage, error?}: `result` of subagent_status and _await.
[[nodiscard]] boost::json::object result_of(const store::ReadTxn& txn, const store::RunRecord& run);

// The three newest readable items, oldest first, each the last 800 characters:
// {last_seq, messages: [{type: assistant_message | tool_call, content}]}.
[[nodiscard]] boost::json::object progress_of(
    const store::ReadTxn& txn, const store::RunRecord& run
);

}  // namespace ars::runs
