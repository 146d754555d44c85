// `ars serve` as an orchestrator calls it: real binary, real HTTP, real tools.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kEcho = R"(agent: main
turns:
  - text: "Looking."
    tool_calls:
      - {id: where, tool: execute, args: {command: "echo from the tool; pwd"}}
  - text: "It said: {{where | line \"from\"}}"
)";

constexpr const char* kSlow = R"(agent: main
when: {user_contains: "slow"}
turns:
  - tool_calls:
      - {id: nap, tool: execute, args: {command: "echo begun > begun; sleep 7071"}}
  - text: "never said"
)";

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

TEST(Serve, ARunGoesFromSubmissionToResult) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.start();
    const json::object run = server.submit("main", "go");
    EXPECT_EQ(run.at("status"), "dispatched");
    const json::object result = server.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result) << server.log();
    EXPECT_NE(text(result, "output").find("the tool"), std::string::npos);
    EXPECT_EQ(server.stop(), 0);
}

TEST(Serve, AnswersHealthRightAfterItsStart) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.start();
    // Printed, not asserted: the machine is shared. Well under 100 ms on a quiet one.
    std::printf("exec to first health answer: %.1f ms\n", server.start_ms());
    const json::object health = http(server.port(), "GET", "/api/system/health").json().as_object();
    EXPECT_EQ(health.at("status"), "ok");
}

TEST(Serve, EventsReplayFromEveryIdToTheSameEnd) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.start();
    const json::object run = server.submit("main", "go");
    const std::string target = "/api/agent/runs/" + text(run, "run_id") + "/events";
    const std::vector<SseEvent> all = read_events(server.port(), target);
    ASSERT_GE(all.size(), 6U);
    EXPECT_EQ(all.front().type, "metadata");
    EXPECT_EQ(all.back().type, "end");
    for (std::size_t k = 0; k < all.size(); ++k) {
        const std::vector<SseEvent> rest =
            read_events(server.port(), target, {{"Last-Event-ID", all[k].id}});
        // From the last id on nothing is left but a synthesized end.
        const std::size_t expected = std::max<std::size_t>(all.size() - k - 1, 1);
        ASSERT_EQ(rest.size(), expected) << "after event " << k;
        for (std::size_t i = 0; k + 1 + i < all.size(); ++i) {
            EXPECT_EQ(rest[i].id, all[k + 1 + i].id);
            EXPECT_EQ(rest[i].data, all[k + 1 + i].data);
        }
        EXPECT_EQ(rest.back().type, "end");
    }
}

TEST(S29Cancel, StopsTheRunAndItsProcessesAndClosesTheCall) {
    Server server;
    server.write("scripts/slow.yaml", kSlow);
    server.start();
    const json::object run = server.submit("main", "slow please");
    const std::string id = text(run, "run_id");
    std::this_thread::sleep_for(400ms);
    const HttpReply cancelled = http(server.port(), "POST", "/api/agent/runs/" + id + "/cancel");
    EXPECT_EQ(cancelled.status, 200) << cancelled.body;
    const json::object result = server.wait_for_end(id, {}, 5s);
    EXPECT_EQ(result.at("status"), "cancelled");
    EXPECT_EQ(http(server.port(), "POST", "/api/agent/runs/" + id + "/cancel").status, 200);
    const json::object history =
        http(server.port(), "GET", "/api/chat/thread/" + text(run, "thread_id") + "/history")
            .json()
            .as_object();
    EXPECT_NE(json::serialize(history).find("Cancelled"), std::string::npos)
        << json::serialize(history);
    EXPECT_EQ(processes_with("7071"), 0);
}

TEST(S32Cancel, OfAnUnknownRunIs404) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.start();
    EXPECT_EQ(http(server.port(), "POST", "/api/agent/runs/nope/cancel").status, 404);
}

