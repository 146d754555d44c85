#include "runtime/tools/subagent_tools.hpp"

#include "base/clock.hpp"
#include "base/fields.hpp"
#include "base/limits.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace ars::tools {

namespace json = boost::json;

namespace {

struct StartArguments {
    std::string description;
    std::string subagent_slug;
    std::optional<std::string> thread_id;
};

// Older callers say subagent_type: accepted on input, never offered.
void accept_alias(json::object& arguments) {
    if (!arguments.contains("subagent_slug")) {
        if (const json::value* alias = arguments.if_contains("subagent_type")) {
            arguments["subagent_slug"] = *alias;
        }
    }
    arguments.erase("subagent_type");
}

const base::Fields<StartArguments>& start_fields() {
    static const base::Fields<StartArguments> fields =
        base::Fields<StartArguments>{}
            .text(
                "description",
                &StartArguments::description,
                {.required = true,
                 .min = 1,
                 .doc =
                     "The task, complete in itself: the sub-agent does not see this conversation."}
            )
            .text(
                "subagent_slug",
                &StartArguments::subagent_slug,
                {.required = true, .min = 1, .doc = "Which sub-agent."}
            )
            .text(
                "thread_id",
                &StartArguments::thread_id,
                {.doc =
                     "Continue an earlier thread of the same sub-agent. Leave out for a new task."}
            );
    return fields;
}

struct RunArguments {
    std::string run_id;
    std::optional<std::int64_t> timeout_seconds;
};

const base::Fields<RunArguments>& run_fields() {
    static const base::Fields<RunArguments> fields = base::Fields<RunArguments>{}.text(
        "run_id",
        &RunArguments::run_id,
        {.required = true, .min = 1, .doc = "As subagent_start gave it."}
    );
    return fields;
}

const base::Fields<RunArguments>& await_fields() {
    static const base::Fields<RunArguments> fields =
        base::Fields<RunArguments>{}
            .text(
                "run_id",
                &RunArguments::run_id,
                {.required = true, .min = 1, .doc = "As subagent_start gave it."}
            )
            .integer(
                "timeout_seconds",
                &RunArguments::timeout_seconds,
                {.min = 1,
                 .max = std::chrono::seconds(base::limits::kAwaitLimit).count(),
                 .doc = "How long to wait; as long as allowed when left out."}
            );
    return fields;
}

std::string text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
}

// The entry of the thread's state: {id, run_id, subagent_slug, child_thread_id, status, ...},
// merged by run_id.
json::object state_entry(const ToolContext& context, const json::object& answer, bool started) {
    json::object entry{
        {"run_id", text_of(answer, "run_id")},
        {"subagent_slug", text_of(answer, "subagent_slug")},
        {"child_thread_id", text_of(answer, "thread_id")},
        {"events_url", text_of(answer, "events_url")},
        {"result_url", text_of(answer, "result_url")},
    };
    const std::string run_status = text_of(answer, "run_status");
    entry["status"] = run_status.empty() ? text_of(answer, "status") : run_status;
    if (started) {
        entry["id"] = context.call_id;
        entry["subagent_name"] = text_of(answer, "subagent_name");
        entry["created_at"] = base::iso8601(base::now_ms());
    }
    if (const json::value* result = answer.if_contains("result")) {
        entry["completed_at"] = base::iso8601(base::now_ms());
        if (const json::value* usage = result->as_object().if_contains("token_usage")) {
            entry["token_usage"] = *usage;
        }
        if (const json::value* error = result->as_object().if_contains("error")) {
            entry["error"] = error->at("message");
        }
    }
    return json::object{{"subagent_runs", json::array{std::move(entry)}}};
}

ToolResult json_result(const ToolContext& context, const json::object& answer, bool started) {
    ToolResult result;
    result.text = json::serialize(answer);
    result.facts["status"] = text_of(answer, "status");
    if (text_of(answer, "status") != "busy") {
        result.facts["run_id"] = text_of(answer, "run_id");
        result.state = state_entry(context, answer, started);
    }
    return result;
}

// One of the five: arguments decoded by their table, then `serve`, whose errors become the result's
// text.
template <class Arguments>
class SubagentTool final : public Tool {
  public:
    using Serve = base::Task<base::Result<ToolResult>> (*)(
        ChildRuns& children, const ToolContext& context, Arguments arguments
    );

    SubagentTool(
        ToolSpec spec, const base::Fields<Arguments>& fields, Serve serve, ChildRuns& children
    )
        : spec_(std::move(spec)), fields_(fields), serve_(serve), children_(children) {
        spec_.parameters = fields.schema();
    }

    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, json::object arguments) override {
        accept_alias(arguments);
        Arguments decoded;
        if (const auto faults = fields_.decode(arguments, decoded); !faults.empty()) {
            co_return tool_error(base::faults_error("bad_arguments", faults).message);
        }
        base::Result<ToolResult> result = co_await serve_(children_, context, std::move(decoded));
        if (!result) {
            co_return tool_error(result.error().message);
        }
        co_return std::move(*result);
    }

  private:
    ToolSpec spec_;
    const base::Fields<Arguments>& fields_;
    Serve serve_;
    ChildRuns& children_;
};

base::Task<base::Result<json::object>> start_child(
    ChildRuns& children, const ToolContext& context, StartArguments arguments
) {
    StartChild request{
        arguments.subagent_slug, arguments.description, arguments.thread_id.value_or("")
    };
    co_return co_await children.start(context, std::move(request));
}

