// Threads and what was said in them.
#include "server/dto_checkpoints.hpp"
#include "server/dto_threads.hpp"
#include "server/openapi.hpp"
#include "server/query_number.hpp"

namespace ars::server::openapi {

namespace {

constexpr std::string_view kId = "The thread.";

Schema thread() {
    return object(
        {{"id", text()},
         {"uid", text()},
         {"agent_id", text("The agent's slug.")},
         {"title", text()},
         {"is_pinned", boolean()},
         {"tool_approval_mode", nullable(choice({"default", "always_trust"}))},
         {"project_id", nullable(text())},
         {"workdir_path", text()},
         {"parent_thread_id", nullable(text())},
         {"status", choice({"active", "archived", "deleted", "subagent"})},
         {"created_at", time()},
         {"updated_at", time()},
         {"metadata", anything("As it was sent.")},
         {"thread_status", ref("ThreadStatus")}}
    );
}

std::vector<Member> message_members(std::string_view role) {
    return {
        {"id", text()},
        {"role", constant(role)},
        {"content", text()},
        {"run_id", nullable(text())},
        {"request_id", nullable(text())},
        {"created_at", time()},
    };
}

Schema message() {
    std::vector<Member> assistant = message_members("assistant");
    assistant.push_back({"reasoning_content", text()});
    assistant.push_back({"tool_calls", list(ref("ToolCall"))});
    assistant.push_back({"run_started_at", nullable(time())});
    assistant.push_back({"run_finished_at", nullable(time())});
    return any_of({object(message_members("user")), object(assistant)});
}

Schema tool_call() {
    return object(
        {{"id", text()},
         {"name", text()},
         {"input", anything("An object; a text where the model wrote no JSON.")},
         {"status", choice({"pending", "success", "error"})},
         {"output", nullable(text())},
         {"duration_ms?", whole()}}
    );
}

Schema subagent_run() {
    return object(
        {{"id?", text("Of the tool call.")},
         {"run_id", text()},
         {"subagent_slug", text()},
         {"subagent_name?", text()},
         {"child_thread_id", text()},
         {"events_url", text()},
         {"result_url", text()},
         {"status", text()},
         {"created_at?", time()},
         {"completed_at?", time()},
         {"token_usage?",
          object({{"input_tokens", whole()}, {"output_tokens", whole()}, {"complete", boolean()}})},
         {"error?", text()}}
    );
}

Schema counted(std::initializer_list<Member> more = {}) {
    std::vector<Member> members{
        {"input_tokens", whole()},
        {"output_tokens", whole()},
        {"total_tokens", whole()},
        {"complete", boolean()},
    };
    members.insert(members.end(), more.begin(), more.end());
    return object(members);
}

Schema thread_usage() {
    return object(
        {{"schema_version", {{"const", 2}}},
         {"latest", nullable(counted())},
         {"run", counted({{"run_id?", text()}})},
         {"thread", counted({{"models", map(counted())}})}}
    );
}

Schema agent_state(bool whole_state) {
    const Schema todo =
        object({{"content", text()}, {"status", choice({"pending", "in_progress", "completed"})}});
    const auto named = [whole_state](std::string_view name) {
        return name.substr(0, name.size() - (whole_state ? 1 : 0));
    };
    return object(
        {{named("todos?"), list(todo)},
         {named("artifacts?"), list(text("A path."))},
         {named("subagent_runs?"), list(ref("SubagentRun"))},
         {named("activated_skills?"), list(text())},
         {named("token_usage?"), ref("ThreadUsage")}}
    );
}

Schema thread_state() {
    return object(
        {{"thread_id", text()},
         {"parent_thread_id", nullable(text())},
         {"thread_status", ref("ThreadStatus")},
         {"agent_state", ref("AgentState")},
         {"interrupts", list(ref("Interrupt"))},
         {"subagent_thread?",
          object(
              {{"parent_thread_id", nullable(text())},
               {"child_thread_id", text()},
               {"subagent_slug", text()}}
          )},
         {"subagent_run?", nullable(ref("Run"))},
         {"messages?", list(ref("Message"))}}
    );
}

std::vector<Member> checkpoint_members() {
    return {
        {"checkpoint_id", text()},
        {"run_id", nullable(text())},
        {"step", whole()},
        {"agent_state", ref("StoredState")},
        {"created_at", time()},
    };
}

Schema checkpoint_with_history() {
    std::vector<Member> members = checkpoint_members();
    members.push_back({"history", list(ref("Message"))});
    return object(members);
}

Operation list_operation(std::string path, std::string_view id, std::string_view doc) {
    return Operation(Method::get, std::move(path), id, doc)
        .query("limit", whole_to(kListLimit), "At most so many; 100.")
        .query("offset", whole_to(kListOffset), "Without so many of the first.")
        .query("agent_id", text(), "Only those of this agent.")
        .answers(200, object({{"threads", list(ref("Thread"))}}))
        .fails({422});
}

void add_checkpoints(std::vector<Operation>& out) {
    out.push_back(Operation(
                      Method::get,
                      "/api/chat/thread/{id}/checkpoints",
                      "listCheckpoints",
                      "One for each step, newest first."
    )
                      .path("id", kId)
                      .query("limit", whole_to(200), "At most so many; 20.")
                      .query("before", text(), "The last id of the page before.")
                      .answers(200, object({{"checkpoints", list(ref("Checkpoint"))}}))
                      .fails({404, 422}));
    out.push_back(Operation(
                      Method::get,
                      "/api/chat/thread/{id}/checkpoints/{checkpoint}",
                      "getCheckpoint",
                      "What had been said by then, and the state."
    )
                      .path("id", kId)
                      .path("checkpoint", "Its id.")
                      .answers(200, checkpoint_with_history())
                      .fails({404}));
    out.push_back(Operation(
                      Method::post,
                      "/api/chat/thread/{id}/fork",
                      "forkThread",
                      "A new thread that goes on from a checkpoint."
    )
                      .path("id", kId)
                      .body(ref("ForkRequest"))
                      .answers(200, ref("Thread"))
                      .fails({404, 409, 503}));
}

}  // namespace

Part threads_part() {
    Part part{"threads", "Conversations.", {}, {}};
    part.schemas = {
        {"ThreadStatus", choice({"loading", "ready", "done"})},
        {"Thread", thread()},
        {"Message", message()},
        {"ToolCall", tool_call()},
        {"SubagentRun", subagent_run()},
        {"ThreadUsage", thread_usage()},
        {"AgentState", agent_state(true)},
        {"StoredState", documented(agent_state(false), "What a step wrote; the rest is absent.")},
        {"ThreadState", thread_state()},
        {"Checkpoint", object(checkpoint_members())},
        {"ThreadRequest", new_thread_schema()},
        {"ThreadChange", thread_change_schema()},
        {"ForkRequest", fork_schema()},
    };
    std::vector<Operation>& out = part.operations;
    out.push_back(Operation(Method::post, "/api/chat/thread", "createThread", "Makes a thread.")
                      .body(ref("ThreadRequest"))
                      .answers(200, ref("Thread"))
                      .fails({404, 409, 503}));
    out.push_back(list_operation(
        "/api/chat/threads", "listThreads", "Your threads, pinned ones first, then newest first."
    ));
    out.push_back(
        list_operation("/api/chat/threads/search", "searchThreads", "By a part of the title.")
            .required_query("q", text(), "What the title holds, at most 256 bytes.")
    );
    out.push_back(Operation(Method::get, "/api/chat/thread/{id}", "getThread", "One thread.")
                      .path("id", kId)
                      .answers(200, ref("Thread"))
                      .fails({404}));
    out.push_back(
        Operation(Method::put, "/api/chat/thread/{id}", "changeThread", "Title, pin, approvals.")
            .path("id", kId)
            .body(ref("ThreadChange"))
            .answers(200, ref("Thread"))
            .fails({404, 503})
    );
    out.push_back(
        Operation(Method::post, "/api/chat/thread/{id}/viewed", "viewThread", "Its end was seen.")
            .path("id", kId)
            .answers(200, ref("Thread"))
            .fails({404, 503})
    );
    out.push_back(
        Operation(Method::del, "/api/chat/thread/{id}", "deleteThread", "Hides it for good.")
            .path("id", kId)
            .answers(200, object({{"deleted", {{"const", true}}}}))
            .fails({404, 503})
    );
    out.push_back(
        Operation(Method::get, "/api/chat/thread/{id}/history", "getHistory", "What was said.")
            .path("id", kId)
            .query("limit", whole_to(10'000), "The newest so many messages; 1000.")
            .query("before", text(), "`next` of the page after this one.")
            .answers(200, object({{"history", list(ref("Message"))}, {"next", nullable(text())}}))
            .fails({404, 422})
    );
    out.push_back(
        Operation(Method::get, "/api/chat/thread/{id}/state", "getState", "What is on its table.")
            .path("id", kId)
            .query("include_messages", boolean(), "And its newest 1000 messages.")
            .answers(200, ref("ThreadState"))
            .fails({404, 422})
    );
    add_checkpoints(out);
    return part;
}

}  // namespace ars::server::openapi
