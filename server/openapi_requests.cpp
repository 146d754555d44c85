// Requests, queues, and calls that wait for their run.
#include "server/dto_invocation.hpp"
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

constexpr std::string_view kId = "The request id.";

std::vector<Member> request_members() {
    return {
        {"request_id", text()},
        {"uid", text()},
        {"agent_slug", text()},
        {"thread_id", text()},
        {"source", text()},
        {"queue_policy", ref("QueuePolicy")},
        {"status", ref("RequestStatus")},
        {"queue_position", whole()},
        {"input_message_id", nullable(text())},
        {"dispatched_run_id", nullable(text())},
        {"error_type", nullable(text())},
        {"error_message", nullable(text())},
        {"created_at", time()},
        {"dispatched_at", nullable(time())},
        {"updated_at", nullable(time())},
    };
}

Schema queue() {
    std::vector<Member> queued = request_members();
    queued.push_back({"content", text("The first 4 KiB of its message.")});
    return object(
        {{"requests", list(object(queued))},
         {"queue",
          object(
              {{"status", choice({"idle", "ready", "running", "paused", "interrupted"})},
               {"paused_reason", nullable(choice({"run_failed", "run_cancelled"}))},
               {"blocking_run_id", nullable(text())},
               {"can_continue", boolean()}}
          )}}
    );
}

Schema call_result() {
    const Schema message = object({{"role", constant("assistant")}, {"content", text()}});
    const Schema choices = object(
        {{"index", whole()},
         {"message", message},
         {"messages", list(message)},
         {"finish_reason", nullable(choice({"stop", "failed", "cancelled", "interrupted"}))}}
    );
    const Schema usage = object(
        {{"prompt_tokens", whole()}, {"completion_tokens", whole()}, {"total_tokens", whole()}}
    );
    return object(
        {{"run_id", text()},
         {"agent_slug", text()},
         {"thread_id", text()},
         {"status", ref("RunStatus")},
         {"request_id", text()},
         {"output", text()},
         {"choices", list(choices)},
         {"usage", nullable(usage)},
         {"error?", ref("RunError")},
         {"agent_call_meta?", open_object("As it was sent.")}}
    );
}

}  // namespace

Part requests_part() {
    Part part{"requests", "Messages that wait for their thread, and its queue.", {}, {}};
    part.schemas = {{"Request", object(request_members())}, {"Queue", queue()}};
    part.operations.push_back(
        Operation(
            Method::get, "/api/agent/requests/{id}", "getRequest", "What became of a message."
        )
            .path("id", kId)
            .answers(200, object({{"request", ref("Request")}}))
            .fails({404})
    );
    part.operations.push_back(Operation(
                                  Method::get,
                                  "/api/agent/requests/{id}/events",
                                  "followRequest",
                                  "Its place in the queue, until it is a run."
    )
                                  .path("id", kId)
                                  .answers_events("RequestEvent")
                                  .fails({404}));
    part.operations.push_back(
        Operation(
            Method::post,
            "/api/agent/requests/{id}/cancel",
            "cancelRequest",
            "Takes a queued message back."
        )
            .path("id", kId)
            .empty_body()
            .answers(200, object({{"request_id", text()}, {"status", ref("RequestStatus")}}))
            .fails({404, 409, 503})
    );
    part.operations.push_back(Operation(
                                  Method::post,
                                  "/api/agent/requests/{id}/steer",
                                  "steerRequest",
                                  "Lets a queued message go first and steer."
    )
                                  .path("id", kId)
                                  .empty_body()
                                  .answers(
                                      200,
                                      object(
                                          {{"request_id", text()},
                                           {"thread_id", text()},
                                           {"status", ref("RequestStatus")},
                                           {"queue_policy", ref("QueuePolicy")},
                                           {"queue_position", whole()},
                                           {"request_events_url", text()}}
                                      )
                                  )
                                  .fails({404, 409, 503}));
    part.operations.push_back(
        Operation(Method::get, "/api/agent/thread/{id}/requests", "getQueue", "A thread's queue.")
            .path("id", "The thread.")
            .query("agent_slug", text(), "Must be the thread's.")
            .answers(200, ref("Queue"))
            .fails({404, 409})
    );
    part.operations.push_back(
        Operation(
            Method::post,
            "/api/agent/thread/{id}/requests/continue",
            "continueQueue",
            "Starts the first of a paused queue."
        )
            .path("id", "The thread.")
            .query("agent_slug", text(), "Must be the thread's.")
            .empty_body()
            .answers(
                200,
                object(
                    {{"status", constant("dispatched")}, {"request_id", text()}, {"run_id", text()}}
                )
            )
            .fails({404, 409, 429, 503})
    );
    part.operations.push_back(Operation(
                                  Method::get,
                                  "/api/agent/thread/{id}/active_run",
                                  "getActiveRun",
                                  "The thread's run that has not ended."
    )
                                  .path("id", "The thread.")
                                  .answers(200, object({{"run", nullable(ref("Run"))}}))
                                  .fails({404}));
    return part;
}

Part calls_part() {
    Part part{"calls", "Calls in the shape of chat completions, answered by the end.", {}, {}};
    part.schemas = {
        {"AgentCall", agent_call_schema()},
        {"AgentCallResult", call_result()},
        {"AgentCallQuery", call_result_query_schema()},
    };
    part.operations.push_back(
        Operation(
            Method::post,
            "/api/agent-invocation/agent-call/runs",
            "callAgent",
            "Calls an agent and waits for its run."
        )
            .header(
                "Idempotency-Key", "The request id; the same id and body wait for the same run."
            )
            .body(ref("AgentCall"))
            .answers(200, ref("AgentCallResult"), "The run is over, or waits for a person.")
            .answers(
                202,
                any_of({ref("AgentCallResult"), ref("Submitted")}),
                "With async_mode: its run, or its place in the queue."
            )
            .fails({404, 409, 429, 503, 504})
    );
    part.operations.push_back(Operation(
                                  Method::post,
                                  "/api/agent-invocation/agent-call/runs/result",
                                  "getCallResult",
                                  "The same answer, later."
    )
                                  .body(ref("AgentCallQuery"))
                                  .answers(200, ref("AgentCallResult"))
                                  .fails({404, 409}));
    return part;
}

}  // namespace ars::server::openapi
