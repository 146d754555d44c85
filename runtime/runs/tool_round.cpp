#include "runtime/runs/tool_round.hpp"

#include "base/task_group.hpp"
#include "base/text.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/run_records.hpp"
#include "runtime/tools/result_cap.hpp"

#include <boost/asio/post.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ars::runs {

namespace json = boost::json;

namespace {

constexpr std::string_view kMayHaveHappened =
    "The server was restarted while this call was running. It may have happened, in part or in "
    "full, or not at all. "
    "Look at the files before you do it again.";

constexpr std::string_view kExecute = "execute";
constexpr std::size_t kRedactedAtOnce =
    32 * base::limits::kKiB;  // longer texts may take longer than others should wait

// When the last command of the conversation was over; 0 when there was none.
std::int64_t last_command_ms(const std::vector<store::MessageRecord>& history) {
    const auto last = std::find_if(history.rbegin(), history.rend(), [](const auto& message) {
        return message.role == store::Role::tool && message.tool_name == kExecute;
    });
    return last == history.rend() ? 0 : last->created_ms;
}

// A call at work whose result a stop waits for. One that only waits for others can be waited for
// again by the next boot: when nothing else is at work, a stopping run ends with it.
class BusyCall {
  public:
    BusyCall(const RunParts& parts, LiveRunPtr run, const tools::Tool* tool)
        : parts_(parts),
          run_(std::move(run)),
          counts_(tool != nullptr && tool->spec().effect != tools::Effect::waiting) {
        run_->busy_calls += counts_ ? 1U : 0U;
    }
    BusyCall(const BusyCall&) = delete;
    BusyCall& operator=(const BusyCall&) = delete;
    ~BusyCall() {
        run_->busy_calls -= counts_ ? 1U : 0U;
        if (run_->stop == StopReason::shutdown && run_->busy_calls == 0) {
            base::asio::post(parts_.executor, [run = run_] {
                run->cancel.emit(base::asio::cancellation_type::terminal);
            });
        }
    }

  private:
    const RunParts& parts_;
    LiveRunPtr run_;
    bool counts_;
};

}  // namespace

base::Result<json::object> parse_arguments(const std::string& text) {
    if (base::trim(text).empty()) {
        return json::object{};
    }
    boost::system::error_code error;
    json::parse_options options;
    options.max_depth = base::limits::kJsonDepth;
    json::value value = json::parse(text, error, {}, options);
    if (!error && value.is_null()) {
        return json::object{};
    }
    if (!error && value.is_object()) {
        return std::move(value.as_object());
    }
    return base::fail(
        base::ErrorKind::invalid,
        "bad_arguments",
        fmt::format(
            "The arguments of this call are not a JSON object ({}). Call the tool again with "
            "arguments like "
            "{{\"name\": \"value\"}}.",
            error ? error.message() : "they are JSON of another kind"
        )
    );
}

std::string make_call_id(std::string_view run_id, std::uint32_t step, std::size_t index) {
    return fmt::format("{}:{}:{}", run_id, step, index);
}

std::uint32_t step_of_call_id(std::string_view call_id) {
    const std::size_t last = call_id.rfind(':');
    const std::size_t middle = last == std::string_view::npos ? last : call_id.rfind(':', last - 1);
    std::uint32_t step = 0;
    if (middle != std::string_view::npos) {
        std::from_chars(call_id.data() + middle + 1, call_id.data() + last, step);
    }
    return step;
}

base::Task<base::Result<void>> ToolRound::run(
    store::MessageRecord message, std::vector<std::size_t> indexes
) {
    // Calls of a step that this process did not commit were open when an earlier one died.
    step_ = step_of_call_id(message.tool_calls.front().id);
    rerun_ = run_->taken_over;
    base::TaskGroup group(parts_.executor);
    for (const std::size_t index : indexes) {
        group.spawn(serve_call(&message, index));
    }
    co_await group.join();
    if (failure_) {
        co_return std::unexpected(*failure_);
    }
    co_return base::Result<void>();
}

