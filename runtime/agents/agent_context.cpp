// The field table of config_json.context: one place says which settings an agent has.
#include "runtime/agents/agent_context.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace ars::agents {

namespace {

namespace limits = base::limits;
constexpr std::int64_t kPromptBytes = 256 * limits::kKiB;
constexpr std::int64_t kListEntries = 512;
constexpr std::int64_t kStepsMax = 10'000;
constexpr std::int64_t kRetriesMax = 10;
constexpr std::int64_t kVariables = 128;

std::string check_entry(std::string_view text) {
    return base::trim(text).empty() ? "must not be blank" : "";
}

using Tables = base::Fields<AgentContext>;

Tables main_fields() {
    return Tables{}
        .text(
            "system_prompt",
            &AgentContext::system_prompt,
            {.max = kPromptBytes, .doc = "Instructions, put after the platform's own."}
        )
        .text(
            "model",
            &AgentContext::model,
            {.max = 512, .doc = "<provider>:<model>; empty for the appliance's default."}
        )
        .choice(
            "tool_approval_mode",
            &AgentContext::tool_approval_mode,
            {{"default", ApprovalMode::ask}, {"always_trust", ApprovalMode::always_trust}},
            {.doc = "Whether a person approves tools that change things."}
        )
        .texts(
            "tools",
            &AgentContext::tools,
            {.max = kListEntries, .check = check_entry, .doc = "Absent: all; empty: none."}
        )
        .texts(
            "knowledges",
            &AgentContext::knowledges,
            {.max = kListEntries, .check = check_entry, .doc = "Knowledge bases, by name."}
        )
        .texts(
            "mcps",
            &AgentContext::mcps,
            {.max = kListEntries, .check = check_entry, .doc = "MCP servers, by name."}
        )
        .texts(
            "skills",
            &AgentContext::skills,
            {.max = kListEntries, .check = check_entry, .doc = "Skills, by slug."}
        )
        .texts(
            "preload_skills",
            &AgentContext::preload_skills,
            {.max = kListEntries,
             .check = check_entry,
             .doc = "Skills whose full text stands in the first prompt; a subset of `skills`."}
        )
        .texts(
            "subagents",
            &AgentContext::subagents,
            {.max = kListEntries,
             .doc = "Sub-agents that may be called; absent or empty: all visible ones."}
        );
}

}  // namespace

const base::Fields<AgentContext>& agent_context_fields() {
    static const Tables fields =
        main_fields()
            .integer(
                "max_execution_steps",
                &AgentContext::max_execution_steps,
                {.min = 1, .max = kStepsMax, .doc = "Model calls of one run."}
            )
            .text(
                "policy",
                &AgentContext::policy,
                {.min = 1, .doc = "The sandbox policy of its tools."}
            )
            .variables(
                "env",
                &AgentContext::env,
                {.max = kVariables, .doc = "Environment variables of its commands. No secrets."}
            )
            .integer(
                "summary_threshold",
                &AgentContext::summary_threshold,
                {.min = 1, .max = 100'000, .doc = "K tokens (1024) from which history is compacted."
                }
            )
            .integer(
                "summary_keep_messages",
                &AgentContext::summary_keep_messages,
                {.max = 10'000, .doc = "Messages that a compaction keeps as they are."}
            )
            .text(
                "summary_prompt",
                &AgentContext::summary_prompt,
                {.max = kPromptBytes, .doc = "Prompt of the compaction, with {messages}."}
            )
            .integer(
                "summary_tool_result_token_limit",
                &AgentContext::summary_tool_result_token_limit,
                {.max = 1'000'000, .doc = "Tokens of a tool result in the compacted view."}
            )
            .number(
                "summary_l2_trigger_ratio",
                &AgentContext::summary_l2_trigger_ratio,
                {.min = 0, .max = 1, .doc = "Share of the threshold from which a summary is made."}
            )
            .integer(
                "model_retry_times",
                &AgentContext::model_retry_times,
                {.max = kRetriesMax, .doc = "Tries after a failed model call."}
            );
    return fields;
}

void take_resources(AgentContext& context) {
    for (auto* list : {&context.tools, &context.knowledges, &context.mcps, &context.skills}) {
        list->emplace();
        (*list)->clear();
    }
    context.preload_skills.clear();
}

bool is_admin_field(std::string_view name) {
    static constexpr std::string_view kNames[] = {
        "tool_approval_mode",
        "max_execution_steps",
        "model_retry_times",
        "summary_threshold",
        "summary_keep_messages",
        "summary_prompt",
        "summary_tool_result_token_limit",
        "summary_l2_trigger_ratio",
        "policy",
    };
    return std::ranges::find(kNames, name) != std::end(kNames);
}

base::Result<AgentContext> parse_context(const boost::json::object& context) {
    AgentContext out;
    const auto faults = agent_context_fields().decode(context, out, "/context");
    if (!faults.empty()) {
        return std::unexpected(base::faults_error("invalid_context", faults));
    }
    return out;
}

boost::json::object context_to_json(const AgentContext& context) {
    return agent_context_fields().encode(context);
}

}  // namespace ars::agents
