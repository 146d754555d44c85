// What a run does next: ask the model, commit, run the tools, commit, repeat. Nothing here starts
// before what came before it is on disk.
#pragma once

#include "runtime/runs/delta_writer.hpp"
#include "runtime/runs/live_run.hpp"
#include "runtime/runs/prompt.hpp"
#include "runtime/runs/run_parts.hpp"
#include "runtime/runs/run_records.hpp"

#include <memory>
#include <vector>

namespace ars::runs {

class RunLoop {
  public:
    RunLoop(const RunParts& parts, const ToolSet& tools, ToolSchemas& schemas, LiveRunPtr run)
        : parts_(parts), tools_(tools), schemas_(schemas), run_(std::move(run)) {}

    // Serves the run until it has an end or waits for a person. nullopt: the end is already
    // committed (a final answer goes to disk together with its status); else the caller commits the
    // one returned. Throws
    // operation_aborted when cancelled, with every tool stopped.
    base::Task<std::optional<RunEnd>> serve();

  private:
    base::Task<std::optional<RunEnd>> tool_step(store::MessageRecord message, OpenCalls open);
    base::Task<std::optional<RunEnd>> model_step();
    [[nodiscard]] RunEnd interrupted_at(store::Seq message);
    [[nodiscard]] bool still_waits(const store::ToolCall& call, std::size_t index) const;
    [[nodiscard]] bool is_steered() const;
    RunEnd hand_over();
    base::Task<base::Result<models::ModelReply>> ask_model(
        class DeltaWriter& deltas, const models::ModelRequest& request, models::ModelClient& client
    );
    base::Task<std::optional<RunEnd>> commit_reply(
        models::ModelReply reply, std::string message_id, DeltaWriter::Rest rest
    );
    [[nodiscard]] store::MessageRecord assistant_message(
        const models::ModelReply& reply, std::string message_id
    ) const;
    [[nodiscard]] std::vector<store::CallRecord> intents(const store::MessageRecord& message) const;

    const RunParts& parts_;
    const ToolSet& tools_;
    ToolSchemas& schemas_;
    LiveRunPtr run_;
    std::vector<tools::Tool*> offered_;
};

}  // namespace ars::runs
