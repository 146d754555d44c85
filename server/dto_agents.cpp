#include "server/dto_agents.hpp"

#include "runtime/agents/agent_context.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/agents/share_config.hpp"
#include "server/dto_runs.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

json::object visible_config(const json::object& config, const agents::User& user) {
    json::object out = config;
    json::value* context = out.if_contains("context");
    if (user.role == agents::UserRole::user && context != nullptr && context->is_object()) {
        json::object shown;
        for (const auto& entry : context->get_object()) {
            if (!agents::is_admin_field(entry.key())) {
                shown.insert(entry);
            }
        }
        *context = std::move(shown);
    }
    return out;
}

const char* to_string(agents::Permission permission) {
    switch (permission) {
        case agents::Permission::none:
            return "none";
        case agents::Permission::read:
            return "read";
        case agents::Permission::manage:
            return "manage";
    }
    return "none";
}

json::value text_or_null(std::string_view text) {
    return text.empty() ? json::value() : json::value(text);
}

}  // namespace

json::object agent_to_json(const agents::Agent& agent, const agents::User& user) {
    const agents::Permission permission = agents::permission(agent, user);
    return {
        {"id", agent.slug},
        {"slug", agent.slug},
        {"agent_id", agent.slug},
        {"backend_id", agent.backend_id},
        {"name", agent.name},
        {"description", agent.description},
        {"icon", text_or_null(agent.icon)},
        {"pics", json::array()},
        {"config_json", visible_config(agent.config_json, user)},
        {"share_config", agents::share_config_to_json(agent.share_config)},
        {"is_default", agent.is_default},
        {"is_subagent", agent.is_subagent},
        {"created_by", text_or_null(agent.created_by)},
        {"updated_by", text_or_null(agent.created_by)},
        {"created_at", time_to_json(agent.created_ms)},
        {"updated_at", time_to_json(agent.updated_ms)},
        {"can_manage", permission == agents::Permission::manage},
        {"effective_permission", to_string(permission)},
        {"is_builtin", agent.is_builtin},
        {"permission_locked", agent.lock},
        {"capabilities", json::array{"files"}},
        {"metadata", json::object()}
    };
}

}  // namespace ars::server
