// What event streams carry. The short form of a run's events leaves out the members with "?" that
// repeat the envelope.
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

Schema run_event(std::string_view type, Schema payload) {
    return object(
        {{"schema_version", {{"const", 1}}},
         {"run_id", text()},
         {"thread_id?", text("Of the full form.")},
         {"request_id?", text("Of the short form.")},
         {"event", constant(type)},
         {"payload", std::move(payload)},
         {"created_at", time()}}
    );
}

Schema chunk(std::string_view status, std::initializer_list<Member> more = {}) {
    std::vector<Member> members{
        {"request_id?", text()}, {"thread_id?", text()}, {"status", constant(status)}
    };
    members.insert(members.end(), more.begin(), more.end());
    return object(members);
}

Schema metadata() {
    return object(
        {{"request_id?", text()},
         {"agent_slug?", text()},
         {"uid?", text()},
         {"source", text()},
         {"run_type", ref("RunType")},
         {"model_spec?", text()},
         {"created_by_call_id?", nullable(text())},
         {"created_by_run_id?", nullable(text())}}
    );
}

Schema messages() {
    const Schema names = list(text());
    const Schema delta = object(
        {{"type", constant("message_delta")},
         {"message_id", text()},
         {"content?", text()},
         {"reasoning_content?", text()},
         {"thread_id?", text()},
         {"namespace?", names}}
    );
    const Schema call = object(
        {{"type", constant("tool_call")},
         {"message_id", text()},
         {"tool_call_id", text()},
         {"name", text()},
         {"args", anything("An object; a text where the model wrote no JSON.")},
         {"index", whole()},
         {"thread_id?", text()},
         {"namespace?", names}}
    );
    return object(
        {{"items",
          list(chunk("loading", {{"response?", text()}, {"stream_event", any_of({delta, call})}}))}}
    );
}

Schema tool_event() {
    const Schema output = object(
        {{"type", constant("tool")},
         {"tool_call_id", text()},
         {"name", text()},
         {"status", choice({"success", "error"})},
         {"content", text()}}
    );
    const Schema started = object(
        {{"event", constant("tool-started")},
         {"tool_name", text()},
         {"tool_call_id", text()},
         {"input", anything()}}
    );
    const Schema finished = object(
        {{"event", constant("tool-finished")},
         {"tool_name", text()},
         {"tool_call_id", text()},
         {"output", output},
         {"duration_ms", whole()},
         {"facts", open_object("What the tool measured.")}}
    );
    const Schema event = object(
        {{"method", constant("tools")},
         {"namespace?", list(text())},
         {"data", any_of({started, finished})}}
    );
    return object(
        {{"name", constant("ars.stream_event")},
         {"chunk", chunk("stream_event", {{"event", event}})}}
    );
}

Schema state_event() {
    return object(
        {{"name", constant("ars.agent_state")},
         {"agent_state", ref("StoredState")},
         {"chunk", chunk("agent_state", {{"agent_state", ref("StoredState")}})}}
    );
}

Schema subagent_event() {
    return object(
        {{"name", constant("ars.subagent_run_update")},
         {"run_id", text()},
         {"thread_id", text()},
         {"subagent_slug", text()},
         {"status", ref("RunStatus")},
         {"tool_call_id", text()},
         {"error", nullable(text())}}
    );
}

Schema reset() { return object({{"message_id", nullable(text())}, {"reason", text()}}); }

// A call that waits for an approval, one that waits for answers, and a run that was cancelled.
Schema interrupts() {
    const Schema request = object({{"name", text()}, {"args", anything()}});
    const Schema review = object({{"action_name", text()}, {"allowed_decisions", list(text())}});
    return any_of(
        {object(
             {{"reason", constant("human_approval")},
              {"interrupt", ref("Interrupt")},
              {"chunk",
               chunk(
                   "human_approval_required",
                   {{"action_requests", list(request)}, {"review_configs", list(review)}}
               )}}
         ),
         object(
             {{"reason", constant("ask_user_question_required")},
              {"interrupt", ref("Interrupt")},
              {"chunk",
               chunk(
                   "ask_user_question_required",
                   {{"questions", list(ref("Question"))}, {"source", text()}}
               )}}
         ),
         object({{"reason", text()}, {"chunk", chunk("interrupted")}})}
    );
}

Schema error() {
    const Schema told = chunk("error", {{"error_type", text()}, {"error_message", text()}});
    return any_of(
        {object({{"chunk", told}, {"retryable", boolean()}}),
         documented(
             object({{"reason", constant("db_error")}, {"retryable", boolean()}}),
             "The log can't be read; the run may go on."
         )}
    );
}

Schema gap() {
    return object({{"reason", constant("retention")}, {"after", text()}, {"through", text()}});
}

Schema end() {
    return object(
        {{"status", ref("RunStatus")}, {"request_id?", text()}, {"chunk?", chunk("finished")}}
    );
}

Schema request_events() {
    const auto ended = [](std::string_view status) {
        return object(
            {{"request_id", text()},
             {"status", constant(status)},
             {"error_type?", text()},
             {"error_message?", text()}}
        );
    };
    return any_of(
        {documented(
             object({{"request_id", text()}, {"status", constant("queued")}, {"position", whole()}}
             ),
             "`queued`, with each new position."
         ),
         documented(
             object({{"request_id", text()}, {"run_id", text()}, {"stream_url", text()}}),
             "`run_created`: the last one."
         ),
         ended("cancelled"),
         ended("rejected"),
         object({{"reason", constant("db_error")}, {"retryable", boolean()}})}
    );
}

}  // namespace

Part events_part() {
    Part part{"", "", {}, {}};
    part.schemas = {
        {"RunEvent",
         any_of(
             {run_event("metadata", metadata()),
              run_event("messages", messages()),
              run_event("custom", tool_event()),
              run_event("custom", state_event()),
              run_event("custom", subagent_event()),
              run_event("reset", reset()),
              run_event("interrupt", interrupts()),
              run_event("error", error()),
              run_event("gap", gap()),
              run_event("end", end())}
         )},
        {"RequestEvent", request_events()},
    };
    return part;
}

}  // namespace ars::server::openapi
