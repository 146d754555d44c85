// Every agent of the appliance, and who may see which.
#pragma once

#include "runtime/agents/agent.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ars::agents {

// What a user may do with an agent.
[[nodiscard]] Permission permission(const Agent& agent, const User& user);

class AgentTable {
  public:
    [[nodiscard]] static AgentTable with_built_ins();
    // Replaces the agent of that slug.
    void put(Agent agent);
    void erase(std::string_view slug);

    // Nullptr when missing or invisible to `user`.
    [[nodiscard]] AgentPtr find(std::string_view slug, const User& user) const;
    // Visible agents, the default first, then by slug. Sub-agents only when asked for.
    [[nodiscard]] std::vector<AgentPtr> list(const User& user, bool include_subagents) const;
    // The sub-agents that a main agent with this context may call for this user, ordered by name:
    // all visible ones when the list is missing, empty or blank; else those listed (trimmed,
    // first-seen order, invisible ones dropped).
    [[nodiscard]] std::vector<AgentPtr> allowed_subagents(
        const AgentContext& context, const User& user
    ) const;

    // Whoever may see it: for checks and changes, never for an answer to a user.
    [[nodiscard]] AgentPtr at(std::string_view slug) const;
    [[nodiscard]] std::vector<AgentPtr> all() const;  // by slug

  private:
    std::map<std::string, AgentPtr, std::less<>> agents_;
};

// What is there without any file: default-chatbot and general-purpose.
[[nodiscard]] std::vector<Agent> built_in_agents();

}  // namespace ars::agents
