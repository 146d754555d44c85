// Runs that a tool call starts: the implementation of tools::ChildRuns. Ownership is checked here,
// before and after every wait: a run that this parent did not start looks missing.
#pragma once

#include "runtime/runs/run_parts.hpp"
#include "runtime/runs/run_supervisor.hpp"
#include "runtime/tools/child_runs.hpp"

namespace ars::runs {

class ChildRunService final : public tools::ChildRuns {
  public:
    ChildRunService(const RunParts& parts, RunSupervisor& supervisor)
        : parts_(parts), supervisor_(supervisor) {}

    base::Task<base::Result<boost::json::object>> start(
        const tools::ToolContext& context, tools::StartChild request
    ) override;
    base::Task<base::Result<boost::json::object>> status(
        const tools::ToolContext& context, std::string run_id
    ) override;
    base::Task<base::Result<boost::json::object>> await(
        const tools::ToolContext& context, std::string run_id, base::milliseconds limit
    ) override;
    base::Task<base::Result<boost::json::object>> cancel(
        const tools::ToolContext& context, std::string run_id
    ) override;

  private:
    struct Plan;  // everything a child's transaction needs
    [[nodiscard]] base::Result<Plan> plan(
        const LiveRun& parent, const tools::ToolContext& context, const tools::StartChild& request
    ) const;
    [[nodiscard]] base::Result<store::RunRecord> owned(
        const tools::ToolContext& context, const std::string& run_id
    ) const;

    const RunParts& parts_;
    RunSupervisor& supervisor_;
};

// "<parent thread>_sub_<slug>_<8 hex>", the same for the same call: a replay finds the same thread.
[[nodiscard]] std::string child_thread_id(
    std::string_view parent_thread_id, std::string_view slug, std::string_view call_id
);

}  // namespace ars::runs
