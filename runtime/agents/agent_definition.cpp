#include "runtime/agents/agent_definition.hpp"

#include "base/digest.hpp"
#include "base/text.hpp"
#include "runtime/agents/agent_context.hpp"
#include "runtime/agents/slug.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ars::agents {

namespace {

namespace json = boost::json;
using base::FieldPlace;

constexpr std::int64_t kNameBytes = 400;
constexpr std::int64_t kTextBytes = 4096;  // a description, an image address
constexpr std::int64_t kPics = 32;

std::string check_picture(std::string_view text) {
    return text.size() > static_cast<std::size_t>(kTextBytes) ? "is longer than 4096 bytes" : "";
}

const base::Fields<AgentConfigFields>& config_fields() {
    static const auto fields = base::Fields<AgentConfigFields>{}.object(
        "context",
        &AgentConfigFields::context,
        agent_context_fields(),
        {.doc = "How the agent runs."}
    );
    return fields;
}

base::Fields<AgentFields> common_fields() {
    return base::Fields<AgentFields>{}
        .text(
            "slug",
            &AgentFields::slug,
            {.required = true, .check = check_slug, .doc = "The agent's name in URLs and tools."}
        )
        .text("name", &AgentFields::name, {.max = kNameBytes, .doc = "Shown to people."})
        .text(
            "description",
            &AgentFields::description,
            {.max = kTextBytes, .doc = "What it is for; a main agent chooses by it."}
        )
        .choice(
            "backend_id",
            &AgentFields::backend_id,
            {{kChatbotBackend, std::string(kChatbotBackend)},
             {kSubAgentBackend, std::string(kSubAgentBackend)}},
            {.doc = "Main agent or sub-agent."}
        )
        .boolean(
            "is_subagent",
            &AgentFields::is_subagent,
            {.doc = "Derived from backend_id; may be written, must not contradict it."}
        )
        .object(
            "share_config",
            &AgentFields::share_config,
            share_config_fields(),
            {.doc = "Who may read and manage it. Absent in a file: everybody reads; in a request: "
                    "only its creator."}
        )
        .object("config_json", &AgentFields::config_json, config_fields())
        .text("icon", &AgentFields::icon, {.max = kTextBytes, .doc = "An image address."})
        .texts(
            "pics",
            &AgentFields::pics,
            {.max = kPics, .check = check_picture, .doc = "More image addresses."}
        );
}

bool faulty(const FieldPlace& place) {
    return std::ranges::any_of(place.faults, [&](const base::Fault& fault) {
        return fault.path == place.path;
    });
}

void check_backend(const AgentFields& fields, const FieldPlace& root) {
    if (faulty(root.at("backend_id"))) {
        return;
    }
    const bool is_sub = fields.backend_id == kSubAgentBackend;
    if (fields.is_subagent && *fields.is_subagent != is_sub) {
        root.at("is_subagent")
            .fault(
                fmt::format("is_subagent must be {} for backend_id {}", is_sub, fields.backend_id),
                "remove the key (it follows from backend_id) or change backend_id"
            );
    }
    if (is_sub && fields.config_json.context.subagents) {
        root.at("config_json")
            .at("context")
            .at("subagents")
            .fault("a sub-agent can't call sub-agents", "remove the key");
    }
    if (fields.slug == kDefaultAgent && is_sub) {
        root.at("backend_id")
            .fault("the default agent can't be a sub-agent", "write backend_id: ChatbotAgent");
    }
    if (fields.slug == kGeneralPurpose && !is_sub) {
        root.at("backend_id")
            .fault(
                "general-purpose is the built-in sub-agent",
                "write backend_id: SubAgentBackend, or give the agent another slug"
            );
    }
}

void check_name(
    const std::string& name,
    std::string_view kind,
    const std::vector<std::string>& known,
    const FieldPlace& place
) {
    if (faulty(place) || std::ranges::find(known, name) != known.end()) {
        return;
    }
    const std::string meant = base::closest_name(name, known);
    place.fault(
        fmt::format("unknown {} \"{}\"", kind, name),
        (meant.empty() ? "" : "did you mean \"" + meant + "\"? ") +
            fmt::format("known: {}", base::list_names(known))
    );
}

void check_listed(
    const std::optional<std::vector<std::string>>& names,
    std::string_view kind,
    const std::vector<std::string>& known,
    const FieldPlace& place
) {
    for (std::size_t i = 0; names && i < names->size(); ++i) {
        check_name(std::string(base::trim((*names)[i])), kind, known, place.at(i));
    }
}

void check_model(const std::string& spec, const KnownNames& known, const FieldPlace& place) {
    if (base::trim(spec).empty()) {
        return;
    }
    const std::size_t colon = spec.find(':');
    if (colon == std::string::npos || colon + 1 == spec.size()) {
        place.fault(
            "\"" + spec + "\" is not a model spec",
            "write <provider>:<model>; providers: " + base::list_names(known.providers)
        );
    } else {
        check_name(
            std::string(base::trim(spec.substr(0, colon))), "provider", known.providers, place
        );
    }
}

void check_names(const AgentContext& context, const KnownNames& known, const FieldPlace& place) {
    check_model(context.model, known, place.at("model"));
    check_listed(context.tools, "tool", known.tools, place.at("tools"));
    check_listed(context.mcps, "MCP server", known.mcps, place.at("mcps"));
    check_listed(context.skills, "skill", known.skills, place.at("skills"));
    check_listed(context.knowledges, "knowledge base", known.knowledges, place.at("knowledges"));
    check_name(context.policy, "policy", known.policies, place.at("policy"));
    if (known.subagents) {
        check_listed(context.subagents, "sub-agent", *known.subagents, place.at("subagents"));
    }
}

void check_preloaded(const AgentContext& context, const FieldPlace& place) {
    for (std::size_t i = 0; context.skills && i < context.preload_skills.size(); ++i) {
        if (std::ranges::find(*context.skills, context.preload_skills[i]) ==
            context.skills->end()) {
            place.at("preload_skills")
                .at(i)
                .fault(
                    "\"" + context.preload_skills[i] + "\" is not among `skills`",
                    "add it there too"
                );
        }
    }
}

// Trimmed, without duplicates, in first-seen order: what people may write loosely, the runtime
// reads exactly.
void tidy(std::vector<std::string>& list) {
    std::vector<std::string> out;
    for (const std::string& raw : list) {
        std::string item(base::trim(raw));
        if (std::ranges::find(out, item) == out.end()) {
            out.push_back(std::move(item));
        }
    }
    list = std::move(out);
}

void tidy_lists(AgentContext& context) {
    for (auto* list : {&context.tools, &context.knowledges, &context.mcps, &context.skills}) {
        if (*list) {
            tidy(**list);
        }
    }
    tidy(context.preload_skills);
    context.model = base::trim(context.model);
}

ShareConfig checked_share(
    const AgentFields& fields, const DefinitionRules& rules, const FieldPlace& root
) {
    ShareConfig share =
        fields.share_config
            ? checked_share_config(*fields.share_config, root.at("share_config"), rules.levels)
            : rules.default_share;
    if (fields.slug == kDefaultAgent &&
        (!share.read_scope || share.read_scope->level != AccessLevel::global)) {
        root.at("share_config")
            .at("read_scope")
            .fault("the default agent must be readable by everybody", "write access_level: global");
    }
    return share;
}

json::value with_sorted_keys(const json::value& value) {
    if (const auto* array = value.if_array()) {
        json::array out;
        for (const json::value& item : *array) {
            out.push_back(with_sorted_keys(item));
        }
        return out;
    }
    const auto* object = value.if_object();
    if (object == nullptr) {
        return value;
    }
    std::vector<const json::key_value_pair*> entries;
    for (const auto& entry : *object) {
        entries.push_back(&entry);
    }
    std::ranges::sort(entries, {}, [](const auto* entry) {
        return std::string_view(entry->key().data(), entry->key().size());
    });
    json::object out;
    for (const auto* entry : entries) {
        out[entry->key()] = with_sorted_keys(entry->value());
    }
    return out;
}

}  // namespace

