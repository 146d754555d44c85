// Threads as a user of the API sees them: lists, search, what can be changed of one, what was said
// in it and what stands on its table.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kWork = R"(agent: main
when: {user_contains: "delegate"}
turns:
  - tool_calls:
      - id: plan
        tool: write_todos
        args: {todos: [{content: "ask the helper", status: in_progress}]}
      - {id: help, tool: task, args: {subagent_slug: helper, description: "look it up"}}
  - text: "The helper says {{help | line \"found\"}}"
)";
constexpr const char* kHelp = R"(agent: helper
turns:
  - text: "found it"
)";
constexpr const char* kTalk = R"(agent: main
when: {user_contains: "talk"}
turns:
  - text: "an answer"
)";
constexpr const char* kSlow = R"(agent: main
when: {user_contains: "slow"}
turns:
  - tool_calls: [{id: nap, tool: execute, args: {command: "sleep 7211"}}]
  - text: "never said"
)";

std::string text(const json::value& object, const char* key) {
    return std::string(object.at(key).as_string());
}

class Threads : public ::testing::Test {
  protected:
    Threads() {
        server_.write("scripts/work.yaml", kWork);
        server_.write("scripts/help.yaml", kHelp);
        server_.write("scripts/talk.yaml", kTalk);
        server_.write("scripts/slow.yaml", kSlow);
    }

    HttpReply get(const std::string& path, const Headers& headers = {}) {
        return http(server_.port(), "GET", "/api/chat" + path, {}, headers);
    }
    HttpReply change(const std::string& thread, const json::object& body, Headers headers = {}) {
        return http_json(
            server_.port(), "PUT", "/api/chat/thread/" + thread, body, std::move(headers)
        );
    }
    HttpReply viewed(const std::string& thread) {
        return http(server_.port(), "POST", "/api/chat/thread/" + thread + "/viewed");
    }
    // A run in a thread of its own that is over: the answer to its submission.
    json::object ended_run(const std::string& query) {
        json::object run = server_.submit("main", query);
        const json::object result = server_.wait_for_end(text(run, "run_id"));
        EXPECT_EQ(result.at("status"), "completed") << json::serialize(result) << server_.log();
        return run;
    }
    void talk_on(const std::string& thread, int n) {
        const HttpReply sent = http_json(
            server_.port(),
            "POST",
            "/api/agent/runs",
            json::object{
                {"agent_slug", "main"},
                {"query", "talk " + std::to_string(n)},
                {"thread_id", thread}
            }
        );
        ASSERT_EQ(sent.status, 202) << sent.body;
        server_.wait_for_end(text(sent.json(), "run_id"));
    }
    std::vector<std::string> listed(const std::string& path, const Headers& headers = {}) {
        std::vector<std::string> out;
        const HttpReply reply = get(path, headers);
        for (const json::value& thread : reply.json().at("threads").as_array()) {
            out.push_back(text(thread, "id"));
        }
        return out;
    }

    Server server_;
};

TEST_F(Threads, ArePagedPinnedFirstThenNewestFirstAlsoAfterAKill) {
    server_.start();
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i) {
        ids.push_back(text(ended_run("talk " + std::to_string(i)), "thread_id"));
    }
    EXPECT_EQ(
        listed("/threads"), (std::vector<std::string>{ids[4], ids[3], ids[2], ids[1], ids[0]})
    );
    const HttpReply pinned = change(ids[1], {{"is_pinned", true}});
    ASSERT_EQ(pinned.status, 200) << pinned.body;
    EXPECT_EQ(pinned.json().at("is_pinned"), true);
    const std::vector<std::string> order{ids[1], ids[4], ids[3], ids[2], ids[0]};
    EXPECT_EQ(listed("/threads"), order);
    server_.kill();
    server_.start();
    std::vector<std::string> pages;
    for (int offset = 0; offset < 6; offset += 2) {
        for (const std::string& id :
             listed("/threads?limit=2&agent_id=main&offset=" + std::to_string(offset))) {
            pages.push_back(id);
        }
    }
    EXPECT_EQ(pages, order);
    EXPECT_TRUE(listed("/threads?agent_id=other").empty());
    EXPECT_EQ(get("/threads?limit=501").status, 422);
    change(ids[1], {{"is_pinned", false}});
    EXPECT_EQ(listed("/threads").front(), ids[4]);
}

