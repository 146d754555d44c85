// Runs.
#include "server/dto_resume.hpp"
#include "server/dto_runs.hpp"
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

// Of the run and, below it, of its sub-agents.
Schema usage() {
    return object(
        {{"input_tokens", whole()},
         {"output_tokens", whole()},
         {"total_tokens", whole()},
         {"complete", documented(boolean(), "Every model call told its own.")},
         {"subagents?", ref("TokenUsage")}}
    );
}

Schema run() {
    return object(
        {{"id", text()},
         {"run_id", text("The id.")},
         {"thread_id", text()},
         {"conversation_thread_id", text()},
         {"runtime_scope_id", text("Its sandbox: runs of one tree share it.")},
         {"agent_slug", text()},
         {"agent_version", whole("Of the agent when the run was taken.")},
         {"config_digest", nullable(text("Of that version's definition."))},
         {"uid", text()},
         {"status", ref("RunStatus")},
         {"request_id", text()},
         {"run_type", ref("RunType")},
         {"created_by_run_id", nullable(text("The parent, or the run that it resumed."))},
         {"input_message_id", nullable(text())},
         {"output_message_id", nullable(text())},
         {"input_payload",
          object({{"model_spec", text()}, {"tool_approval_mode", ref("ApprovalMode")}})},
         {"token_usage", ref("TokenUsage")},
         {"error_type", nullable(text())},
         {"error_message", nullable(text())},
         {"steps", whole("Model calls so far.")},
         {"max_steps", whole()},
         {"attempt", whole("Boots that took it over, and the first.")},
         {"created_at", time()},
         {"started_at", nullable(time())},
         {"finished_at", nullable(time())},
         {"interrupts", list(ref("Interrupt"))},
         {"resumed_by_run_id", nullable(text())}}
    );
}

Schema result() {
    return object(
        {{"status", ref("RunStatus")},
         {"output", text("Empty until it completed.")},
         {"agent_slug", text()},
         {"thread_id", text()},
         {"conversation_id", whole()},
         {"agent_run_id", text()},
         {"request_id", text()},
         {"final_message_id", nullable(text())},
         {"langfuse_trace_id", {{"type", "null"}}},
         {"token_usage", ref("TokenUsage")},
         {"error?", ref("RunError")}}
    );
}

Schema question() {
    const Schema option = object({{"label", text()}, {"value", text()}, {"description?", text()}});
    return object(
        {{"question_id", text()},
         {"question", text()},
         {"options", list(option)},
         {"multi_select", boolean()},
         {"allow_other", boolean()},
         {"operation?", text()}}
    );
}

// Of an approval and of a question.
Schema interrupt() {
    const auto of_type = [](std::string_view type, const Member& more) {
        return object(
            {{"id", text()},
             {"type", constant(type)},
             {"run_id", text()},
             {"tool_call_id", text()},
             {"tool_name", text()},
             more}
        );
    };
    return any_of(
        {of_type("approval", {"arguments", anything("An object; a text where it is no JSON.")}),
         of_type("question", {"questions", list(ref("Question"))})}
    );
}

Schema submitted() {
    return object(
        {{"request_id", text()},
         {"status", ref("RequestStatus")},
         {"queue_policy", ref("QueuePolicy")},
         {"queue_position", whole()},
         {"message_id", nullable(text())},
         {"run_id", nullable(text("Null while the message waits in its thread's queue."))},
         {"run_status", nullable(ref("RunStatus"))},
         {"thread_id", text()},
         {"stream_url", nullable(text())},
         {"request_events_url", nullable(text())},
         {"not_applied?", list(text("A key that a resume has no use for."))}}
    );
}

}  // namespace

Part runs_part() {
    Part part{"runs", "Runs of agents.", {}, {}};
    part.schemas = {
        {"RunStatus",
         choice(
             {"pending",
              "running",
              "interrupted",
              "cancel_requested",
              "completed",
              "failed",
              "cancelled"}
         )},
        {"RunType", choice({"chat", "resume", "subagent"})},
        {"RequestStatus", choice({"queued", "dispatched", "cancelled", "rejected"})},
        {"QueuePolicy", choice({"enqueue", "reject", "steer"})},
        {"ApprovalMode", choice({"default", "always_trust"})},
        {"TokenUsage", usage()},
        {"RunError", object({{"type", text()}, {"message", text()}})},
        {"Question", question()},
        {"Interrupt", interrupt()},
        {"Run", run()},
        {"RunResult", result()},
        {"Submitted", submitted()},
        {"RunRequest", run_request_schema()},
        {"ResumeRequest", resume_request_schema()},
    };
    part.operations.push_back(
        Operation(Method::post, "/api/agent/runs", "startRun", "Starts a run, or resumes one.")
            .header("Idempotency-Key", "The request id; the same id and body give the same run.")
            .body(any_of({ref("RunRequest"), ref("ResumeRequest")}))
            .answers(202, ref("Submitted"))
            .fails({404, 409, 429, 503})
    );
    part.operations.push_back(
        Operation(Method::get, "/api/agent/runs/{id}", "getRun", "How a run stands.")
            .path("id", "The run.")
            .answers(200, object({{"run", ref("Run")}}))
            .fails({404})
    );
    part.operations.push_back(
        Operation(Method::get, "/api/agent/runs/{id}/result", "getRunResult", "What it said last.")
            .path("id", "The run.")
            .answers(200, ref("RunResult"))
            .fails({404})
    );
    part.operations.push_back(
        Operation(Method::get, "/api/agent/runs/{id}/events", "followRun", "Replay, then live.")
            .path("id", "The run.")
            .query("after_seq", text(), "The id of the last event that you have; -1 for all.")
            .query("verbose", boolean(), "false: the short form.")
            .header("Last-Event-ID", "Wins over after_seq.")
            .answers_events("RunEvent")
            .fails({400, 404, 422})
    );
    part.operations.push_back(
        Operation(Method::post, "/api/agent/runs/{id}/cancel", "cancelRun", "Cancels a run.")
            .path("id", "The run.")
            .answers(200, object({{"run", ref("Run")}}), "As it stands; no-op when it has ended.")
            .fails({404, 503})
    );
    return part;
}

}  // namespace ars::server::openapi