TEST(Serve, KeysDecideWhoSeesWhat) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.add_settings(
        "users: [{uid: alice, role: user, department: a}, {uid: bob, role: user, department: b}]\n"
        "api_keys: [{name: a, uid: alice, key_env: KEY_A}, {name: b, uid: bob, key_env: KEY_B}]\n"
    );
    server.start({{"KEY_A", "alice-has-a-secret-key"}, {"KEY_B", "bob-has-a-secret-key"}});
    const Headers alice{{"Authorization", "Bearer alice-has-a-secret-key"}};
    const Headers bob{{"Authorization", "Bearer bob-has-a-secret-key"}};
    EXPECT_EQ(http(server.port(), "GET", "/api/agent").status, 401);
    EXPECT_EQ(
        http(server.port(), "GET", "/api/agent", {}, {{"Authorization", "Bearer x"}}).status, 401
    );
    EXPECT_EQ(http(server.port(), "GET", "/api/system/health").status, 200);
    const json::object run = server.submit("main", "go", alice);
    const std::string id = text(run, "run_id");
    EXPECT_EQ(server.wait_for_end(id, alice).at("status"), "completed");
    for (const std::string tail : {"", "/result", "/events"}) {
        const HttpReply foreign =
            http(server.port(), "GET", "/api/agent/runs/" + id + tail, {}, bob);
        EXPECT_EQ(foreign.status, 404) << tail;
    }
    EXPECT_EQ(server.log().find("secret-key"), std::string::npos);
}

TEST(Serve, TheServersEnvironmentIsNotTheTools) {
    Server server;
    server.write(
        "scripts/env.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: env, tool: execute, args: {command: \"env; cat /proc/1/environ; ls "
        "/proc\"}}]\n"
        "  - text: \"{{env}}\"\n"
    );
    server.start({{"OPENAI_API_KEY", "very-secret-value"}});
    const json::object run = server.submit("main", "go");
    const json::object result = server.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed");
    EXPECT_EQ(text(result, "output").find("very-secret-value"), std::string::npos);
}

TEST(S5Accepted, K109RunsSurviveAKillRightAfterTheAnswer) {
    Server server;
    server.write(
        "scripts/echo.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: say, tool: execute, args: {command: \"echo hello\"}}]\n"
        "  - text: \"{{say}}\"\n"
    );
    server.start();
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i) {
        ids.push_back(text(server.submit("main", "go"), "run_id"));
    }
    server.kill();
    server.start();
    for (const std::string& id : ids) {
        const boost::json::object result = server.wait_for_end(id);
        EXPECT_EQ(result.at("status"), "completed") << server.log();
        const boost::json::value first =
            http(server.port(), "GET", "/api/chat/thread/" + text(result, "thread_id") + "/history")
                .json()
                .at("history")
                .at(0);
        EXPECT_EQ(first.at("role"), "user");
        EXPECT_EQ(first.at("content"), "go");
    }
}

TEST(S6S12S14Restart, AToolWithEffectsNeverRunsTwiceByItself) {
    Server server;
    server.write(
        "scripts/effect.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: one, tool: execute, args: {command: \"echo x >> effects; sleep "
        "1\"}}]\n"
        "  - tool_calls: [{id: two, tool: execute, args: {command: \"echo y >> effects\"}}]\n"
        "  - tool_calls: [{id: look, tool: execute, args: {command: \"cat effects\"}}]\n"
        "  - text: \"{{look}}\"\n"
    );
    server.start();
    const json::object run = server.submit("main", "go");
    std::this_thread::sleep_for(500ms);
    server.kill();
    server.start();
    const json::object result = server.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(text(result, "output").substr(0, 4), "x\ny\n") << text(result, "output");
    const HttpReply history =
        http(server.port(), "GET", "/api/chat/thread/" + text(run, "thread_id") + "/history");
    EXPECT_NE(history.body.find("may have happened"), std::string::npos) << history.body;
    EXPECT_NE(history.body.find("background processes from before are gone"), std::string::npos);
    const std::vector<SseEvent> events =
        read_events(server.port(), "/api/agent/runs/" + text(run, "run_id") + "/events");
    EXPECT_TRUE(ids_rise(events));
    EXPECT_EQ(events.back().type, "end");
}

TEST(S1Duplicates, TheSameRequestIdIsTheSameRunAndAnotherBodyAConflict) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.start();
    const Headers key{{"Idempotency-Key", "order-1"}};
    const json::object first = server.submit("main", "go", key);
    server.kill();
    server.start();
    const json::object second = server.submit("main", "go", key);
    EXPECT_EQ(first.at("run_id"), second.at("run_id"));
    const HttpReply other = http_json(
        server.port(),
        "POST",
        "/api/agent/runs",
        json::object{{"agent_slug", "main"}, {"query", "something else"}},
        key
    );
    EXPECT_EQ(other.status, 409);
    EXPECT_NE(other.body.find("request_id_conflict"), std::string::npos) << other.body;
}

}  // namespace
}  // namespace ars::tests
