#include "server/dto_agents.hpp"

#include "base/text.hpp"
#include "runtime/agents/agent_context.hpp"
#include "runtime/agents/agent_definition.hpp"
#include "server/dto_runs.hpp"
#include "server/json_body.hpp"

#include <boost/json/array.hpp>
#include <fmt/format.h>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::size_t kEtagDigits = 12;

bool is_plain(const agents::User& user) { return user.role == agents::UserRole::user; }

json::object* context_in(json::object& definition) {
    json::value* config = definition.if_contains("config_json");
    json::value* context = config != nullptr && config->is_object()
                               ? config->get_object().if_contains("context")
                               : nullptr;
    return context != nullptr ? context->if_object() : nullptr;
}

// The admin fields of a context, or all the others.
json::object part_of(const json::object& context, bool admin_fields) {
    json::object out;
    for (const auto& entry : context) {
        if (agents::is_admin_field(entry.key()) == admin_fields) {
            out.insert(entry);
        }
    }
    return out;
}

void hide_admin_fields(json::object& definition, const agents::User& user) {
    json::object* context = context_in(definition);
    if (context != nullptr && is_plain(user)) {
        *context = part_of(*context, false);
    }
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

// The shape of a body: which keys it may have. What they hold is decided by the table of
// definitions, when they stand over the rest of the agent.
struct BodyKeys {
    std::optional<std::string> slug;
    std::optional<json::value> name;
    std::optional<json::value> description;
    std::optional<json::value> backend_id;
    std::optional<json::value> icon;
    std::optional<json::value> pics;
    std::optional<json::value> config_json;
    std::optional<json::value> share_config;
    std::optional<json::value> is_subagent;
    bool set_default = false;
};

base::Fields<BodyKeys> keys_of_both(base::Rule name) {
    return base::Fields<BodyKeys>{}
        .any("name", &BodyKeys::name, name)
        .any("description", &BodyKeys::description)
        .any("icon", &BodyKeys::icon)
        .any("pics", &BodyKeys::pics)
        .any("config_json", &BodyKeys::config_json)
        .any("share_config", &BodyKeys::share_config)
        .any("is_subagent", &BodyKeys::is_subagent);
}

const base::Fields<BodyKeys>& agent_change_keys() {
    static const auto fields = keys_of_both({});
    return fields;
}

const base::Fields<BodyKeys>& new_agent_keys() {
    static const auto fields =
        keys_of_both({.required = true})
            .any("backend_id", &BodyKeys::backend_id)
            .text("slug", &BodyKeys::slug, {.doc = "Absent: made from the name."})
            .boolean(
                "set_default",
                &BodyKeys::set_default,
                {.doc = "Must be false: the default agent is default-chatbot."}
            );
    return fields;
}

// What no agent could take, whichever it is. An unknown backend is a missing thing, told later.
std::vector<base::Fault> faults_of_shape(const json::object& given) {
    json::object definition{{"slug", "any"}};
    for (const auto& entry : given) {
        if (!entry.value().is_null() && entry.key() != "backend_id") {
            definition.insert(entry);
        }
    }
    agents::AgentFields fields;
    return agents::agent_fields().decode(definition, fields);
}

std::expected<AgentBody, HttpResponse> read_keys(
    const HttpRequest& request, const base::Fields<BodyKeys>& fields
) {
    auto body = read_json(request);
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    BodyKeys keys;
    if (const auto faults = fields.decode(*body, keys); !faults.empty()) {
        return std::unexpected(faults_response(faults));
    }
    AgentBody out{std::move(body->get_object()), std::move(keys.slug), keys.set_default};
    out.given.erase("slug");
    out.given.erase("set_default");
    if (const auto faults = faults_of_shape(out.given); !faults.empty()) {
        return std::unexpected(faults_response(faults));
    }
    return out;
}

// The properties of a definition that the body may have, as the definition's own table describes
// them.
json::object body_schema(const base::Fields<BodyKeys>& fields) {
    const json::object definition = agents::agent_fields().schema();
    const json::object& known = definition.at("properties").as_object();
    json::object out = fields.schema();
    for (auto& entry : out.at("properties").as_object()) {
        if (const json::value* described = known.if_contains(entry.key());
            described != nullptr && entry.key() != "slug") {
            entry.value() = *described;
        }
    }
    return out;
}

}  // namespace

