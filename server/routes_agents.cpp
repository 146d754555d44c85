// /api/agent: which agents a user may call, and the making and changing of them.
#include "runtime/agents/agent_definition.hpp"
#include "runtime/agents/slug.hpp"
#include "server/api.hpp"
#include "server/dto_agents.hpp"
#include "server/http_error.hpp"
#include "server/json_body.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include <charconv>

namespace ars::server {

namespace {

namespace json = boost::json;
using agents::AgentPtr;
template <class T>
using Answer = std::expected<T, HttpResponse>;

// Somebody else's change in between makes a change without If-Match start again; more often than
// this in a row is no coincidence.
constexpr int kChangeTries = 16;

// Commits a line of the audit log with the change of an agent.
agents::Accompany audit_of(const HttpRequest& request, std::string_view action) {
    people::AuditEntry entry{request.caller(), std::string(action), "", {}};
    return [entry](store::WriteTxn& txn, const agents::AgentVersion& version) {
        people::AuditEntry line = entry;
        line.target = version.slug;
        line.detail = {{"version", version.number}};
        people::put_audit(txn, line);
    };
}

// The same for the server's log, once it is committed.
void log_change(
    const Api& api, const HttpRequest& request, std::string_view action, const std::string& slug
) {
    people::log_audit(api.log, {request.caller(), std::string(action), slug, {}});
}

std::string_view action_name(agents::VersionAction action) {
    return action == agents::VersionAction::rolled_back ? "agent.rollback" : "agent.update";
}

HttpResponse agent_not_found() {
    return error_response(404, "agent_not_found", "there is no such agent");
}

HttpResponse get_agent(Api& api, const HttpRequest& request) {
    const AgentPtr agent = api.agents.find(request.params[0], request.user);
    return agent ? agent_response(*agent, request.user) : agent_not_found();
}

HttpResponse list_agents(Api& api, const HttpRequest& request) {
    auto with_subagents = flag_of(request, "include_subagents", false);
    if (!with_subagents) {
        return std::move(with_subagents.error());
    }
    json::array list;
    for (const AgentPtr& agent : api.agents.list(request.user, *with_subagents)) {
        list.push_back(agent_to_json(*agent, request.user));
    }
    return json_response({{"agents", std::move(list)}});
}

HttpResponse default_agent(Api& api, const HttpRequest& request) {
    const AgentPtr agent = api.agents.find(agents::kDefaultAgent, request.user);
    return agent ? agent_response(*agent, request.user)
                 : error_response(404, "agent_not_found", "there is no default agent");
}

// Every name that an agent of this user may hold: the appliance's, and the sub-agents he may see.
agents::KnownNames names_for(const Api& api, const agents::User& user, const agents::Agent* now) {
    agents::KnownNames names = api.names;
    names.subagents.emplace();
    for (const AgentPtr& agent : api.agents.list(user, true)) {
        if (agent->is_subagent) {
            names.subagents->push_back(agent->slug);
        }
    }
    // What somebody else put there may stay.
    if (now != nullptr && now->context.subagents) {
        names.subagents->insert(
            names.subagents->end(), now->context.subagents->begin(), now->context.subagents->end()
        );
    }
    return names;
}

// The agent of the path, for a change by this user.
Answer<AgentPtr> agent_to_change(Api& api, const HttpRequest& request) {
    const agents::User& user = request.user;
    AgentPtr agent = api.agents.find(request.params[0], user);
    if (!agent) {
        return std::unexpected(agent_not_found());
    }
    if (agents::permission(*agent, user) != agents::Permission::manage) {
        return std::unexpected(
            error_response(403, "agent_not_managed", "you may use this agent, but not change it")
        );
    }
    if (agent->lock) {
        return std::unexpected(error_response(
            409,
            "agent_locked",
            fmt::format(
                "the file {} decides about this agent: change it there and reload, or write lock: "
                "false in it",
                agent->source
            )
        ));
    }
    const auto expected = request.header("if-match");
    if (expected && !matches_etag(*expected, *agent)) {
        return std::unexpected(error_response(
            412,
            "agent_changed",
            "the agent is another version than the one that If-Match names: read it again and "
            "repeat the change",
            {{"etag", etag_of(*agent)}}
        ));
    }
    return agent;
}

std::optional<HttpResponse> refuse_unknown_backend(const json::object& given) {
    const json::value* backend = given.if_contains("backend_id");
    const auto* name = backend != nullptr ? backend->if_string() : nullptr;
    if (name == nullptr || *name == agents::kChatbotBackend || *name == agents::kSubAgentBackend) {
        return std::nullopt;
    }
    return error_response(
        404,
        "backend_not_found",
        fmt::format(
            "there is no backend of that name; known: {} and {}",
            agents::kChatbotBackend,
            agents::kSubAgentBackend
        )
    );
}

// The agent that a POST asks for, with the slug that is free now when the body names none.
Answer<agents::Agent> new_agent(Api& api, const HttpRequest& request, const AgentBody& body) {
    const agents::User& user = request.user;
    const json::value* name = body.given.if_contains("name");
    const std::string wanted =
        name != nullptr && name->is_string() ? std::string(name->get_string()) : std::string();
    const auto taken = [&api](std::string_view slug) { return api.agents.at(slug) != nullptr; };
    json::object definition = changed_definition({}, body.given, user);
    definition["slug"] =
        body.slug ? *body.slug : agents::free_slug(agents::make_slug(wanted), taken);
    const agents::KnownNames names = names_for(api, user, nullptr);
    auto parsed = agents::parse_definition(
        definition,
        {.known = &names,
         .levels = agents::allowed_levels(user.role),
         .default_share =
             {.read_scope = agents::AccessScope{agents::AccessLevel::user, {}, {user.uid}},
              .manage_scope = {}}}
    );
    if (!parsed) {
        return std::unexpected(faults_response(parsed.error()));
    }
    return std::move(*parsed);
}

base::Task<HttpResponse> create_agent(Api& api, const HttpRequest& request) {
    Answer<AgentBody> body = read_new_agent(request);
    if (!body) {
        co_return std::move(body.error());
    }
    if (body->set_default) {
        co_return faults_response(
            {{"/set_default", "must be false", "the default agent is default-chatbot"}}
        );
    }
    if (auto refused = refuse_unknown_backend(body->given)) {
        co_return std::move(*refused);
    }
    for (int tries = 0;; ++tries) {
        Answer<agents::Agent> agent = new_agent(api, request, *body);
        if (!agent) {
            co_return std::move(agent.error());
        }
        const auto made = co_await api.catalog.create(
            std::move(*agent), request.user.uid, audit_of(request, "agent.create")
        );
        if (made) {
            log_change(api, request, "agent.create", (*made)->slug);
            co_return agent_response(**made, request.user, 201);
        }
        // A slug made from the name was free a moment ago: the next one may be.
        if (body->slug || made.error().code != "slug_taken" || tries == kChangeTries) {
            co_return error_response(made.error());
        }
    }
}

// Puts what was given over the agent of the path, as its next version.
base::Task<HttpResponse> change_agent(
    Api& api, const HttpRequest& request, json::object given, agents::VersionNote note
) {
    note.uid = request.user.uid;
    for (int tries = 0;; ++tries) {
        Answer<AgentPtr> now = agent_to_change(api, request);
        if (!now) {
            co_return std::move(now.error());
        }
        const agents::KnownNames names = names_for(api, request.user, now->get());
        auto next = agents::parse_definition(
            changed_definition(agents::definition_of(**now), given, request.user),
            {.known = &names,
             // Who leaves the scopes as they are need not be allowed to write them.
             .levels = given.contains("share_config") ? agents::allowed_levels(request.user.role)
                                                      : agents::AllowedLevels::all,
             .default_share =
                 {.read_scope =
                      agents::AccessScope{agents::AccessLevel::user, {}, {request.user.uid}},
                  .manage_scope = {}}}
        );
        if (!next) {
            co_return faults_response(next.error());
        }
        if (agents::definition_digest(agents::definition_of(*next)) == (*now)->digest) {
            co_return agent_response(**now, request.user);
        }
        const auto changed = co_await api.catalog.change(
            *now, std::move(*next), note, audit_of(request, action_name(note.action))
        );
        if (changed && !*changed) {
            co_return agent_not_found();  // deleted since
        }
        if (changed) {
            log_change(api, request, action_name(note.action), (*changed)->slug);
            co_return agent_response(**changed, request.user);
        }
        if (changed.error().code != "agent_changed" || tries == kChangeTries) {
            co_return error_response(changed.error());
        }
    }
}

base::Task<HttpResponse> update_agent(Api& api, const HttpRequest& request) {
    Answer<AgentBody> body = read_agent_change(request);
    if (!body) {
        co_return std::move(body.error());
    }
    co_return co_await change_agent(
        api, request, std::move(body->given), {agents::VersionAction::updated, {}, 0}
    );
}

base::Task<HttpResponse> delete_agent(Api& api, const HttpRequest& request) {
    for (int tries = 0;; ++tries) {
        Answer<AgentPtr> now = agent_to_change(api, request);
        if (!now) {
            co_return std::move(now.error());
        }
        const agents::Agent& agent = **now;
        if (agent.is_default) {
            co_return error_response(409, "agent_is_default", "the default agent can't be deleted");
        }
        const auto removed =
            co_await api.catalog.remove(*now, request.user.uid, audit_of(request, "agent.delete"));
        if (removed) {
            log_change(api, request, "agent.delete", agent.slug);
            json::object done{{"success", true}};
            if (agent.is_builtin || !agent.source.empty()) {
                done["note"] = fmt::format(
                    "{} brings it back at the next start or reload",
                    agent.source.empty() ? "ars" : "the file " + agent.source
                );
            }
            co_return json_response(done);
        }
        if (removed.error().code != "agent_changed" || tries == kChangeTries) {
            co_return error_response(removed.error());
        }
    }
}

HttpResponse set_default(Api& api, const HttpRequest& request) {
    if (request.user.role == agents::UserRole::user) {
        return error_response(403, "admins_only", "only an admin may choose the default agent");
    }
    const AgentPtr agent = api.agents.find(request.params[0], request.user);
    if (!agent) {
        return agent_not_found();
    }
    if (!agent->is_default) {
        return error_response(
            422, "default_is_fixed", "the default agent is always default-chatbot"
        );
    }
    return agent_response(*agent, request.user);
}

// Who may manage an agent may read its history.
Answer<AgentPtr> agent_with_history(Api& api, const HttpRequest& request) {
    AgentPtr agent = api.agents.find(request.params[0], request.user);
    if (!agent) {
        return std::unexpected(agent_not_found());
    }
    if (agents::permission(*agent, request.user) != agents::Permission::manage) {
        return std::unexpected(error_response(
            403, "agent_not_managed", "only who may change an agent sees its versions"
        ));
    }
    return agent;
}

HttpResponse list_versions(Api& api, const HttpRequest& request) {
    Answer<AgentPtr> agent = agent_with_history(api, request);
    if (!agent) {
        return std::move(agent.error());
    }
    json::array list;
    for (const agents::AgentVersion& version : api.catalog.versions((*agent)->slug)) {
        list.push_back(version_to_json(version));
    }
    std::reverse(list.begin(), list.end());
    return json_response({{"versions", std::move(list)}});
}

std::optional<agents::AgentVersion> version_at(
    const Api& api, const std::string& slug, std::string_view number
) {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size()) {
        return std::nullopt;
    }
    return api.catalog.version(slug, value);
}

HttpResponse version_not_found() {
    return error_response(
        404, "version_not_found", "the agent has no such version, or it is no longer kept"
    );
}

HttpResponse get_version(Api& api, const HttpRequest& request) {
    Answer<AgentPtr> agent = agent_with_history(api, request);
    if (!agent) {
        return std::move(agent.error());
    }
    const auto version = version_at(api, (*agent)->slug, request.params[1]);
    if (!version) {
        return version_not_found();
    }
    json::object out = version_to_json(*version);
    out["definition"] =
        version->alive() ? json::value(definition_to_json(*version, request.user)) : json::value();
    return json_response({{"version", std::move(out)}});
}

base::Task<HttpResponse> roll_back(Api& api, const HttpRequest& request) {
    auto body = read_body(request, rollback_fields());
    if (!body) {
        co_return std::move(body.error());
    }
    Answer<AgentPtr> now = agent_to_change(api, request);
    if (!now) {
        co_return std::move(now.error());
    }
    const auto version = api.catalog.version((*now)->slug, body->version);
    if (!version || !version->alive()) {
        co_return version_not_found();
    }
    // What stays the same is not written, so that it need not be allowed to this user.
    json::object given = *version->definition;
    for (const auto& entry : agents::definition_of(**now)) {
        const json::value* before = given.if_contains(entry.key());
        if (before != nullptr && *before == entry.value()) {
            given.erase(entry.key());
        }
    }
    given.erase("backend_id");
    co_return co_await change_agent(
        api, request, std::move(given), {agents::VersionAction::rolled_back, {}, body->version}
    );
}

}  // namespace

void add_agent_routes(Router& router) {
    router.add(Method::get, "/api/agent", list_agents);
    router.add(Method::post, "/api/agent", create_agent);
    router.add(Method::get, "/api/agent/default", default_agent);
    router.add(Method::get, "/api/agent/{slug}", get_agent);
    router.add(Method::put, "/api/agent/{slug}", update_agent);
    router.add(Method::del, "/api/agent/{slug}", delete_agent);
    router.add(Method::post, "/api/agent/{slug}/set_default", set_default);
    router.add(Method::get, "/api/agent/{slug}/versions", list_versions);
    router.add(Method::get, "/api/agent/{slug}/versions/{version}", get_version);
    router.add(Method::post, "/api/agent/{slug}/rollback", roll_back);
}

}  // namespace ars::server
