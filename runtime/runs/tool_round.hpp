// One turn's tool calls: all at once, each result committed when it is there, and after a crash
// each open call treated by what its tool promises.
#pragma once

#include "runtime/runs/live_run.hpp"
#include "runtime/runs/run_parts.hpp"
#include "runtime/tools/tool.hpp"

#include <boost/json/object.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ars::runs {

// A result on its way to the disk.
struct StoredResult {
    store::MessageRecord message;
    boost::json::object facts;
    std::string state;  // the thread's after it; empty = unchanged
    std::uint32_t step = 0;
    std::uint32_t index = 0;
};
void write_result(store::WriteTxn& txn, const store::RunRecord& run, StoredResult& result);

class ToolRound {
  public:
    ToolRound(const RunParts& parts, LiveRunPtr run, std::vector<tools::Tool*> offered)
        : parts_(parts), run_(std::move(run)), offered_(std::move(offered)) {}

    // Runs the calls of `message` (an assistant message of the run's history) at `indexes` and
    // returns when each has a committed result. When cancelled, every tool has stopped before
    // operation_aborted is thrown.
    base::Task<base::Result<void>> run(
        store::MessageRecord message, std::vector<std::size_t> indexes
    );

    // The results of those calls of `message` whose tools are pure and whose arguments are
    // readable, to be written with the message itself.
    base::Task<std::vector<StoredResult>> answer_pure(const store::MessageRecord& message);

    // True when at least one call had readable arguments.
    [[nodiscard]] bool any_readable() const { return any_readable_; }

  private:
    base::Task<void> serve_call(const store::MessageRecord* message, std::size_t index);
    base::Task<tools::ToolResult> perform(store::ToolCall call, std::size_t index);
    base::Task<tools::ToolResult> call_tool(
        tools::Tool* tool, const tools::ToolContext* context, boost::json::object arguments
    );
    [[nodiscard]] base::Task<tools::ToolResult> redacted(tools::ToolResult result);
    base::Task<tools::ToolResult> guarded_call(
        tools::Tool* tool, const tools::ToolContext* context, boost::json::object arguments
    );
    [[nodiscard]] store::MessageRecord result_message(
        const store::ToolCall& call, std::chrono::steady_clock::time_point started
    ) const;
    [[nodiscard]] StoredResult stored_result(
        store::MessageRecord message, tools::ToolResult result, std::size_t index
    );
    [[nodiscard]] tools::Tool* find(std::string_view name) const;
    [[nodiscard]] std::string tool_names() const;
    [[nodiscard]] tools::ToolContext context_for(const store::ToolCall& call, std::size_t index)
        const;
    base::Task<base::Result<void>> store_result(
        store::MessageRecord message, tools::ToolResult result, std::size_t index
    );

    const RunParts& parts_;
    LiveRunPtr run_;
    std::vector<tools::Tool*> offered_;
    bool rerun_ = false;
    bool any_readable_ = false;
    std::uint32_t step_ = 0;
    std::optional<base::Error> failure_;  // of a commit: ends the run
};

// The arguments a model wrote: "" and null mean none, anything else must be an object. The error's
// sentence is for the model.
[[nodiscard]] base::Result<boost::json::object> parse_arguments(const std::string& text);

// "<run id>:<step>:<index>"
[[nodiscard]] std::string make_call_id(
    std::string_view run_id, std::uint32_t step, std::size_t index
);
// The step in such an id; 0 when it has none.
[[nodiscard]] std::uint32_t step_of_call_id(std::string_view call_id);

}  // namespace ars::runs
