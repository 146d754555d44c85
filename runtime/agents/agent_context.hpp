// The field table of config_json.context, shared by agent files, stored snapshots and the API.
#pragma once

#include "base/fields.hpp"
#include "runtime/agents/agent.hpp"

namespace ars::agents {

[[nodiscard]] const base::Fields<AgentContext>& agent_context_fields();

}  // namespace ars::agents
