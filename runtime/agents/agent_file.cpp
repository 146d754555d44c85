// One YAML file, one agent. Everything wrong with it is found in one reading: first the shape, by
// the field tables, then what contradicts itself or names something that does not exist.
#include "base/fields.hpp"
#include "base/text.hpp"
#include "runtime/agents/agent_context.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/agents/share_config.hpp"
#include "runtime/agents/slug.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ars::agents {

namespace {

using base::FieldPlace;

struct ConfigFields {
    AgentContext context;
};
struct FileFields {
    std::string slug;
    std::string name;
    std::string description;
    std::string backend_id{kChatbotBackend};
    std::optional<bool> is_subagent;
    bool lock = true;
    std::optional<ShareConfigFields> share_config;
    ConfigFields config_json;
    std::string icon;
};

const base::Fields<ConfigFields>& config_fields() {
    static const base::Fields<ConfigFields> fields = base::Fields<ConfigFields>{}.object(
        "context", &ConfigFields::context, agent_context_fields(), {.doc = "How the agent runs."}
    );
    return fields;
}

const base::Fields<FileFields>& file_fields() {
    static const base::Fields<FileFields> fields =
        base::Fields<FileFields>{}
            .text(
                "slug",
                &FileFields::slug,
                {.required = true, .check = check_slug, .doc = "The agent's name in URLs and tools."
                }
            )
            .text("name", &FileFields::name, {.max = 400, .doc = "Shown to people."})
            .text(
                "description",
                &FileFields::description,
                {.max = 4096, .doc = "What it is for; a main agent chooses by it."}
            )
            .choice(
                "backend_id",
                &FileFields::backend_id,
                {{kChatbotBackend, std::string(kChatbotBackend)},
                 {kSubAgentBackend, std::string(kSubAgentBackend)}},
                {.doc = "Main agent or sub-agent."}
            )
            .boolean(
                "is_subagent",
                &FileFields::is_subagent,
                {.doc = "Derived from backend_id; may be written, must not contradict it."}
            )
            .boolean("lock", &FileFields::lock, {.doc = "The file wins over the API."})
            .object(
                "share_config",
                &FileFields::share_config,
                share_config_fields(),
                {.doc = "Who may read and manage it; absent: everybody reads."}
            )
            .object("config_json", &FileFields::config_json, config_fields())
            .text("icon", &FileFields::icon, {.max = 4096, .doc = "An image address."});
    return fields;
}

bool faulty(const FieldPlace& place) {
    return std::any_of(place.faults.begin(), place.faults.end(), [&](const base::Fault& fault) {
        return fault.path == place.path;
    });
}

void check_backend(const FileFields& file, const FieldPlace& root) {
    if (faulty(root.at("backend_id"))) {
        return;
    }
    const bool is_sub = file.backend_id == kSubAgentBackend;
    if (file.is_subagent && *file.is_subagent != is_sub) {
        root.at("is_subagent")
            .fault(
                fmt::format("is_subagent must be {} for backend_id {}", is_sub, file.backend_id),
                "remove the key (it follows from backend_id) or change backend_id"
            );
    }
    if (is_sub && file.config_json.context.subagents) {
        root.at("config_json")
            .at("context")
            .at("subagents")
            .fault("a sub-agent can't call sub-agents", "remove the key");
    }
    if (file.slug == kDefaultAgent && is_sub) {
        root.at("backend_id")
            .fault("the default agent can't be a sub-agent", "write backend_id: ChatbotAgent");
    }
    if (file.slug == kGeneralPurpose && !is_sub) {
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
    if (faulty(place) || std::find(known.begin(), known.end(), name) != known.end()) {
        return;
    }
    const std::string meant = base::closest_name(name, known);
    place.fault(
        fmt::format("unknown {} \"{}\"", kind, name),
        (meant.empty() ? "" : "did you mean \"" + meant + "\"? ") +
            fmt::format("known: {}", base::list_names(known))
    );
}

void check_names(const AgentContext& context, const KnownNames& known, const FieldPlace& place) {
    if (const std::string& spec = context.model; !base::trim(spec).empty()) {
        const std::size_t colon = spec.find(':');
        if (colon == std::string::npos || colon + 1 == spec.size()) {
            place.at("model").fault(
                "\"" + spec + "\" is not a model spec",
                "write <provider>:<model>; providers: " + base::list_names(known.providers)
            );
        } else {
            check_name(spec.substr(0, colon), "provider", known.providers, place.at("model"));
        }
    }
    if (context.tools) {
        for (std::size_t i = 0; i < context.tools->size(); ++i) {
            const std::string name(base::trim((*context.tools)[i]));
            check_name(name, "tool", known.tools, place.at("tools").at(i));
        }
    }
    check_name(context.policy, "policy", known.policies, place.at("policy"));
    for (std::size_t i = 0; context.skills && i < context.preload_skills.size(); ++i) {
        const auto& skills = *context.skills;
        if (std::find(skills.begin(), skills.end(), context.preload_skills[i]) == skills.end()) {
            place.at("preload_skills")
                .at(i)
                .fault(
                    "\"" + context.preload_skills[i] + "\" is not among `skills`",
                    "add it there too"
                );
        }
    }
}

// Trimmed, without duplicates, in first-seen order: what files may write loosely, the runtime reads
// exactly.
void tidy(std::vector<std::string>& list) {
    std::vector<std::string> out;
    for (const std::string& raw : list) {
        std::string item(base::trim(raw));
        if (std::find(out.begin(), out.end(), item) == out.end()) {
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

Agent make_agent(FileFields file, const base::Document& document) {
    Agent agent;
    agent.slug = std::move(file.slug);
    agent.name = base::trim(file.name).empty() ? agent.slug : std::move(file.name);
    agent.description = std::move(file.description);
    agent.backend_id = std::move(file.backend_id);
    agent.is_subagent = agent.backend_id == kSubAgentBackend;
    agent.is_default = agent.slug == kDefaultAgent;
    agent.is_builtin = agent.slug == kDefaultAgent || agent.slug == kGeneralPurpose;
    agent.lock = file.lock;
    agent.icon = std::move(file.icon);
    agent.context = std::move(file.config_json.context);
    agent.source = document.file;
    if (const auto* root = document.value.if_object()) {
        const auto* written = root->if_contains("config_json");
        if (written != nullptr && written->is_object()) {
            agent.config_json = written->get_object();
        }
    }
    agent.config_json.emplace("context", boost::json::object{});
    return agent;
}

base::Result<AgentFile> read_agent(base::Result<base::Document> document, const KnownNames& known) {
    if (!document) {
        return std::unexpected(std::move(document.error()));
    }
    AgentFile out{{}, {}, std::move(*document)};
    FileFields file;
    out.faults = file_fields().decode(out.document.value, file);
    const FieldPlace root{{}, out.faults, {}};
    check_backend(file, root);
    check_names(file.config_json.context, known, root.at("config_json").at("context"));
    tidy_lists(file.config_json.context);

    // A file without share_config is the operator's word for the whole appliance, so everybody may
    // read it.
    ShareConfig share{AccessScope{}, std::nullopt};
    if (file.share_config) {
        share =
            checked_share_config(*file.share_config, root.at("share_config"), AllowedLevels::all);
        if (file.slug == kDefaultAgent &&
            (!share.read_scope || share.read_scope->level != AccessLevel::global)) {
            root.at("share_config")
                .at("read_scope")
                .fault(
                    "the default agent must be readable by everybody", "write access_level: global"
                );
        }
    }
    out.agent = make_agent(std::move(file), out.document);
    out.agent.share_config = std::move(share);
    return out;
}

}  // namespace

base::Result<AgentFile> load_agent_file(const std::string& path, const KnownNames& known) {
    return read_agent(base::load_yaml(path), known);
}

base::Result<AgentFile> parse_agent_file(
    std::string file, std::string_view text, const KnownNames& known
) {
    return read_agent(base::parse_yaml(std::move(file), text), known);
}

}  // namespace ars::agents
