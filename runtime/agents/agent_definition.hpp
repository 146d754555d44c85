// What is written about an agent, in a file, a request body or the store: one field table, one set
// of checks. Who may write it, and which version it becomes, is decided elsewhere.
#pragma once

#include "base/fields.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/share_config.hpp"

#include <boost/json/object.hpp>

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace ars::agents {

struct AgentConfigFields {
    AgentContext context;
};
struct AgentFields {
    std::string slug;
    std::string name;
    std::string description;
    std::string backend_id{kChatbotBackend};
    std::optional<bool> is_subagent;
    std::optional<ShareConfigFields> share_config;
    AgentConfigFields config_json;
    std::string icon;
    std::vector<std::string> pics;
    bool lock = true;  // files only
};

// The keys that all places have. Those of a file are these and `lock`.
[[nodiscard]] const base::Fields<AgentFields>& agent_fields();
[[nodiscard]] const base::Fields<AgentFields>& agent_file_fields();

// What an agent may refer to by name. Nothing = not checked.
struct KnownNames {
    std::vector<std::string> tools{};
    std::vector<std::string> providers{};
    std::vector<std::string> policies{};
    std::vector<std::string> mcps{};
    std::vector<std::string> skills{};
    std::vector<std::string> knowledges{};
    std::optional<std::vector<std::string>> subagents{};
};

// Where a definition comes from.
struct DefinitionRules {
    const KnownNames* known = nullptr;  // nullptr: names were checked when it was saved
    AllowedLevels levels = AllowedLevels::all;
    ShareConfig default_share;  // when it says nothing about it
};

// The agent that `value` (decoded into `fields`) defines, names tidied, share_config in its normal
// form. Everything that contradicts itself or names what is not there becomes a fault in `place`;
// the agent is usable only when there is none. Versions, times and who made it are left empty.
[[nodiscard]] Agent make_agent(
    AgentFields fields,
    const boost::json::value& value,
    const DefinitionRules& rules,
    const base::FieldPlace& place
);

// Both steps for a definition that is JSON already.
[[nodiscard]] std::expected<Agent, std::vector<base::Fault>> parse_definition(
    const boost::json::object& definition, const DefinitionRules& rules
);

// What make_agent() was given, in its normal form: {slug, name, description, backend_id, icon,
// pics, share_config, config_json}.
[[nodiscard]] boost::json::object definition_of(const Agent& agent);
// sha256 of it, whatever the order of its keys.
[[nodiscard]] std::string definition_digest(const boost::json::object& definition);

}  // namespace ars::agents