store::MessageRecord ToolRound::result_message(
    const store::ToolCall& call, std::chrono::steady_clock::time_point started
) const {
    store::MessageRecord message;
    message.thread = run_->record.thread;
    message.run = run_->record.no;
    message.role = store::Role::tool;
    message.tool_call_id = call.id;
    message.tool_name = call.name;
    message.duration_ms =
        std::chrono::duration_cast<base::milliseconds>(std::chrono::steady_clock::now() - started)
            .count();
    return message;
}

base::Task<void> ToolRound::serve_call(const store::MessageRecord* message, std::size_t index) {
    const store::ToolCall& call = message->tool_calls[index];
    const BusyCall busy(parts_, run_, find(call.name));
    const auto started = std::chrono::steady_clock::now();
    tools::ToolResult result = co_await perform(call, index);
    store::MessageRecord stored = result_message(call, started);
    // The tool has done its work: its result is stored even if the run is cancelled at this moment.
    co_await base::shield_from_cancellation();
    const base::Result<void> written =
        co_await store_result(std::move(stored), std::move(result), index);
    if (!written && !failure_) {
        failure_ = written.error();
    }
}

base::Task<std::vector<StoredResult>> ToolRound::answer_pure(const store::MessageRecord& message) {
    std::vector<StoredResult> out;
    for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
        const store::ToolCall& call = message.tool_calls[i];
        tools::Tool* tool = find(call.name);
        if (tool == nullptr || tool->spec().effect != tools::Effect::pure) {
            continue;
        }
        base::Result<json::object> arguments = parse_arguments(call.arguments);
        if (!arguments) {
            continue;
        }
        any_readable_ = true;
        step_ = step_of_call_id(call.id);
        const auto started = std::chrono::steady_clock::now();
        const tools::ToolContext context = context_for(call, i);
        tools::ToolResult result = co_await guarded_call(tool, &context, std::move(*arguments));
        result = co_await redacted(std::move(result));
        out.push_back(stored_result(result_message(call, started), std::move(result), i));
    }
    co_return out;
}

base::Task<tools::ToolResult> ToolRound::perform(store::ToolCall call, std::size_t index) {
    base::Result<json::object> arguments = parse_arguments(call.arguments);
    if (!arguments) {
        co_return tools::tool_error(arguments.error().message);
    }
    any_readable_ = true;
    tools::Tool* tool = find(call.name);
    if (tool == nullptr) {
        co_return tools::tool_error(
            fmt::format("There is no tool \"{}\" here. The tools are: {}.", call.name, tool_names())
        );
    }
    if (rerun_ && tool->spec().effect == tools::Effect::effect) {
        co_return tools::tool_error(std::string(kMayHaveHappened));
    }
    if (call.name == kExecute) {
        run_->environment->remember_command(last_command_ms(run_->history));
    }
    const tools::ToolContext context = context_for(call, index);
    co_return co_await call_tool(tool, &context, std::move(*arguments));
}

base::Task<tools::ToolResult> ToolRound::call_tool(
    tools::Tool* tool, const tools::ToolContext* context, json::object arguments
) {
    tools::ToolResult result = co_await guarded_call(tool, context, std::move(arguments));
    // Its work is done: what is left is not given up when the run is cancelled.
    co_await base::shield_from_cancellation();
    result = co_await redacted(std::move(result));
    co_return co_await tools::cap_result(std::move(result), *run_->environment, context->call_id);
}

// All that a tool says comes through here before it is stored, sent or shown to a model: it has no
// value of the user's variables from here on. Before it is cut: a part of one would not be found.
base::Task<tools::ToolResult> ToolRound::redacted(tools::ToolResult result) {
    const std::shared_ptr<const UserEnv> env = run_->user_env;
    const base::Redactor& secrets = env->secrets;
    secrets.redact(result.facts);
    secrets.redact(result.state);
    if (result.text.size() <= kRedactedAtOnce || secrets.empty()) {
        result.text = secrets.redact(std::move(result.text));
        co_return result;
    }
    auto work = [env, text = std::move(result.text)] { return env->secrets.redact(text); };
    result.text = co_await run_->environment->offload().run(std::move(work));
    co_return result;
}

