// What an agent is: a row of the one agents table, for main agents and sub-agents alike.
#pragma once

#include "base/limits.hpp"
#include "base/result.hpp"
#include "runtime/people/user.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::agents {

using people::User;
using people::UserRole;

inline constexpr std::string_view kChatbotBackend = "ChatbotAgent";
inline constexpr std::string_view kSubAgentBackend = "SubAgentBackend";
inline constexpr std::string_view kDefaultAgent = "default-chatbot";
inline constexpr std::string_view kGeneralPurpose = "general-purpose";

// One side of share_config v2.
enum class AccessLevel : std::uint8_t { global, department, user };
struct AccessScope {
    AccessLevel level = AccessLevel::global;
    std::vector<std::string> department_ids;
    std::vector<std::string> user_uids;
};
struct ShareConfig {
    std::optional<AccessScope> read_scope;
    std::optional<AccessScope> manage_scope;
};
enum class Permission : std::uint8_t { none, read, manage };

enum class ApprovalMode : std::uint8_t {
    ask,
    always_trust
};  // "default" and "always_trust" in files

// config_json.context. An absent list means "all accessible", an empty one "none" (for subagents:
// all visible).
struct AgentContext {
    std::string system_prompt;
    std::string model;  // spec; "" = the appliance's default
    std::optional<ApprovalMode> tool_approval_mode;
    std::optional<std::vector<std::string>> tools;
    std::optional<std::vector<std::string>> knowledges;
    std::optional<std::vector<std::string>> mcps;
    std::optional<std::vector<std::string>> skills;
    std::vector<std::string> preload_skills;
    std::optional<std::vector<std::string>> subagents;
    std::uint32_t max_execution_steps = base::limits::kMaxSteps;
    std::string policy = "default";
    std::map<std::string, std::string> env;  // of its commands, over the appliance's
    // Validated and kept with the agent. Nothing acts on them while there is no context compaction.
    std::uint32_t summary_threshold = 100;  // K tokens of 1024
    std::uint32_t summary_keep_messages = 10;
    std::string summary_prompt;  // "" = the built-in one
    std::uint32_t summary_tool_result_token_limit = 300;
    double summary_l2_trigger_ratio = 0.4;
    std::uint32_t model_retry_times = base::limits::kModelRetries;
};

// As a run's snapshot holds it: every field, and what it lacks is the default.
[[nodiscard]] base::Result<AgentContext> parse_context(const boost::json::object& context);
[[nodiscard]] boost::json::object context_to_json(const AgentContext& context);

struct Agent {
    std::string slug;
    std::string name;
    std::string description;
    std::string backend_id;
    bool is_subagent = false;
    bool is_default = false;
    bool is_builtin = false;
    bool lock = false;  // its file wins over the API
    ShareConfig share_config;
    AgentContext context;
    boost::json::object config_json;  // as written, for the API and the run's snapshot
    std::string icon;
    std::vector<std::string> pics;
    std::string created_by;  // uid; "" for files and built-ins
    std::string updated_by;
    std::string source;         // file it came from; "" when no file says anything about it
    std::uint64_t version = 0;  // rises by one with each change; 0 = not stored
    std::string digest;         // sha256 of what the version says
    std::int64_t created_ms = 0;
    std::int64_t updated_ms = 0;
};

// What holds one keeps it as it was, whatever becomes of the agent.
using AgentPtr = std::shared_ptr<const Agent>;

}  // namespace ars::agents