base::Task<base::Result<ToolResult>> start(
    ChildRuns& children, const ToolContext& context, StartArguments arguments
) {
    const auto answer = co_await start_child(children, context, std::move(arguments));
    if (!answer) {
        co_return std::unexpected(answer.error());
    }
    co_return json_result(context, *answer, true);
}

// `task`'s answer for the model: the child's thread id, then its last words or what went wrong.
std::string task_text(const json::object& answer) {
    const json::object& result = answer.at("result").as_object();
    std::string text = fmt::format("Sub-agent thread ID: {}\n\n", text_of(answer, "thread_id"));
    if (answer.contains("wait_timed_out")) {
        return text +
               fmt::format(
                   "Not done yet: run {} is {}. Go on with subagent_status or subagent_await.",
                   text_of(answer, "run_id"),
                   text_of(answer, "status")
               );
    }
    const std::string output = text_of(result, "output");
    if (!output.empty()) {
        return text + output;
    }
    if (const json::value* error = result.if_contains("error")) {
        const std::string message = text_of(error->as_object(), "message");
        return text + fmt::format(
                          "The sub-agent's run {}: {}",
                          text_of(answer, "status"),
                          message.empty() ? text_of(error->as_object(), "type") : message
                      );
    }
    return text + "The sub-agent finished without a text. Look at its files, or ask it again.";
}

base::Task<base::Result<ToolResult>> task(
    ChildRuns& children, const ToolContext& context, StartArguments arguments
) {
    const auto started = co_await start_child(children, context, std::move(arguments));
    if (!started) {
        co_return std::unexpected(started.error());
    }
    if (text_of(*started, "status") == "busy") {
        co_return json_result(context, *started, true);
    }
    const std::string run_id = text_of(*started, "run_id");
    const auto answer = co_await children.await(context, run_id, base::limits::kAwaitLimit);
    if (!answer) {
        co_return std::unexpected(answer.error());
    }
    ToolResult result = json_result(context, *answer, false);
    result.text = task_text(*answer);
    // A child that ends without a word has not done what it was asked.
    const json::object& end = answer->at("result").as_object();
    result.is_error = text_of(*answer, "status") == "failed" ||
                      (text_of(*answer, "status") == "completed" && text_of(end, "output").empty());
    json::object& entry = result.state["subagent_runs"].as_array().front().as_object();
    entry["id"] = context.call_id;
    entry["subagent_name"] = text_of(*started, "subagent_name");
    co_return result;
}

base::Task<base::Result<ToolResult>> status(
    ChildRuns& children, const ToolContext& context, RunArguments arguments
) {
    const auto answer = co_await children.status(context, std::move(arguments.run_id));
    if (!answer) {
        co_return std::unexpected(answer.error());
    }
    co_return json_result(context, *answer, false);
}

base::Task<base::Result<ToolResult>> await(
    ChildRuns& children, const ToolContext& context, RunArguments arguments
) {
    const std::chrono::seconds most = base::limits::kAwaitLimit;
    const base::milliseconds limit =
        std::chrono::seconds(arguments.timeout_seconds.value_or(most.count()));
    const auto answer = co_await children.await(context, std::move(arguments.run_id), limit);
    if (!answer) {
        co_return std::unexpected(answer.error());
    }
    co_return json_result(context, *answer, false);
}

base::Task<base::Result<ToolResult>> cancel(
    ChildRuns& children, const ToolContext& context, RunArguments arguments
) {
    const auto answer = co_await children.cancel(context, std::move(arguments.run_id));
    if (!answer) {
        co_return std::unexpected(answer.error());
    }
    co_return json_result(context, *answer, false);
}

}  // namespace

std::vector<std::unique_ptr<Tool>> make_subagent_tools(ChildRuns& children) {
    using StartTool = SubagentTool<StartArguments>;
    using RunTool = SubagentTool<RunArguments>;
    std::vector<std::unique_ptr<Tool>> tools;
    tools.push_back(std::make_unique<StartTool>(
        ToolSpec{
            "task",
            "Gives one task to a sub-agent, waits for it, and returns its thread id and its final "
            "text. For short work whose result you need at once; several in one turn run in "
            "parallel.",
            {},
            Effect::waiting
        },
        start_fields(),
        &task,
        children
    ));
    tools.push_back(std::make_unique<StartTool>(
        ToolSpec{
            "subagent_start",
            "Starts a sub-agent on a task and returns run_id and thread_id at once. For long work, "
            "or several tasks in parallel; get the result with subagent_await.",
            {},
            Effect::idempotent
        },
        start_fields(),
        &start,
        children
    ));
    tools.push_back(std::make_unique<RunTool>(
        ToolSpec{
            "subagent_status",
            "The state of a sub-agent run you started: its newest steps, and its result when it "
            "has ended.",
            {},
            Effect::idempotent
        },
        run_fields(),
        &status,
        children
    ));
    tools.push_back(std::make_unique<RunTool>(
        ToolSpec{
            "subagent_await",
            "Waits until a sub-agent run you started has ended and returns its result; after the "
            "time limit, its state with wait_timed_out.",
            {},
            Effect::waiting
        },
        await_fields(),
        &await,
        children
    ));
    tools.push_back(std::make_unique<RunTool>(
        ToolSpec{
            "subagent_cancel", "Asks a sub-agent run you started to stop.", {}, Effect::idempotent
        },
        run_fields(),
        &cancel,
        children
    ));
    return tools;
}

}  // namespace ars::tools
