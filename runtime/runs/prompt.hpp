// What a model is asked: system prompt, history, tools. Pure: the same run gives the same request.
#pragma once

#include "runtime/models/model_client.hpp"
#include "runtime/runs/live_run.hpp"
#include "runtime/runs/run_parts.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ars::runs {

// RunRecord::approval_mode in which nobody is asked.
inline constexpr std::string_view kAlwaysTrust = "always_trust";
inline constexpr std::string_view kAskFirst = "default";
[[nodiscard]] constexpr std::string_view name_of(agents::ApprovalMode mode) {
    return mode == agents::ApprovalMode::always_trust ? kAlwaysTrust : kAskFirst;
}
// Tools that change things: in any other mode a person decides about each of their calls.
[[nodiscard]] bool needs_approval(std::string_view tool);

// The tools this run offers, in the order of the set: the agent's allow-list, minus what a
// sub-agent never gets, minus the sub-agent tools when there is nobody to call, minus what would
// need an approval that nobody can give a sub-agent.
[[nodiscard]] std::vector<tools::Tool*> offered_tools(const LiveRun& run, const ToolSet& all);

// The tools as models are told of them, each made at its first use. They outlive the runs.
class ToolSchemas {
  public:
    [[nodiscard]] models::ToolSchemaPtr of(const tools::Tool& tool);

  private:
    std::unordered_map<const tools::Tool*, models::ToolSchemaPtr> made_;
};

// The history with each assistant message followed by the results of its calls, in call order: what
// strict providers demand. Precondition: no call is open.
[[nodiscard]] models::ModelRequest model_request(
    const LiveRun& run,
    const std::vector<tools::Tool*>& tools,
    ToolSchemas& schemas,
    std::string model
);

// Indexes of the calls of the last assistant message that have no result yet.
struct OpenCalls {
    const store::MessageRecord* message = nullptr;
    std::vector<std::size_t> indexes;
};
[[nodiscard]] OpenCalls open_calls(const std::vector<store::MessageRecord>& history);

}  // namespace ars::runs
