// The field table of config_json.context, shared by agent files, stored snapshots and the API.
#pragma once

#include "base/fields.hpp"
#include "runtime/agents/agent.hpp"

#include <string_view>

namespace ars::agents {

[[nodiscard]] const base::Fields<AgentContext>& agent_context_fields();

// Leaves nothing that a run of this context could use: what a user who is not there may use.
void take_resources(AgentContext& context);

// Those that bind a run against its user's wish: plain users neither see nor set them.
[[nodiscard]] bool is_admin_field(std::string_view name);

}  // namespace ars::agents