TEST_F(Threads, AreFoundByAPartOfTheirTitle) {
    server_.start();
    const std::string first = text(ended_run("talk about Prices"), "thread_id");
    const std::string second = text(ended_run("talk about sizes"), "thread_id");
    EXPECT_EQ(listed("/threads/search?q=PRICE"), (std::vector<std::string>{first}));
    EXPECT_EQ(listed("/threads/search?q=talk"), (std::vector<std::string>{second, first}));
    EXPECT_EQ(change(second, {{"title", "Prices of sizes"}}).status, 200);
    EXPECT_EQ(
        listed("/threads/search?q=prices&limit=1&offset=1"), (std::vector<std::string>{first})
    );
    EXPECT_TRUE(listed("/threads/search?q=nowhere").empty());
    EXPECT_EQ(get("/threads/search").status, 422);
    EXPECT_EQ(get("/threads/search?q=").status, 422);
}

TEST_F(Threads, S90ThoseOfOthersLookMissing) {
    server_.add_settings(
        "users: [{uid: alice, role: user, department: a}, {uid: bob, role: user, department: b}]\n"
        "api_keys: [{name: a, uid: alice, key_env: KEY_A}, {name: b, uid: bob, key_env: KEY_B}]\n"
    );
    server_.start({{"KEY_A", "alice-has-a-secret-key"}, {"KEY_B", "bob-has-a-secret-key"}});
    const Headers alice{{"Authorization", "Bearer alice-has-a-secret-key"}};
    const Headers bob{{"Authorization", "Bearer bob-has-a-secret-key"}};
    const json::object run = server_.submit("main", "talk", alice);
    server_.wait_for_end(text(run, "run_id"), alice);
    const std::string thread = text(run, "thread_id");
    const std::string path = "/api/chat/thread/";
    for (const auto& [method, tail] : std::vector<std::pair<std::string, std::string>>{
             {"GET", ""},
             {"GET", "/history"},
             {"GET", "/state"},
             {"GET", "/checkpoints"},
             {"POST", "/viewed"},
             {"DELETE", ""}
         }) {
        const HttpReply foreign = http(server_.port(), method, path + thread + tail, {}, bob);
        const HttpReply missing =
            http(server_.port(), method, path + "no-such-thread" + tail, {}, bob);
        EXPECT_EQ(foreign.status, 404) << method << tail;
        EXPECT_EQ(missing.status, 404) << method << tail;
        const std::size_t at = foreign.body.find(thread);
        std::string alike = foreign.body;
        if (at != std::string::npos) {
            alike.replace(at, thread.size(), "no-such-thread");
        }
        EXPECT_EQ(alike, missing.body) << method << tail;
    }
    EXPECT_EQ(change(thread, {{"title", "mine"}}, bob).status, 404);
    EXPECT_TRUE(listed("/threads", bob).empty());
    EXPECT_TRUE(listed("/threads/search?q=talk", bob).empty());
    EXPECT_EQ(listed("/threads", alice), (std::vector<std::string>{thread}));
}

