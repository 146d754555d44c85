// The table in memory: agents come from files at boot and never change while the server runs.
#include "runtime/agents/agent_table.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ars::agents {

namespace {

Agent built_in(
    std::string_view slug,
    std::string_view name,
    std::string_view backend,
    std::string_view description
) {
    Agent agent;
    agent.slug = slug;
    agent.name = name;
    agent.description = description;
    agent.backend_id = backend;
    agent.is_subagent = backend == kSubAgentBackend;
    agent.is_default = slug == kDefaultAgent;
    agent.is_builtin = true;
    agent.share_config.read_scope = AccessScope{};
    agent.config_json = {{"context", boost::json::object{}}};
    agent.created_ms = agent.updated_ms = base::now_ms();
    return agent;
}

std::vector<std::string> listed(const AgentContext& context) {
    std::vector<std::string> out;
    for (const std::string& raw : context.subagents.value_or(std::vector<std::string>{})) {
        std::string slug(base::trim(raw));
        if (!slug.empty() && std::find(out.begin(), out.end(), slug) == out.end()) {
            out.push_back(std::move(slug));
        }
    }
    return out;
}

}  // namespace

AgentTable::AgentTable() {
    for (const Agent& agent : std::initializer_list<Agent>{
             built_in(
                 kDefaultAgent,
                 "Default chatbot",
                 kChatbotBackend,
                 "Answers questions and works on files with every tool and sub-agent at hand."
             ),
             built_in(
                 kGeneralPurpose,
                 "General purpose",
                 kSubAgentBackend,
                 "Takes any well-described piece of work: analysis, writing, sorting out files."
             )
         }) {
        agents_.emplace(agent.slug, agent);
    }
}

base::Result<void> AgentTable::add(Agent agent) {
    const auto found = agents_.find(agent.slug);
    if (found != agents_.end() && (!found->second.is_builtin || !found->second.source.empty())) {
        return base::fail(
            base::ErrorKind::conflict,
            "slug_taken",
            "the slug \"" + agent.slug + "\" is already used by " + found->second.source +
                "; give one of the two agents another slug"
        );
    }
    if (found != agents_.end()) {
        agent.is_builtin = true;
    }
    agent.is_default = agent.slug == kDefaultAgent;
    if (agent.created_ms == 0) {
        agent.created_ms = agent.updated_ms = base::now_ms();
    }
    std::string slug = agent.slug;
    agents_.insert_or_assign(std::move(slug), std::move(agent));
    return {};
}

const Agent* AgentTable::find(std::string_view slug, const User& user) const {
    const auto found = agents_.find(slug);
    if (found == agents_.end() || permission(found->second, user) == Permission::none) {
        return nullptr;
    }
    return &found->second;
}

std::vector<const Agent*> AgentTable::list(const User& user, bool include_subagents) const {
    std::vector<const Agent*> out;
    for (const auto& [slug, agent] : agents_) {
        if ((include_subagents || !agent.is_subagent) &&
            permission(agent, user) != Permission::none) {
            out.push_back(&agent);
        }
    }
    std::sort(out.begin(), out.end(), [](const Agent* a, const Agent* b) {
        return std::tie(b->is_default, a->slug) < std::tie(a->is_default, b->slug);
    });
    return out;
}

std::vector<const Agent*> AgentTable::allowed_subagents(
    const AgentContext& context, const User& user
) const {
    std::vector<const Agent*> out;
    if (const std::vector<std::string> slugs = listed(context); !slugs.empty()) {
        for (const std::string& slug : slugs) {
            if (const Agent* agent = find(slug, user); agent != nullptr && agent->is_subagent) {
                out.push_back(agent);
            }
        }
        return out;
    }
    for (const Agent* agent : list(user, true)) {
        if (agent->is_subagent) {
            out.push_back(agent);
        }
    }
    std::sort(out.begin(), out.end(), [](const Agent* a, const Agent* b) {
        return std::tie(a->name, a->slug) < std::tie(b->name, b->slug);
    });
    return out;
}

std::vector<const Agent*> AgentTable::all() const {
    std::vector<const Agent*> out;
    for (const auto& [slug, agent] : agents_) {
        out.push_back(&agent);
    }
    return out;
}

}  // namespace ars::agents