json::object agent_to_json(const agents::Agent& agent, const agents::User& user) {
    const agents::Permission permission = agents::permission(agent, user);
    json::object shown{{"config_json", agent.config_json}};
    hide_admin_fields(shown, user);
    return {
        {"id", agent.slug},
        {"slug", agent.slug},
        {"agent_id", agent.slug},
        {"backend_id", agent.backend_id},
        {"name", agent.name},
        {"description", agent.description},
        {"icon", text_or_null(agent.icon)},
        {"pics", json::array(agent.pics.begin(), agent.pics.end())},
        {"config_json", std::move(shown.at("config_json"))},
        {"share_config", agents::share_config_to_json(agent.share_config)},
        {"is_default", agent.is_default},
        {"is_subagent", agent.is_subagent},
        {"created_by", text_or_null(agent.created_by)},
        {"updated_by", text_or_null(agent.updated_by)},
        {"created_at", time_to_json(agent.created_ms)},
        {"updated_at", time_to_json(agent.updated_ms)},
        {"can_manage", permission == agents::Permission::manage},
        {"effective_permission", to_string(permission)},
        {"is_builtin", agent.is_builtin},
        {"permission_locked", agent.lock},
        {"version", agent.version},
        {"config_digest", text_or_null(agent.digest)},
        {"source",
         permission == agents::Permission::manage ? text_or_null(agent.source) : json::value()},
        {"capabilities", json::array{"files"}},
        {"metadata", json::object()}
    };
}

HttpResponse agent_response(const agents::Agent& agent, const agents::User& user, int status) {
    HttpResponse response = json_response({{"agent", agent_to_json(agent, user)}}, status);
    response.headers.emplace_back("ETag", etag_of(agent));
    return response;
}

json::object version_to_json(const agents::AgentVersion& version) {
    const std::uint64_t from = version.note.restored_from;
    return {
        {"version", version.number},
        {"action", agents::to_string(version.note.action)},
        {"updated_by", text_or_null(version.note.uid)},
        {"updated_at", time_to_json(version.at_ms)},
        {"config_digest", text_or_null(version.digest)},
        {"source", text_or_null(version.source)},
        {"restored_from", from == 0 ? json::value() : json::value(from)}
    };
}

json::object definition_to_json(const agents::AgentVersion& version, const agents::User& user) {
    json::object out = version.definition.value_or(json::object());
    hide_admin_fields(out, user);
    return out;
}

std::expected<AgentBody, HttpResponse> read_new_agent(const HttpRequest& request) {
    return read_keys(request, new_agent_keys());
}

std::expected<AgentBody, HttpResponse> read_agent_change(const HttpRequest& request) {
    return read_keys(request, agent_change_keys());
}

json::object new_agent_schema() { return body_schema(new_agent_keys()); }
json::object agent_change_schema() { return body_schema(agent_change_keys()); }

const base::Fields<RollbackBody>& rollback_fields() {
    static const auto fields = base::Fields<RollbackBody>{}.integer(
        "version",
        &RollbackBody::version,
        {.required = true, .min = 1, .doc = "Whose definition becomes the newest again."}
    );
    return fields;
}

json::object changed_definition(
    json::object definition, const json::object& given, const agents::User& user
) {
    const json::object* before = context_in(definition);
    const json::object bound =
        before != nullptr && is_plain(user) ? part_of(*before, true) : json::object();
    for (const auto& entry : given) {
        if (entry.value().is_null()) {
            definition.erase(entry.key());
        } else {
            definition[entry.key()] = entry.value();
        }
    }
    if (!is_plain(user)) {
        return definition;
    }
    hide_admin_fields(definition, user);
    if (bound.empty()) {
        return definition;
    }
    json::value& config = definition["config_json"];
    if (config.is_null()) {
        config = json::object();
    }
    if (auto* object = config.if_object()) {
        json::value& context = (*object)["context"];
        if (context.is_null()) {
            context = json::object();
        }
        if (auto* fields = context.if_object()) {
            fields->insert(bound.begin(), bound.end());
        }
    }
    return definition;
}

std::string etag_of(const agents::Agent& agent) {
    return fmt::format("\"{}-{}\"", agent.version, agent.digest.substr(0, kEtagDigits));
}

bool matches_etag(std::string_view header, const agents::Agent& agent) {
    const std::string own = etag_of(agent);
    while (!header.empty()) {
        const std::size_t comma = header.find(',');
        const std::string_view one = base::trim(header.substr(0, comma));
        if (one == "*" || one == own) {
            return true;
        }
        header = comma == std::string_view::npos ? std::string_view() : header.substr(comma + 1);
    }
    return false;
}

}  // namespace ars::server
