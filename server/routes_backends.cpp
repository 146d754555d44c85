// /api/agent/backends: what kinds of agents there are, and what can be set about each.
#include "runtime/agents/agent_context.hpp"
#include "server/api.hpp"
#include "server/http_error.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>

#include <algorithm>

namespace ars::server {

namespace {

namespace json = boost::json;
using agents::AgentContext;

struct Backend {
    std::string_view id;
    std::string_view name;
    std::string_view description;
};
constexpr Backend kBackends[] = {
    {agents::kChatbotBackend,
     "Main agent",
     "Talks with users, runs tools and hands work to sub-agents."},
    {agents::kSubAgentBackend,
     "Sub-agent",
     "Does a piece of work for a main agent, in a thread of its own, and is never called directly."
    },
};

// What a sub-agent never gets, whatever its list says.
constexpr std::string_view kMainAgentTools[] = {
    "present_artifacts",
    "ask_user_question",
    "install_skill",
    "task",
    "subagent_start",
    "subagent_status",
    "subagent_await",
    "subagent_cancel",
};

json::array options_of(std::string_view field, const Api& api, const agents::User& user, bool sub) {
    const auto list = [](const std::vector<std::string>& names) {
        return json::array(names.begin(), names.end());
    };
    json::array out;
    if (field == "tools") {
        for (const std::string& tool : api.names.tools) {
            if (!sub || std::ranges::find(kMainAgentTools, tool) == std::end(kMainAgentTools)) {
                out.emplace_back(tool);
            }
        }
    } else if (field == "model") {
        out = list(api.names.providers);
    } else if (field == "policy") {
        out = list(api.names.policies);
    } else if (field == "mcps") {
        out = list(api.names.mcps);
    } else if (field == "skills" || field == "preload_skills") {
        out = list(api.names.skills);
    } else if (field == "knowledges") {
        out = list(api.names.knowledges);
    } else if (field == "subagents") {
        for (const agents::AgentPtr& agent : api.agents.list(user, true)) {
            if (agent->is_subagent) {
                out.emplace_back(agent->slug);
            }
        }
    }
    return out;
}

std::string_view kind_of(std::string_view field) {
    static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
        {"system_prompt", "prompt"},
        {"summary_prompt", "prompt"},
        {"model", "llm"},
        {"tools", "tools"},
        {"knowledges", "knowledges"},
        {"mcps", "mcps"},
        {"skills", "skills"},
        {"preload_skills", "skills"},
        {"subagents", "subagents"},
        {"policy", "policy"},
    };
    for (const auto& [name, kind] : kKinds) {
        if (name == field) {
            return kind;
        }
    }
    return "value";
}

json::object items_of(const Backend& backend, const Api& api, const agents::User& user) {
    const bool sub = backend.id == agents::kSubAgentBackend;
    const json::object schema = agents::agent_context_fields().schema();
    json::object out;
    for (const auto& [field, property] : schema.at("properties").as_object()) {
        const std::string_view name = field;
        const bool admin = agents::is_admin_field(name);
        if ((admin && user.role == agents::UserRole::user) || (sub && name == "subagents")) {
            continue;
        }
        json::object item{{"kind", kind_of(name)}, {"admin", admin}};
        for (const char* key : {"type", "description", "default", "enum", "minimum", "maximum"}) {
            if (const json::value* value = property.as_object().if_contains(key)) {
                item[key] = *value;
            }
        }
        item.emplace("default", nullptr);
        item["options"] = options_of(name, api, user, sub);
        out[field] = std::move(item);
    }
    return out;
}

json::object backend_to_json(const Backend& backend, const Api& api, const agents::User& user) {
    return {
        {"backend_id", backend.id},
        {"type", "agent_backend"},
        {"name", backend.name},
        {"description", backend.description},
        {"metadata", json::object()},
        {"configurable_items", items_of(backend, api, user)},
        {"capabilities", json::array{"files"}}
    };
}

HttpResponse list_backends(Api& api, const HttpRequest& request) {
    json::array list;
    for (const Backend& backend : kBackends) {
        list.push_back(backend_to_json(backend, api, request.user));
    }
    return json_response({{"backends", std::move(list)}});
}

HttpResponse get_backend(Api& api, const HttpRequest& request) {
    const auto found = std::ranges::find(kBackends, request.params[0], &Backend::id);
    if (found == std::end(kBackends)) {
        return error_response(
            404,
            "backend_not_found",
            "there is no such backend; known: ChatbotAgent and SubAgentBackend"
        );
    }
    return json_response(backend_to_json(*found, api, request.user));
}

}  // namespace

void add_backend_routes(Router& router) {
    router.add(Method::get, "/api/agent/backends", list_backends);
    router.add(Method::get, "/api/agent/backends/{id}", get_backend);
}

}  // namespace ars::server
