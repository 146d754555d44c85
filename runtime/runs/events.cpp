#include "runtime/runs/events.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace ars::runs::events {

namespace json = boost::json;

namespace {

store::EventRecord make(const store::RunRecord& run, std::string_view type, json::object payload) {
    store::EventRecord event;
    event.run = run.no;
    event.type = type;
    event.payload = json::serialize(payload);
    return event;
}

json::object chunk(const store::RunRecord& run, std::string_view status) {
    return {{"request_id", run.request_id}, {"thread_id", run.thread_id}, {"status", status}};
}

store::EventRecord messages(const store::RunRecord& run, json::object stream_event) {
    stream_event["thread_id"] = run.thread_id;
    stream_event["namespace"] = json::array{};
    json::object item = chunk(run, "loading");
    if (const auto* content = stream_event.if_contains("content")) {
        item["response"] = *content;
    }
    item["stream_event"] = std::move(stream_event);
    return make(run, "messages", {{"items", json::array{std::move(item)}}});
}

store::EventRecord custom(const store::RunRecord& run, std::string_view name, json::object body) {
    body["name"] = name;
    return make(run, "custom", std::move(body));
}

store::EventRecord tool_event(const store::RunRecord& run, json::object data) {
    json::object body = chunk(run, "stream_event");
    body["event"] =
        json::object{{"method", "tools"}, {"namespace", json::array{}}, {"data", std::move(data)}};
    return custom(run, "ars.stream_event", {{"chunk", std::move(body)}});
}

// Arguments as an object where the model wrote one, else as the text it wrote.
json::value readable(const std::string& arguments) {
    boost::system::error_code error;
    json::value value = json::parse(arguments.empty() ? "{}" : arguments, error);
    return error ? json::value(arguments) : value;
}

}  // namespace

store::EventRecord metadata(const store::RunRecord& run, std::string_view resumed_run_id) {
    json::object payload{
        {"request_id", run.request_id},
        {"agent_slug", run.agent_slug},
        {"uid", run.uid},
        {"source", run.type == store::RunType::subagent ? "subagent" : run.source},
        {"run_type", store::to_string(run.type)},
        {"model_spec", run.model_spec},
    };
    payload["created_by_call_id"] =
        run.parent_call_id.empty() ? json::value(nullptr) : json::value(run.parent_call_id);
    payload["created_by_run_id"] =
        resumed_run_id.empty() ? json::value(nullptr) : json::value(resumed_run_id);
    return make(run, "metadata", std::move(payload));
}

store::EventRecord message_delta(
    const store::RunRecord& run,
    std::string_view message_id,
    std::string_view content,
    std::string_view reasoning
) {
    json::object event{{"type", "message_delta"}, {"message_id", message_id}};
    if (!content.empty()) {
        event["content"] = content;
    }
    if (!reasoning.empty()) {
        event["reasoning_content"] = reasoning;
    }
    return messages(run, std::move(event));
}

store::EventRecord tool_call(
    const store::RunRecord& run,
    std::string_view message_id,
    const store::ToolCall& call,
    std::size_t index
) {
    return messages(
        run,
        {{"type", "tool_call"},
         {"message_id", message_id},
         {"tool_call_id", call.id},
         {"name", call.name},
         {"args", readable(call.arguments)},
         {"index", index}}
    );
}

store::EventRecord tool_started(const store::RunRecord& run, const store::ToolCall& call) {
    return tool_event(
        run,
        {{"event", "tool-started"},
         {"tool_name", call.name},
         {"tool_call_id", call.id},
         {"input", readable(call.arguments)}}
    );
}

store::EventRecord tool_finished(
    const store::RunRecord& run, const store::MessageRecord& result, const json::object& facts
) {
    json::object output{
        {"type", "tool"},
        {"tool_call_id", result.tool_call_id},
        {"name", result.tool_name},
        {"status", result.is_error ? "error" : "success"},
        {"content", result.content},
    };
    return tool_event(
        run,
        {{"event", "tool-finished"},
         {"tool_name", result.tool_name},
         {"tool_call_id", result.tool_call_id},
         {"output", std::move(output)},
         {"duration_ms", result.duration_ms},
         {"facts", facts}}
    );
}

store::EventRecord agent_state(const store::RunRecord& run, std::string_view state) {
    json::object body = chunk(run, "agent_state");
    json::value agent_state = json::parse(state.empty() ? "{}" : state);
    body["agent_state"] = agent_state;
    return custom(
        run, "ars.agent_state", {{"chunk", std::move(body)}, {"agent_state", agent_state}}
    );
}

store::EventRecord subagent_update(const store::RunRecord& child, store::RunNo parent) {
    store::RunRecord parent_view;
    parent_view.no = parent;
    parent_view.request_id = child.request_id;
    parent_view.thread_id = child.thread_id;
    return custom(
        parent_view,
        "ars.subagent_run_update",
        {{"run_id", child.id},
         {"thread_id", child.thread_id},
         {"subagent_slug", child.agent_slug},
         {"status", store::to_string(child.status)},
         {"tool_call_id", child.parent_call_id},
         {"error",
          child.error_message.empty() ? json::value(nullptr) : json::value(child.error_message)}}
    );
}

store::EventRecord reset(
    const store::RunRecord& run, std::string_view message_id, std::string_view reason
) {
    return make(
        run,
        "reset",
        {{"message_id", message_id.empty() ? json::value(nullptr) : json::value(message_id)},
         {"reason", reason}}
    );
}

store::EventRecord interrupt(const store::RunRecord& run, std::string_view reason) {
    return make(run, "interrupt", {{"reason", reason}, {"chunk", chunk(run, "interrupted")}});
}

store::EventRecord error(const store::RunRecord& run) {
    json::object body = chunk(run, "error");
    body["error_type"] = run.error_type;
    body["error_message"] = run.error_message;
    return make(run, "error", {{"chunk", std::move(body)}, {"retryable", false}});
}

store::EventRecord end(const store::RunRecord& run) {
    json::object body = chunk(run, "finished");
    return make(
        run,
        "end",
        {{"status", store::to_string(run.status)},
         {"request_id", run.request_id},
         {"chunk", std::move(body)}}
    );
}

}  // namespace ars::runs::events