TEST_F(Threads, S94ChangesAreCheckedAndKept) {
    server_.start();
    const std::string thread = text(ended_run("talk"), "thread_id");
    EXPECT_TRUE(get("/thread/" + thread).json().at("tool_approval_mode").is_null());
    for (const json::object& wrong : std::vector<json::object>{
             {{"title", 7}},
             {{"title", std::string(1025, 'x')}},
             {{"is_pinned", "yes"}},
             {{"tool_approval_mode", "sometimes"}},
             {{"metadata", json::object()}}
         }) {
        EXPECT_EQ(change(thread, wrong).status, 422) << json::serialize(wrong);
    }
    const HttpReply changed = change(thread, {{"title", "New"}, {"tool_approval_mode", "default"}});
    ASSERT_EQ(changed.status, 200) << changed.body;
    server_.kill();
    server_.start();
    const json::value found = get("/thread/" + thread).json();
    EXPECT_EQ(found.at("title"), "New");
    EXPECT_EQ(found.at("tool_approval_mode"), "default");
    // The thread's mode goes over the appliance's, which is always_trust; a request's over both.
    const auto mode_of = [&](const json::object& more) {
        json::object body{{"agent_slug", "main"}, {"query", "talk"}, {"thread_id", thread}};
        body.insert(more.begin(), more.end());
        const json::value sent = http_json(server_.port(), "POST", "/api/agent/runs", body).json();
        server_.wait_for_end(text(sent, "run_id"));
        const json::value run =
            http(server_.port(), "GET", "/api/agent/runs/" + text(sent, "run_id")).json();
        return text(run.at("run").at("input_payload"), "tool_approval_mode");
    };
    EXPECT_EQ(mode_of({}), "default");
    EXPECT_EQ(mode_of({{"tool_approval_mode", "always_trust"}}), "always_trust");
}

TEST_F(Threads, AnEndIsReadyUntilItWasViewed) {
    server_.start();
    const HttpReply made =
        http_json(server_.port(), "POST", "/api/chat/thread", json::object{{"agent_id", "main"}});
    const std::string empty = text(made.json(), "id");
    EXPECT_EQ(made.json().at("thread_status"), "done");
    EXPECT_EQ(viewed(empty).json().at("thread_status"), "done");
    const std::string thread = text(ended_run("talk"), "thread_id");
    EXPECT_EQ(get("/thread/" + thread).json().at("thread_status"), "ready");
    EXPECT_EQ(viewed(thread).json().at("thread_status"), "done");
    server_.kill();
    server_.start();
    EXPECT_EQ(get("/thread/" + thread).json().at("thread_status"), "done");
    talk_on(thread, 2);
    EXPECT_EQ(get("/thread/" + thread).json().at("thread_status"), "ready");
    // Who looks while a run is at work has not seen its end.
    const json::object slow = server_.submit("main", "slow");
    EXPECT_EQ(viewed(text(slow, "thread_id")).json().at("thread_status"), "loading");
    http(server_.port(), "POST", "/api/agent/runs/" + text(slow, "run_id") + "/cancel");
    server_.wait_for_end(text(slow, "run_id"));
    EXPECT_EQ(get("/thread/" + text(slow, "thread_id")).json().at("thread_status"), "ready");
}

TEST_F(Threads, K58ThoseOfSubAgentsAndOfAgentCallsAreNotListed) {
    server_.start();
    const json::object run = ended_run("delegate");
    const std::string thread = text(run, "thread_id");
    const HttpReply call = http_json(
        server_.port(),
        "POST",
        "/api/agent-invocation/agent-call/runs",
        json::object{
            {"agent_slug", "main"},
            {"messages", json::array{json::object{{"role", "user"}, {"content", "talk"}}}}
        }
    );
    ASSERT_EQ(call.status, 200) << call.body;
    EXPECT_EQ(listed("/threads"), (std::vector<std::string>{thread}));
    EXPECT_TRUE(listed("/threads/search?q=SubAgent").empty());
    EXPECT_TRUE(listed("/threads/search?q=call").empty());
    EXPECT_EQ(get("/thread/" + text(call.json(), "thread_id") + "/history").status, 200);
    const json::value state = get("/thread/" + thread + "/state").json();
    const std::string child =
        text(state.at("agent_state").at("subagent_runs").at(0), "child_thread_id");
    EXPECT_EQ(change(child, {{"is_pinned", true}}).status, 409);
    EXPECT_EQ(listed("/threads"), (std::vector<std::string>{thread}));
}

