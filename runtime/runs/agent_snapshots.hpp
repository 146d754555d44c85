// An agent's context as runs keep it: JSON text in each run's record, parsed again when the run is
// served. Runs of one agent have the same text, so both directions are worth remembering.
#pragma once

#include "base/result.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/agent_table.hpp"

#include <memory>
#include <string>
#include <unordered_map>

namespace ars::runs {

using ContextPtr = std::shared_ptr<const agents::AgentContext>;

// Touched only on the manager's executor.
class AgentSnapshots {
  public:
    [[nodiscard]] std::string text_of(const agents::AgentPtr& agent);
    [[nodiscard]] base::Result<ContextPtr> parse(const std::string& text);

  private:
    std::unordered_map<agents::AgentPtr, std::string> texts_;
    std::unordered_map<std::string, ContextPtr> contexts_;
};

}  // namespace ars::runs