const base::Fields<AgentFields>& agent_fields() {
    static const auto fields = common_fields();
    return fields;
}

const base::Fields<AgentFields>& agent_file_fields() {
    static const auto fields = common_fields().boolean(
        "lock",
        &AgentFields::lock,
        {.doc = "True: this file wins at every start and reload, and the API can't change the "
                "agent. False: the file only seeds an agent that is missing."}
    );
    return fields;
}

Agent make_agent(
    AgentFields fields,
    const json::value& value,
    const DefinitionRules& rules,
    const FieldPlace& place
) {
    check_backend(fields, place);
    const FieldPlace context = place.at("config_json").at("context");
    if (rules.known != nullptr) {
        check_names(fields.config_json.context, *rules.known, context);
    }
    check_preloaded(fields.config_json.context, context);
    Agent agent;
    agent.share_config = checked_share(fields, rules, place);
    agent.slug = std::move(fields.slug);
    agent.name = base::trim(fields.name).empty() ? agent.slug : std::move(fields.name);
    agent.description = std::move(fields.description);
    agent.backend_id = std::move(fields.backend_id);
    agent.is_subagent = agent.backend_id == kSubAgentBackend;
    agent.is_default = agent.slug == kDefaultAgent;
    agent.is_builtin = agent.slug == kDefaultAgent || agent.slug == kGeneralPurpose;
    agent.icon = std::move(fields.icon);
    agent.pics = std::move(fields.pics);
    agent.context = std::move(fields.config_json.context);
    tidy_lists(agent.context);
    if (const auto* root = value.if_object()) {
        const auto* written = root->if_contains("config_json");
        if (written != nullptr && written->is_object()) {
            agent.config_json = written->get_object();
        }
    }
    agent.config_json.emplace("context", json::object{});
    return agent;
}

std::expected<Agent, std::vector<base::Fault>> parse_definition(
    const json::object& definition, const DefinitionRules& rules
) {
    AgentFields fields;
    std::vector<base::Fault> faults = agent_fields().decode(definition, fields);
    Agent agent = make_agent(std::move(fields), definition, rules, FieldPlace{{}, faults, {}});
    if (!faults.empty()) {
        return std::unexpected(std::move(faults));
    }
    return agent;
}

json::object definition_of(const Agent& agent) {
    return {
        {"slug", agent.slug},
        {"name", agent.name},
        {"description", agent.description},
        {"backend_id", agent.backend_id},
        {"icon", agent.icon},
        {"pics", json::array(agent.pics.begin(), agent.pics.end())},
        {"share_config", share_config_to_json(agent.share_config)},
        {"config_json", agent.config_json}
    };
}

std::string definition_digest(const json::object& definition) {
    return base::sha256_hex(json::serialize(with_sorted_keys(definition)));
}

}  // namespace ars::agents