TEST_F(Threads, K57TheStateOfParentAndChildShowEachOther) {
    server_.start();
    const json::object run = ended_run("delegate");
    const std::string thread = text(run, "thread_id");
    const json::value history = get("/thread/" + thread + "/history").json();
    const json::value& calls = history.at("history").at(1).at("tool_calls");
    ASSERT_EQ(calls.at(1).at("name"), "task");
    const json::value state = get("/thread/" + thread + "/state").json();
    EXPECT_TRUE(state.at("parent_thread_id").is_null());
    const json::value& agent_state = state.at("agent_state");
    EXPECT_EQ(agent_state.at("todos").at(0).at("content"), "ask the helper");
    EXPECT_TRUE(agent_state.at("artifacts").as_array().empty());
    EXPECT_TRUE(agent_state.at("activated_skills").as_array().empty());
    ASSERT_EQ(agent_state.at("subagent_runs").as_array().size(), 1U);
    const json::value& entry = agent_state.at("subagent_runs").at(0);
    EXPECT_EQ(entry.at("id"), calls.at(1).at("id"));
    EXPECT_EQ(entry.at("status"), "completed");
    const json::value& usage = agent_state.at("token_usage");
    EXPECT_EQ(usage.at("run").at("run_id"), run.at("run_id"));
    EXPECT_EQ(usage.at("run").at("total_tokens"), usage.at("thread").at("total_tokens"));
    EXPECT_FALSE(state.as_object().contains("messages"));

    const std::string child = text(entry, "child_thread_id");
    const json::value below = get("/thread/" + child + "/state?include_messages=true").json();
    EXPECT_EQ(text(below, "parent_thread_id"), thread);
    EXPECT_EQ(below.at("subagent_thread").at("subagent_slug"), "helper");
    EXPECT_EQ(below.at("subagent_run").at("id"), entry.at("run_id"));
    EXPECT_EQ(below.at("subagent_run").at("status"), "completed");
    ASSERT_EQ(below.at("messages").as_array().size(), 2U);
    EXPECT_EQ(below.at("messages").at(1).at("content"), "found it");
}

TEST_F(Threads, K165UsageOfAThreadAddsUpAndOfARunBeginsAnew) {
    server_.start();
    const std::string thread = text(ended_run("talk"), "thread_id");
    const auto usage = [&] {
        return get("/thread/" + thread + "/state").json().at("agent_state").at("token_usage");
    };
    const json::value one = usage();
    talk_on(thread, 2);
    const json::value two = usage();
    EXPECT_NE(two.at("run").at("run_id"), one.at("run").at("run_id"));
    const auto total = [](const json::value& bucket) {
        return bucket.at("total_tokens").to_number<std::int64_t>();
    };
    EXPECT_GT(total(one.at("thread")), 0);
    EXPECT_EQ(total(two.at("thread")), total(one.at("thread")) + total(two.at("run")));
    EXPECT_EQ(total(two.at("thread").at("models").at("demo:scripted")), total(two.at("thread")));
}

TEST_F(Threads, HistoryIsPagedBackwardsWithoutGapOrRepeat) {
    server_.start();
    const std::string thread = text(ended_run("delegate"), "thread_id");
    for (int i = 0; i < 3; ++i) {
        talk_on(thread, i);
    }
    const std::string path = "/thread/" + thread + "/history";
    const json::value whole = get(path).json();
    EXPECT_TRUE(whole.at("next").is_null());
    const json::array& all = whole.at("history").as_array();
    ASSERT_EQ(all.size(), 9U);
    EXPECT_EQ(all.front().at("role"), "user");
    EXPECT_EQ(all.front().at("content"), "delegate");
    EXPECT_EQ(all[1].at("tool_calls").at(0).at("status"), "success");
    EXPECT_FALSE(all[1].at("run_finished_at").is_null());
    EXPECT_FALSE(all[0].as_object().contains("run_finished_at"));
    for (int limit = 1; limit <= 9; ++limit) {
        json::array pages;
        std::string before;
        do {
            const json::value page = get(path + "?limit=" + std::to_string(limit) + before).json();
            const json::array& part = page.at("history").as_array();
            ASSERT_FALSE(part.empty()) << limit;
            pages.insert(pages.begin(), part.begin(), part.end());
            before = page.at("next").is_null() ? "" : "&before=" + text(page, "next");
        } while (!before.empty());
        EXPECT_EQ(pages, all) << limit;
    }
    EXPECT_EQ(get(path + "?before=x").status, 422);
}

}  // namespace
}  // namespace ars::tests