// What a tool throws becomes a result, unless it was cancelled.
base::Task<tools::ToolResult> ToolRound::guarded_call(
    tools::Tool* tool, const tools::ToolContext* context, json::object arguments
) {
    std::string failure;
    try {
        co_return co_await tool->call(*context, std::move(arguments));
    } catch (const boost::system::system_error& error) {
        if (error.code() == base::asio::error::operation_aborted) {
            throw;
        }
        failure = error.what();
    } catch (const std::exception& error) {
        failure = error.what();
    }
    failure = run_->user_env->secrets.redact(std::move(failure));
    parts_.log.error(
        "tool_threw", {{"run_id", context->run_id}, {"tool", tool->spec().name}, {"error", failure}}
    );
    co_return tools::tool_error(
        fmt::format("{} failed inside the server: {}", tool->spec().name, failure)
    );
}

tools::Tool* ToolRound::find(std::string_view name) const {
    const auto it = std::find_if(offered_.begin(), offered_.end(), [&](const tools::Tool* tool) {
        return tool->spec().name == name;
    });
    return it == offered_.end() ? nullptr : *it;
}

std::string ToolRound::tool_names() const {
    std::string out;
    for (const tools::Tool* tool : offered_) {
        out += (out.empty() ? "" : ", ") + tool->spec().name;
    }
    return out.empty() ? "none" : out;
}

tools::ToolContext ToolRound::context_for(const store::ToolCall& call, std::size_t index) const {
    tools::ToolContext context;
    context.uid = run_->record.uid;
    context.run_id = run_->record.id;
    context.thread_id = run_->record.thread_id;
    context.call_id = call.id;
    context.run_no = run_->record.no;
    context.step = step_;
    context.index = static_cast<std::uint32_t>(index);
    context.rerun = rerun_;
    context.deadline = run_->deadline;
    context.environment = run_->environment.get();
    const auto stored = parts_.store.read([&](const store::ReadTxn& txn) {
        return txn.call(run_->record.no, step_, static_cast<std::uint32_t>(index));
    });
    context.deadline_ms = stored ? stored->deadline_ms : 0;
    return context;
}

StoredResult ToolRound::stored_result(
    store::MessageRecord message, tools::ToolResult result, std::size_t index
) {
    message.content = base::to_utf8(result.text).text;
    message.is_error = result.is_error;
    const bool state_changed = !result.state.empty();
    merge_state(run_->state, result.state);
    return StoredResult{
        std::move(message),
        std::move(result.facts),
        state_changed ? json::serialize(run_->state) : std::string(),
        step_,
        static_cast<std::uint32_t>(index)
    };
}

base::Task<base::Result<void>> ToolRound::store_result(
    store::MessageRecord message, tools::ToolResult result, std::size_t index
) {
    const auto stored =
        std::make_shared<StoredResult>(stored_result(std::move(message), std::move(result), index));
    std::function<base::Result<bool>(store::WriteTxn&)> change =
        [run = run_->record, stored](store::WriteTxn& txn) -> base::Result<bool> {
        write_result(txn, run, *stored);
        return true;
    };
    const base::Result<bool> written =
        co_await commit<bool>(parts_.store, run_->deadline, run_->process_ends, std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    run_->history.push_back(std::move(stored->message));
    run_->changed.notify_all();
    co_return base::Result<void>();
}

void write_result(store::WriteTxn& txn, const store::RunRecord& run, StoredResult& result) {
    txn.add_message(result.message);
    store::CallRecord call =
        txn.call(run.no, result.step, result.index).value_or(store::CallRecord{});
    call.run = run.no;
    call.step = result.step;
    call.index = result.index;
    call.done = true;
    call.result = result.message.seq;
    txn.put_call(call);
    store::EventRecord finished = events::tool_finished(run, result.message, result.facts);
    txn.add_event(finished);
    if (!result.state.empty()) {
        store::CheckpointRecord checkpoint;
        checkpoint.thread = run.thread;
        checkpoint.run = run.no;
        checkpoint.step = result.step;
        checkpoint.message_head = result.message.seq;
        checkpoint.state = result.state;
        txn.add_checkpoint(checkpoint);
        store::EventRecord changed = events::agent_state(run, checkpoint);
        txn.add_event(changed);
    }
}

}  // namespace ars::runs
