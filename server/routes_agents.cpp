// /api/agent: which agents a user may call. Agents come from files; there is no route that changes
// one.
#include "server/api.hpp"
#include "server/dto_agents.hpp"
#include "server/http_error.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace {

HttpResponse one_agent(Api& api, const HttpRequest& request, std::string_view slug) {
    const agents::AgentPtr agent = api.agents.find(slug, request.user);
    if (agent == nullptr) {
        return error_response(404, "agent_not_found", "there is no such agent");
    }
    return json_response({{"agent", agent_to_json(*agent, request.user)}});
}

HttpResponse list_agents(Api& api, const HttpRequest& request) {
    const std::string with = request.query("include_subagents").value_or("false");
    boost::json::array list;
    for (const agents::AgentPtr& agent :
         api.agents.list(request.user, with == "true" || with == "1")) {
        list.push_back(agent_to_json(*agent, request.user));
    }
    return json_response({{"agents", std::move(list)}});
}

HttpResponse default_agent(Api& api, const HttpRequest& request) {
    for (const agents::AgentPtr& agent : api.agents.list(request.user, false)) {
        if (agent->is_default) {
            return one_agent(api, request, agent->slug);
        }
    }
    return error_response(404, "agent_not_found", "there is no default agent");
}

HttpResponse get_agent(Api& api, const HttpRequest& request) {
    return one_agent(api, request, request.params[0]);
}

}  // namespace

void add_agent_routes(Router& router) {
    router.add(Method::get, "/api/agent", list_agents);
    router.add(Method::get, "/api/agent/default", default_agent);
    router.add(Method::get, "/api/agent/{slug}", get_agent);
}

}  // namespace ars::server
