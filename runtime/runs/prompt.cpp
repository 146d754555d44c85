#include "runtime/runs/prompt.hpp"

#include "base/clock.hpp"
#include "fsmount/layout.hpp"
#include "runtime/runs/loop_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace ars::runs {

namespace {

constexpr std::string_view kDefaultPrompt =
    "You are a helpful assistant. Do the work with your tools, check it, and answer with what you "
    "found.";

bool contains(const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_subagent_tool(std::string_view name) {
    return name == "task" || name.starts_with("subagent_");
}

// What looks after the commands that `execute` leaves running: offered with it.
bool goes_with_execute(std::string_view name) { return name.starts_with("execute_"); }

bool offers(const LiveRun& run, std::string_view name) {
    const bool is_child = run.record.type == store::RunType::subagent;
    if (is_subagent_tool(name)) {
        return !is_child && !run.subagents.empty();
    }
    if (is_child &&
        (name == "present_artifacts" || name == "ask_user_question" || name == "install_skill")) {
        return false;
    }
    if (is_child && run.record.approval_mode != kAlwaysTrust &&
        (needs_approval(name) || goes_with_execute(name))) {
        return false;
    }
    return !run.context->tools || contains(*run.context->tools, name) ||
           (goes_with_execute(name) && contains(*run.context->tools, "execute"));
}

std::string subagent_section(const LiveRun& run) {
    std::string out =
        "\n\n# Sub-agents\nYou can hand work to these sub-agents with `task` (waits for the "
        "answer) or "
        "`subagent_start` and `subagent_await` (several at once):\n";
    for (const agents::AgentPtr& agent : run.subagents) {
        out += fmt::format(
            "- {}: {}\n", agent->slug, agent->description.empty() ? agent->name : agent->description
        );
    }
    out +=
        "They see the same files as you but not this conversation: put all they need into the "
        "description. Start "
        "independent pieces in parallel. Never use one thread_id for two runs at once, and never "
        "call a sub-agent "
        "through a shell or HTTP.";
    return out;
}

std::string system_prompt(const LiveRun& run, bool has_subagent_tools) {
    std::string out = fmt::format(
        "Today is {}.\n\n{}\n\n# Files\nYour current directory is {}. Keep your work there unless "
        "you are asked "
        "otherwise. {} is the user's whole workspace (writable); {} holds skills (read-only). "
        "Paths elsewhere can't be "
        "read with the file tools.",
        base::iso8601(run.record.created_ms).substr(0, 10),
        run.context->system_prompt.empty() ? kDefaultPrompt : run.context->system_prompt,
        run.environment->cwd(),
        fsmount::kUserData,
        fsmount::kSkills
    );
    if (has_subagent_tools) {
        out += subagent_section(run);
    }
    out += attachment_section(run.history, run.attachments);
    return out;
}

models::Message assistant_message(const store::MessageRecord& stored) {
    models::Message message;
    message.role = models::Role::assistant;
    message.content = stored.content;
    message.reasoning = stored.reasoning;
    for (const store::ToolCall& call : stored.tool_calls) {
        message.tool_calls.push_back({call.provider_id, call.name, call.arguments});
    }
    return message;
}

models::Message tool_message(const store::MessageRecord& stored, const store::ToolCall& call) {
    models::Message message;
    message.role = models::Role::tool;
    message.content = stored.content;
    message.tool_call_id = call.provider_id;
    message.is_error = stored.is_error;
    return message;
}

}  // namespace

bool needs_approval(std::string_view tool) {
    // Input to a command is as good as a command; to read its output or to end it changes nothing
    // that was not approved.
    return tool == "execute" || tool == "execute_input" || tool == "write_file" ||
           tool == "edit_file";
}

std::vector<tools::Tool*> offered_tools(const LiveRun& run, const ToolSet& all) {
    std::vector<tools::Tool*> out;
    for (const auto& tool : all) {
        if (offers(run, tool->spec().name)) {
            out.push_back(tool.get());
        }
    }
    return out;
}

models::ToolSchemaPtr ToolSchemas::of(const tools::Tool& tool) {
    models::ToolSchemaPtr& made = made_[&tool];
    if (!made) {
        const tools::ToolSpec& spec = tool.spec();
        made = std::make_shared<models::ToolSchema>(spec.name, spec.description, spec.parameters);
    }
    return made;
}

models::ModelRequest model_request(
    const LiveRun& run,
    const std::vector<tools::Tool*>& tools,
    ToolSchemas& schemas,
    std::string model
) {
    models::ModelRequest request;
    request.model = std::move(model);
    request.agent_slug = run.record.agent_slug;
    request.deadline = run.deadline;
    bool has_subagent_tools = false;
    for (const tools::Tool* tool : tools) {
        has_subagent_tools = has_subagent_tools || is_subagent_tool(tool->spec().name);
        request.tools.push_back(schemas.of(*tool));
    }
    models::Message system;
    system.role = models::Role::system;
    system.content = system_prompt(run, has_subagent_tools);
    request.messages.push_back(std::move(system));

    std::unordered_map<std::string_view, const store::MessageRecord*> results;
    for (const store::MessageRecord& message : run.history) {
        if (message.role == store::Role::tool) {
            results.emplace(message.tool_call_id, &message);
        }
    }
    for (const store::MessageRecord& message : run.history) {
        if (message.role == store::Role::user) {
            request.messages.push_back(
                {models::Role::user, with_attachments(message, run.attachments), {}, {}, {}, false}
            );
        } else if (message.role == store::Role::assistant) {
            if (message.content.empty() && message.tool_calls.empty()) {
                continue;  // an empty answer ended an earlier run; providers refuse to see it again
            }
            request.messages.push_back(assistant_message(message));
            for (const store::ToolCall& call : message.tool_calls) {
                request.messages.push_back(tool_message(*results.at(call.id), call));
            }
        }
    }
    if (!run.history.empty() && run.history.back().role == store::Role::tool) {
        request.messages.back().content += repetition_notice(run.history);
    }
    return request;
}

OpenCalls open_calls(const std::vector<store::MessageRecord>& history) {
    OpenCalls open;
    std::vector<std::string_view> answered;
    for (auto it = history.rbegin(); it != history.rend(); ++it) {
        if (it->role == store::Role::tool) {
            answered.emplace_back(it->tool_call_id);
            continue;
        }
        if (it->role == store::Role::assistant) {
            open.message = &*it;
            for (std::size_t i = 0; i < it->tool_calls.size(); ++i) {
                if (std::find(answered.begin(), answered.end(), it->tool_calls[i].id) ==
                    answered.end()) {
                    open.indexes.push_back(i);
                }
            }
        }
        break;
    }
    return open;
}

}  // namespace ars::runs
