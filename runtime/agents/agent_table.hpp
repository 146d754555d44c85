// Every agent of the appliance, and who may see which.
#pragma once

#include "base/document.hpp"
#include "base/result.hpp"
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

// Reads one agent file: every fault of it at once, with file, line, key and remedy. `known_tools`,
// `known_policies` and `known_providers` are what names may refer to.
struct KnownNames {
    std::vector<std::string> tools;
    std::vector<std::string> providers;
    std::vector<std::string> policies;
};
struct AgentFile {
    Agent agent;
    std::vector<base::Fault> faults;  // agent is usable only when empty
    base::Document document;
};
[[nodiscard]] base::Result<AgentFile> load_agent_file(
    const std::string& path, const KnownNames& known
);
// The same of a text; `file` is its name in messages.
[[nodiscard]] base::Result<AgentFile> parse_agent_file(
    std::string file, std::string_view text, const KnownNames& known
);

// The same field table for a context stored in a run's snapshot.
[[nodiscard]] base::Result<AgentContext> parse_context(const boost::json::object& context);
[[nodiscard]] boost::json::object context_to_json(const AgentContext& context);

}  // namespace ars::agents
