// The table in memory. Agents in it are never changed, only replaced: a run goes on with the one it
// has.
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

std::vector<Agent> built_in_agents() {
    return {
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
    };
}

AgentTable AgentTable::with_built_ins() {
    AgentTable table;
    for (Agent& agent : built_in_agents()) {
        table.put(std::move(agent));
    }
    return table;
}

void AgentTable::put(Agent agent) {
    std::string slug = agent.slug;
    agents_.insert_or_assign(std::move(slug), std::make_shared<const Agent>(std::move(agent)));
}

void AgentTable::erase(std::string_view slug) {
    if (const auto found = agents_.find(slug); found != agents_.end()) {
        agents_.erase(found);
    }
}

AgentPtr AgentTable::at(std::string_view slug) const {
    const auto found = agents_.find(slug);
    return found == agents_.end() ? nullptr : found->second;
}

AgentPtr AgentTable::find(std::string_view slug, const User& user) const {
    AgentPtr agent = at(slug);
    return agent && permission(*agent, user) != Permission::none ? agent : nullptr;
}

std::vector<AgentPtr> AgentTable::list(const User& user, bool include_subagents) const {
    std::vector<AgentPtr> out;
    for (const auto& [slug, agent] : agents_) {
        if ((include_subagents || !agent->is_subagent) &&
            permission(*agent, user) != Permission::none) {
            out.push_back(agent);
        }
    }
    std::ranges::sort(out, [](const AgentPtr& a, const AgentPtr& b) {
        return std::tie(b->is_default, a->slug) < std::tie(a->is_default, b->slug);
    });
    return out;
}

std::vector<AgentPtr> AgentTable::allowed_subagents(const AgentContext& context, const User& user)
    const {
    std::vector<AgentPtr> out;
    if (const std::vector<std::string> slugs = listed(context); !slugs.empty()) {
        for (const std::string& slug : slugs) {
            if (AgentPtr agent = find(slug, user); agent && agent->is_subagent) {
                out.push_back(std::move(agent));
            }
        }
        return out;
    }
    for (AgentPtr& agent : list(user, true)) {
        if (agent->is_subagent) {
            out.push_back(std::move(agent));
        }
    }
    std::ranges::sort(out, [](const AgentPtr& a, const AgentPtr& b) {
        return std::tie(a->name, a->slug) < std::tie(b->name, b->slug);
    });
    return out;
}

std::vector<AgentPtr> AgentTable::all() const {
    std::vector<AgentPtr> out;
    for (const auto& [slug, agent] : agents_) {
        out.push_back(agent);
    }
    return out;
}

}  // namespace ars::agents
