// GET /openapi.json of the real server: it is sound, every operation in it is called, and every
// answer is what it says. The model server is strict.
#include "tests/integration/openapi_attachments.hpp"
#include "tests/support/json_schema.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace ars::tests {
namespace {

class OpenApi : public AttachmentWalk {
  protected:
    void walk_system();
    void walk_agents();
    void walk_user();
    void walk_people();
    void walk_runs();
    void walk_dialog();
    void walk_requests();
    void walk_calls();
    void walk_threads();
    void walk_files(const std::string& noun, const std::string& thread);
};

void OpenApi::walk_system() {
    for (const char* operation : {"health", "ready", "discovery", "metrics", "openapi"}) {
        walk_->call({.operation = operation});
    }
    walk_->call({.operation = "reload"});
    walk_->call({.operation = "getReload"});
}

void OpenApi::walk_agents() {
    walk_->call({.operation = "listAgents", .query = {{"include_subagents", "true"}}});
    walk_->call({.operation = "getDefaultAgent"});
    walk_->call({.operation = "getAgent", .path = {{"slug", "helper"}}});
    walk_->call({.operation = "listBackends"});
    walk_->call({.operation = "getBackend", .path = {{"id", "ChatbotAgent"}}});
    const json::value made = walk_->call(
        {.operation = "createAgent",
         .body =
             {{"name", "Mine"},
              {"description", "Made by the walk."},
              {"config_json", {{"context", {{"system_prompt", "Be brief."}}}}}},
         .status = 201,
         .body_names = {"backend_id"}}
    );
    const std::string slug = text(made.at("agent"), "slug");
    walk_->call({.operation = "createAgent", .body = {{"name", "x"}, {"slug", slug}}, .status = 409}
    );
    walk_->call({.operation = "changeAgent", .path = {{"slug", slug}}, .body = {{"name", "Ours"}}});
    const ApiCall stale{
        .operation = "changeAgent",
        .path = {{"slug", slug}},
        .body = {{"name", "Theirs"}},
        .status = 412,
        .headers = {{"If-Match", "\"1-never\""}}
    };
    walk_->call(stale);
    walk_->call(
        {.operation = "changeAgent",
         .path = {{"slug", "main"}},
         .body = {{"name", "Of a file"}},
         .status = 403}
    );
    walk_->call({.operation = "listAgentVersions", .path = {{"slug", slug}}});
    walk_->call({.operation = "getAgentVersion", .path = {{"slug", slug}, {"version", "1"}}});
    walk_->call({.operation = "rollBackAgent", .path = {{"slug", slug}}, .body = {{"version", 1}}});
    walk_->call({.operation = "setDefaultAgent", .path = {{"slug", "default-chatbot"}}});
    walk_->call({.operation = "setDefaultAgent", .path = {{"slug", slug}}, .status = 422});
    walk_->call({.operation = "deleteAgent", .path = {{"slug", slug}}});
}

void OpenApi::walk_user() {
    walk_->call({.operation = "putAgentEnv", .body = {{"env", {{"NAME", "value"}}}}});
    walk_->call(
        {.operation = "putAgentEnv", .body = {{"env", {{"NO NAME", "value"}}}}, .status = 400}
    );
    walk_->call({.operation = "getAgentEnv"});
}

void OpenApi::walk_people() {
    walk_->call({.operation = "getMe"});
    const json::object bob{{"uid", "bob"}, {"role", "user"}, {"department", "sales"}};
    walk_->call({.operation = "createUser", .body = bob, .status = 201});
    walk_->call({.operation = "createUser", .body = bob, .status = 409});
    walk_->call({.operation = "listUsers", .query = {{"limit", "2"}}});
    walk_->call({.operation = "getUser", .path = {{"uid", "bob"}}});
    walk_->call(
        {.operation = "changeUser",
         .path = {{"uid", "bob"}},
         .body = {{"role", "user"}, {"department", "research"}}}
    );
    for (const char* operation : {"createApiKey", "createApiKeySlash"}) {
        const json::object wanted{
            {"name", "laptop"},
            {"request_id", std::string("request of ") + operation},
            {"user_id", "bob"},
            {"expires_at", "2999-01-01"},
            {"act_for", json::array{"alice"}}
        };
        walk_->call({.operation = operation, .body = wanted, .status = 201});
        walk_->call({.operation = operation, .body = wanted});
    }
    walk_->call({.operation = "listApiKeys", .query = {{"limit", "2"}}});
    const json::value keys =
        walk_->call({.operation = "listApiKeysSlash", .query = {{"user_id", "bob"}}});
    const std::string id = text(keys.at("api_keys").at(0), "id");
    walk_->call({.operation = "getApiKey", .path = {{"id", id}}});
    walk_->call(
        {.operation = "changeApiKey",
         .path = {{"id", id}},
         .body = {{"name", "desk"}, {"enabled", false}, {"expires_at", nullptr}}}
    );
    walk_->call({.operation = "revokeApiKey", .path = {{"id", id}}});
    walk_->call(
        {.operation = "changeApiKey", .path = {{"id", id}}, .body = {{"name", "x"}}, .status = 409}
    );
    walk_->call({.operation = "deleteUser", .path = {{"uid", "bob"}}});
    walk_->call({.operation = "deleteUser", .path = {{"uid", "alice"}}, .status = 409});
    walk_->call({.operation = "readAudit", .query = {{"limit", "3"}}});
}

void OpenApi::walk_runs() {
    const json::value run = ended("delegate it");
    const std::string id = text(run, "run_id");
    walk_->call({.operation = "getRunResult", .path = {{"id", id}}});
    walk_->call({.operation = "followRun", .path = {{"id", id}}, .query = {{"after_seq", "-1"}}});
    walk_->call({.operation = "followRun", .path = {{"id", id}}, .query = {{"verbose", "false"}}});
    walk_->call(
        {.operation = "followRun",
         .path = {{"id", id}},
         .status = 400,
         .headers = {{"Last-Event-ID", "no cursor"}}}
    );
    walk_->call({.operation = "cancelRun", .path = {{"id", id}}});
    // The thread of a sub-agent.
    const json::value state =
        walk_->call({.operation = "getState", .path = {{"id", text(run, "thread_id")}}});
    const json::array& children = state.at("agent_state").at("subagent_runs").as_array();
    ASSERT_EQ(children.size(), 1U);
    const std::string child = text(children.front(), "child_thread_id");
    walk_->call({.operation = "getThread", .path = {{"id", child}}});
    const json::value below = walk_->call({.operation = "getState", .path = {{"id", child}}});
    EXPECT_TRUE(below.as_object().contains("subagent_run"));
    walk_->call({.operation = "followRun", .path = {{"id", text(children.front(), "run_id")}}});
    // One that fails, one that is repeated, and one that contradicts itself.
    const std::string failed = text(ended("fail at once"), "run_id");
    const json::value result = walk_->call({.operation = "getRunResult", .path = {{"id", failed}}});
    EXPECT_TRUE(result.as_object().contains("error"));
    walk_->call({.operation = "followRun", .path = {{"id", failed}}});
    start("say it", {{"request_id", "once"}});
    walk_->call(
        {.operation = "startRun",
         .body = {{"agent_slug", "main"}, {"query", "say another"}, {"request_id", "once"}},
         .status = 409}
    );
    walk_->call(
        {.operation = "startRun",
         .body = {{"agent_slug", "nobody"}, {"query", "say it"}},
         .status = 404}
    );
}

// A run that waits for an approval and for an answer, and gets both.
void OpenApi::walk_dialog() {
    const json::value run = start("ask first", {{"tool_approval_mode", "default"}});
    const std::string id = text(run, "run_id");
    const json::array waiting = wait_for(id, "interrupted").at("interrupts").as_array();
    ASSERT_EQ(waiting.size(), 2U);
    const json::value state = walk_->call(
        {.operation = "getState",
         .path = {{"id", text(run, "thread_id")}},
         .query = {{"include_messages", "true"}}}
    );
    EXPECT_EQ(state.at("interrupts"), waiting);
    walk_->call({.operation = "followRun", .path = {{"id", id}}});
    json::object answers;
    for (const json::value& one : waiting) {
        answers[one.at("id").as_string()] = one.at("type") == "question"
                                                ? json::object{{"answers", {{"colour", "blue"}}}}
                                                : json::object{{"decision", "approve"}};
    }
    const json::object resume{
        {"agent_slug", "main"}, {"created_by_run_id", id}, {"resume", answers}, {"max_steps", 7}
    };
    walk_->refuse_bad_bodies({.operation = "startRun", .body = resume});
    const json::value resumed =
        walk_->call({.operation = "startRun", .body = resume, .status = 202});
    EXPECT_TRUE(resumed.as_object().contains("not_applied"));
    wait_for(text(resumed, "run_id"), "completed");
    walk_->call({.operation = "followRun", .path = {{"id", text(resumed, "run_id")}}});
}

void OpenApi::walk_requests() {
    const std::string thread = make_thread();
    walk_->call({.operation = "getActiveRun", .path = {{"id", thread}}});
    const std::string run = hold(thread);
    const json::object in_thread{{"thread_id", thread}};
    walk_->call({.operation = "getActiveRun", .path = {{"id", thread}}});
    const std::string queued = text(start("say first", in_thread), "request_id");
    const std::string taken_back = text(start("say second", in_thread), "request_id");
    walk_->call({.operation = "getRequest", .path = {{"id", queued}}});
    walk_->check_events(
        "followRequest",
        read_events(server_.port(), "/api/agent/requests/" + taken_back + "/events", kAlice, 1)
    );
    walk_->call({.operation = "getQueue", .path = {{"id", thread}}});
    walk_->call({.operation = "cancelRequest", .path = {{"id", taken_back}}});
    walk_->call({.operation = "followRequest", .path = {{"id", taken_back}}});
    walk_->call({.operation = "steerRequest", .path = {{"id", queued}}});
    walk_->call({.operation = "steerRequest", .path = {{"id", taken_back}}, .status = 409});
    walk_->call(
        {.operation = "startRun",
         .body =
             {{"agent_slug", "main"},
              {"query", "say it"},
              {"thread_id", thread},
              {"queue_policy", "reject"}},
         .status = 409}
    );
    walk_->call({.operation = "continueQueue", .path = {{"id", thread}}, .status = 409});
    walk_->call({.operation = "cancelRun", .path = {{"id", run}}});
    wait_for(run, "cancelled");
    walk_->call({.operation = "followRun", .path = {{"id", run}}});
    walk_->call({.operation = "getQueue", .path = {{"id", thread}}});
    const json::value going_on =
        walk_->call({.operation = "continueQueue", .path = {{"id", thread}}});
    wait_for(text(going_on, "run_id"), "completed");
    walk_->call({.operation = "followRequest", .path = {{"id", queued}}});
    walk_->call({.operation = "cancelRequest", .path = {{"id", queued}}, .status = 409});
    walk_->call(
        {.operation = "getQueue", .path = {{"id", thread}}, .query = {{"agent_slug", "main"}}}
    );
}

void OpenApi::walk_calls() {
    const json::array messages{json::object{{"role", "user"}, {"content", "say it"}}};
    const json::value called = walk_->call(
        {.operation = "callAgent",
         .body = {{"agent_slug", "main"}, {"messages", messages}, {"agent_call_meta", {{"a", 1}}}}}
    );
    EXPECT_TRUE(called.at("usage").is_object());
    walk_->call(
        {.operation = "callAgent",
         .body = {{"agent_slug", "main"}, {"messages", messages}, {"async_mode", true}},
         .status = 202}
    );
    walk_->call(
        {.operation = "callAgent",
         .body = {{"agent_slug", "nobody"}, {"messages", messages}},
         .status = 404}
    );
    const std::string thread = make_thread();
    hold(thread);
    json::object in_thread{{"agent_slug", "main"}, {"messages", messages}, {"thread_id", thread}};
    walk_->call({.operation = "callAgent", .body = in_thread, .status = 409});
    in_thread["async_mode"] = true;
    walk_->call({.operation = "callAgent", .body = in_thread, .status = 202});
    release();
    const json::array holds{json::object{{"role", "user"}, {"content", "hold it"}}};
    const json::value late = walk_->call(
        {.operation = "callAgent",
         .body = {{"agent_slug", "main"}, {"messages", holds}, {"wait_timeout", "1ms"}},
         .status = 504}
    );
    walk_->call(
        {.operation = "cancelRun", .path = {{"id", text(late.at("detail").at("run"), "run_id")}}}
    );
    walk_->call(
        {.operation = "getCallResult",
         .body = {{"run_id", called.at("run_id")}, {"agent_slug", "main"}}}
    );
    walk_->call(
        {.operation = "getCallResult",
         .body = {{"run_id", called.at("run_id")}, {"agent_slug", "other"}},
         .status = 409}
    );
    walk_->call({.operation = "getCallResult", .body = {{"run_id", "none"}}, .status = 404});
}

void OpenApi::walk_threads() {
    const std::string thread = make_thread();
    ended("say it", {{"thread_id", thread}});
    ended("say more", {{"thread_id", thread}});
    walk_->call({.operation = "createThread", .body = {{"agent_id", "nobody"}}, .status = 404});
    walk_->call({.operation = "listThreads", .query = {{"agent_id", "main"}, {"limit", "3"}}});
    walk_->call({.operation = "searchThreads", .query = {{"q", "walk"}}});
    walk_->call({.operation = "getThread", .path = {{"id", thread}}});
    walk_->call(
        {.operation = "changeThread",
         .path = {{"id", thread}},
         .body = {{"title", "b"}, {"is_pinned", true}, {"tool_approval_mode", "always_trust"}}}
    );
    walk_->call({.operation = "viewThread", .path = {{"id", thread}}});
    const json::value history =
        walk_->call({.operation = "getHistory", .path = {{"id", thread}}, .query = {{"limit", "2"}}}
        );
    walk_->call(
        {.operation = "getHistory",
         .path = {{"id", thread}},
         .query = {{"before", text(history, "next")}}}
    );
    const json::value listed = walk_->call(
        {.operation = "listCheckpoints", .path = {{"id", thread}}, .query = {{"limit", "2"}}}
    );
    const std::string checkpoint = text(listed.at("checkpoints").at(0), "checkpoint_id");
    walk_->call(
        {.operation = "listCheckpoints",
         .path = {{"id", thread}},
         .query = {{"before", checkpoint}},
         .names = {"before"}}
    );
    walk_->call({.operation = "getCheckpoint", .path = {{"id", thread}, {"checkpoint", checkpoint}}}
    );
    walk_->call(
        {.operation = "forkThread",
         .path = {{"id", thread}},
         .body = {{"checkpoint_id", checkpoint}, {"title", "the other way"}}}
    );
    walk_->call({.operation = "deleteThread", .path = {{"id", thread}}});
    walk_->call({.operation = "getThread", .path = {{"id", thread}}, .status = 404});
}

// The routes of a thread's files, or of all of a user's.
void OpenApi::walk_files(const std::string& noun, const std::string& thread) {
    std::map<std::string, std::string> at;
    std::vector<std::string> names{"path"};
    json::object directory{{"parent_path", "/"}, {"name", "made"}};
    std::string form;
    const auto add = [&form](const std::string& head, const std::string& content) {
        form += "--sep\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
    };
    if (!thread.empty()) {
        at["thread_id"] = thread;
        names.emplace_back("thread_id");
        directory["thread_id"] = thread;
        add("name=\"thread_id\"", thread);
    }
    add("name=\"parent_path\"", "/");
    add("name=\"file\"; filename=\"sent.txt\"", "sent");
    form += "--sep--\r\n";
    const auto with = [&at](const std::string& path) {
        auto out = at;
        out["path"] = path;
        return out;
    };
    const std::vector<std::string> thread_only(names.begin() + 1, names.end());
    const ApiCall put{
        .operation = "put" + noun,
        .query = with("/a.txt"),
        .bytes = "some text",
        .content_type = "application/octet-stream",
        .status = 201,
        .names = thread_only
    };
    walk_->call(put);
    ApiCall again = put;
    again.status = 200;
    walk_->call(again);
    walk_->call({.operation = "makeDirectoryOf" + noun, .body = directory, .status = 201});
    walk_->call({.operation = "makeDirectoryOf" + noun, .body = directory, .status = 409});
    const ApiCall upload{
        .operation = "upload" + noun,
        .bytes = form,
        .content_type = "multipart/form-data; boundary=sep",
        .status = 201
    };
    walk_->call(upload);
    ApiCall twice = upload;
    twice.status = 409;
    walk_->call(twice);
    walk_->call({.operation = "list" + noun, .query = with("/"), .names = names});
    walk_->call({.operation = "list" + noun, .query = with("/../x"), .status = 403});
    std::map<std::string, std::string> search{{"query", "a.t"}};
    if (!thread.empty()) {
        search["thread_id"] = thread;
    }
    walk_->call({.operation = "search" + noun, .query = search, .names = thread_only});
    walk_->call({.operation = "searchMentions", .query = search});
    for (const char* verb : {"get", "download"}) {
        walk_->call({.operation = verb + noun, .query = with("/a.txt"), .names = names});
        walk_->call({.operation = verb + noun, .query = with("/made"), .status = 400});
    }
    if (thread.empty()) {
        const json::object project{
            {"request_id", "walk"},
            {"name", "p"},
            {"workdir", {{"mode", "linked"}, {"path", "/made"}}}
        };
        const json::value made = walk_->call({.operation = "createProject", .body = project});
        walk_->call({.operation = "listProjects"});
        walk_->call(
            {.operation = "createThread",
             .body = {{"agent_id", "main"}, {"project_id", text(made, "id")}}}
        );
    }
    walk_->call({.operation = "delete" + noun, .query = with("/made"), .names = names});
}

TEST_F(OpenApi, TheDocumentIsSound) {
    const json::value& document = walk_->document();
    EXPECT_EQ(document.at("openapi"), "3.1.0");
    EXPECT_EQ(
        document.at("info").at("version"),
        http(server_.port(), "GET", "/api/system/health").json().at("version")
    );
    const auto sound = [&](const std::string& place, const json::value& schema) {
        for (const std::string& fault : faults_of_schema(document, schema)) {
            ADD_FAILURE() << place << fault;
        }
    };
    for (const auto& schema : document.at("components").at("schemas").as_object()) {
        sound(std::string(schema.key()), schema.value());
    }
    for (const auto& [id, known] : walk_->operations()) {
        const json::object& operation = *known.operation;
        EXPECT_TRUE(operation.contains("summary")) << id;
        std::vector<std::string> in_path;
        if (const json::value* parameters = operation.if_contains("parameters")) {
            std::set<std::string> names;
            for (const json::value& parameter : parameters->as_array()) {
                const std::string name = text(parameter, "name");
                EXPECT_TRUE(names.insert(name).second) << id << " has two parameters " << name;
                EXPECT_FALSE(text(parameter, "description").empty()) << id << " " << name;
                sound(id + " " + name, parameter.at("schema"));
                if (parameter.at("in") == "path") {
                    EXPECT_EQ(parameter.at("required"), true) << id << " " << name;
                    EXPECT_NE(known.path.find("{" + name + "}"), std::string::npos) << id;
                    in_path.push_back(name);
                }
            }
        }
        EXPECT_EQ(static_cast<std::ptrdiff_t>(in_path.size()), std::ranges::count(known.path, '{'))
            << id;
        for (const auto& response : operation.at("responses").as_object()) {
            const json::value* answer = &response.value();
            if (const json::value* ref = answer->as_object().if_contains("$ref")) {
                answer = resolve(document, std::string(ref->as_string()));
                ASSERT_NE(answer, nullptr) << id << " " << response.key();
            }
            EXPECT_FALSE(text(*answer, "description").empty()) << id;
            for (const auto& media : answer->at("content").as_object()) {
                sound(id + " " + std::string(response.key()), media.value().at("schema"));
            }
        }
    }
}

TEST_F(OpenApi, EveryOperationAnswersAsItIsDocumented) {
    walk_system();
    walk_agents();
    walk_user();
    walk_people();
    walk_runs();
    walk_dialog();
    walk_requests();
    walk_calls();
    walk_threads();
    walk_attachments();
    walk_files("ThreadFile", make_thread());
    walk_files("WorkspaceFile", "");
    std::printf("%zu requests to %zu operations\n", walk_->requests(), walk_->operations().size());
    for (const std::string& gap : walk_->gaps()) {
        ADD_FAILURE() << gap;
    }
}

}  // namespace
}  // namespace ars::tests
