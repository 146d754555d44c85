// Checkpoints of a thread over HTTP, and a thread that goes on from one of them.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

constexpr const char* kScript = R"(agent: main
turns:
  - tool_calls:
      - {id: plan, tool: write_todos, args: {todos: [{content: "first", status: "pending"}]}}
  - tool_calls:
      - {id: made, tool: execute, args: {command: "echo {{user}} >> said; cat said"}}
  - text: "the file says {{made}}"
)";

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

class Checkpoints : public testing::Test {
  protected:
    void SetUp() override {
        server.write("scripts/main.yaml", kScript);
        server.start();
        const json::object run = server.submit("main", "one");
        thread = text(run, "thread_id");
        server.wait_for_end(text(run, "run_id"));
    }
    json::object get(const std::string& rest) {
        const HttpReply reply = http(server.port(), "GET", "/api/chat/thread/" + thread + rest);
        EXPECT_EQ(reply.status, 200) << reply.body;
        return reply.json().as_object();
    }
    HttpReply fork(json::object body) {
        return http_json(server.port(), "POST", "/api/chat/thread/" + thread + "/fork", body);
    }
    // Goes on in a thread and returns what the agent says.
    std::string say(const std::string& thread_id, const std::string& query) {
        const HttpReply reply = http_json(
            server.port(),
            "POST",
            "/api/agent/runs",
            json::object{{"agent_slug", "main"}, {"query", query}, {"thread_id", thread_id}}
        );
        EXPECT_EQ(reply.status, 202) << reply.body;
        return text(server.wait_for_end(text(reply.json().as_object(), "run_id")), "output");
    }

    Server server;
    std::string thread;
};

TEST_F(Checkpoints, AreListedNewestFirstInPages) {
    const json::array all = get("/checkpoints").at("checkpoints").as_array();
    ASSERT_GE(all.size(), 3U);  // a step each, and the changed todos
    const json::object& newest = all.front().as_object();
    EXPECT_EQ(newest.at("step"), 3) << json::serialize(newest);
    EXPECT_NE(json::serialize(newest.at("agent_state")).find("first"), std::string::npos);
    json::array paged;
    std::string before;
    for (;;) {
        const json::array page =
            get("/checkpoints?limit=1" + (before.empty() ? "" : "&before=" + before))
                .at("checkpoints")
                .as_array();
        if (page.empty()) {
            break;
        }
        ASSERT_EQ(page.size(), 1U);
        paged.push_back(page.front());
        before = text(page.front().as_object(), "checkpoint_id");
    }
    EXPECT_EQ(paged, all);
}

TEST_F(Checkpoints, ShowWhatHadBeenSaidByThen) {
    const json::array all = get("/checkpoints").at("checkpoints").as_array();
    const json::object first = get("/checkpoints/" + text(all.back().as_object(), "checkpoint_id"));
    const json::array& history = first.at("history").as_array();
    ASSERT_EQ(history.size(), 2U) << json::serialize(history);
    EXPECT_EQ(history[0].at("content"), "one");
    EXPECT_EQ(history[1].at("tool_calls").as_array().size(), 1U);
    const HttpReply missing =
        http(server.port(), "GET", "/api/chat/thread/" + thread + "/checkpoints/none");
    EXPECT_EQ(missing.status, 404);
    EXPECT_NE(missing.body.find("checkpoint_not_found"), std::string::npos);
}

TEST_F(Checkpoints, S31S62AForkGoesOnAloneAlsoAfterAKill) {
    const json::array all = get("/checkpoints").at("checkpoints").as_array();
    // Before the command's result: the fork gets an answer for the open call.
    const std::string middle = text(all[1].as_object(), "checkpoint_id");
    const HttpReply made =
        fork({{"checkpoint_id", middle}, {"title", "another way"}, {"request_id", "f1"}});
    ASSERT_EQ(made.status, 200) << made.body;
    const json::object forked = made.json().as_object();
    const std::string other = text(forked, "id");
    EXPECT_NE(other, thread);
    EXPECT_EQ(forked.at("title"), "another way");
    EXPECT_EQ(forked.at("metadata").at("forked_from").at("checkpoint_id"), json::value(middle));
    const HttpReply again =
        fork({{"checkpoint_id", middle}, {"title", "another way"}, {"request_id", "f1"}});
    EXPECT_EQ(text(again.json().as_object(), "id"), other);
    EXPECT_EQ(fork({{"request_id", "f1"}}).status, 409);
    const HttpReply fresh = http_json(
        server.port(),
        "POST",
        "/api/chat/thread",
        json::object{{"agent_id", "main"}, {"request_id", "f1"}}
    );
    EXPECT_EQ(fresh.status, 409) << fresh.body;
    server.kill();
    server.start();
    // The file is where it was: files are not versioned.
    EXPECT_TRUE(say(other, "two").ends_with("\none\ntwo\n[exit code 0]"));
    EXPECT_TRUE(say(thread, "three").ends_with("\none\ntwo\nthree\n[exit code 0]"));
    const auto history = [&](const std::string& id) {
        return json::serialize(
            http(server.port(), "GET", "/api/chat/thread/" + id + "/history").json()
        );
    };
    EXPECT_EQ(history(other).find("three"), std::string::npos);
    EXPECT_NE(history(other).find("forked from another one"), std::string::npos);
    EXPECT_EQ(history(thread).find("\"two\""), std::string::npos);
}

TEST_F(Checkpoints, BadForksChangeNothing) {
    EXPECT_EQ(fork({{"checkpoint_id", "none"}}).status, 404);
    EXPECT_EQ(fork({{"checkpoint", "x"}}).status, 422);
    const HttpReply threads = http(server.port(), "GET", "/api/chat/threads");
    EXPECT_EQ(threads.json().at("threads").as_array().size(), 1U) << threads.body;
}

}  // namespace
}  // namespace ars::tests
