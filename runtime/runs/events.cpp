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

// What a reader is shown of the record `source`.
store::EventRecord shape(const store::RunRecord& run, Shape shape, store::Seq source) {
    store::EventRecord event;
    event.run = run.no;
    event.shape = static_cast<std::uint8_t>(shape);
    event.source = source;
    return event;
}

// Arguments as an object where the model wrote one, else as the text it wrote.
json::value readable(const std::string& arguments) {
    boost::system::error_code error;
    json::value value = json::parse(arguments.empty() ? "{}" : arguments, error);
    return error ? json::value(arguments) : value;
}

store::EventRecord show_metadata(const store::ReadTxn& txn, const store::RunRecord& run) {
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
    payload["created_by_run_id"] = run.type == store::RunType::resume
                                       ? json::value(txn.run(run.parent).value().id)
                                       : json::value(nullptr);
    return make(run, "metadata", std::move(payload));
}

store::EventRecord show_tool_call(
    const store::RunRecord& run, const store::MessageRecord& message, std::uint32_t index
) {
    const store::ToolCall& call = message.tool_calls.at(index);
    return messages(
        run,
        {{"type", "tool_call"},
         {"message_id", message.id},
         {"tool_call_id", call.id},
         {"name", call.name},
         {"args", readable(call.arguments)},
         {"index", index}}
    );
}

store::EventRecord show_tool_started(const store::RunRecord& run, const store::ToolCall& call) {
    return tool_event(
        run,
        {{"event", "tool-started"},
         {"tool_name", call.name},
         {"tool_call_id", call.id},
         {"input", readable(call.arguments)}}
    );
}

store::EventRecord show_tool_finished(
    const store::RunRecord& run, const store::MessageRecord& result, const std::string& facts
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
         {"facts", json::parse(facts.empty() ? "{}" : facts)}}
    );
}

store::EventRecord show_agent_state(const store::RunRecord& run, const std::string& state) {
    json::object body = chunk(run, "agent_state");
    json::value agent_state = json::parse(state.empty() ? "{}" : state);
    body["agent_state"] = agent_state;
    return custom(
        run, "ars.agent_state", {{"chunk", std::move(body)}, {"agent_state", agent_state}}
    );
}

store::EventRecord show_end(const store::RunRecord& run, store::RunStatus status) {
    return make(
        run,
        "end",
        {{"status", store::to_string(status)},
         {"request_id", run.request_id},
         {"chunk", chunk(run, "finished")}}
    );
}

// Makes the events of one run whole. Events of one message follow each other, so it is kept.
class View {
  public:
    View(const store::ReadTxn& txn, const store::RunRecord& run) : txn_(txn), run_(run) {}

    store::EventRecord whole(store::EventRecord stored) {
        store::EventRecord shown = show(stored);
        shown.id = stored.id;
        shown.created_ms = stored.created_ms;
        return shown;
    }

  private:
    store::EventRecord show(const store::EventRecord& stored) {
        switch (static_cast<Shape>(stored.shape)) {
            case Shape::metadata:
                return show_metadata(txn_, run_);
            case Shape::message: {
                const store::MessageRecord& said = message(stored.source);
                return message_delta(run_, said.id, said.content, said.reasoning);
            }
            case Shape::tool_call:
                return show_tool_call(run_, message(stored.source), stored.index);
            case Shape::tool_started:
                return show_tool_started(run_, message(stored.source).tool_calls.at(stored.index));
            case Shape::tool_finished:
                return show_tool_finished(run_, message(stored.source), stored.payload);
            case Shape::agent_state:
                return show_agent_state(run_, txn_.checkpoint(stored.source).value().state);
            case Shape::end:
                return show_end(run_, static_cast<store::RunStatus>(stored.index));
            case Shape::as_written:
                break;
        }
        return stored;
    }

    const store::MessageRecord& message(store::Seq seq) {
        if (message_.seq != seq) {
            message_ = txn_.message(seq).value();
        }
        return message_;
    }

    const store::ReadTxn& txn_;
    const store::RunRecord& run_;
    store::MessageRecord message_;
};

}  // namespace

std::vector<store::EventRecord> read(
    const store::ReadTxn& txn, const store::RunRecord& run, store::EventId after, std::size_t limit
) {
    std::vector<store::EventRecord> events = txn.events(run.no, after, limit);
    View view(txn, run);
    for (store::EventRecord& event : events) {
        if (event.shape != 0) {
            event = view.whole(std::move(event));
        }
    }
    return events;
}

store::EventRecord metadata(const store::RunRecord& run) { return shape(run, Shape::metadata, 0); }

store::EventRecord message(const store::RunRecord& run, const store::MessageRecord& message) {
    return shape(run, Shape::message, message.seq);
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

store::EventRecord tool_call(const store::RunRecord& run, store::Seq message, std::uint32_t index) {
    store::EventRecord event = shape(run, Shape::tool_call, message);
    event.index = index;
    return event;
}

store::EventRecord tool_started(
    const store::RunRecord& run, store::Seq message, std::uint32_t index
) {
    store::EventRecord event = shape(run, Shape::tool_started, message);
    event.index = index;
    return event;
}

store::EventRecord tool_finished(
    const store::RunRecord& run, const store::MessageRecord& result, const json::object& facts
) {
    store::EventRecord event = shape(run, Shape::tool_finished, result.seq);
    if (!facts.empty()) {
        event.payload = json::serialize(facts);
    }
    return event;
}

store::EventRecord agent_state(
    const store::RunRecord& run, const store::CheckpointRecord& checkpoint
) {
    return shape(run, Shape::agent_state, checkpoint.seq);
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
    store::EventRecord event = shape(run, Shape::end, 0);
    event.index = static_cast<std::uint32_t>(run.status);
    return event;
}

}  // namespace ars::runs::events
