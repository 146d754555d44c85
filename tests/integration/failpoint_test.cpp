// SIGKILL right before and right after every durable write of a run with tools and sub-agents, each
// in a server of its own. After a restart the run is there exactly once, ends, and no effect
// happened twice. The loop ends where a run needs no further commit, so no point is left out.
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kMain = R"(agent: main
turns:
  - tool_calls:
      - {id: one, tool: execute, args: {command: "echo one >> effects"}}
      - {id: todo, tool: write_todos, args: {todos: [{content: "count", status: "pending"}]}}
  - tool_calls:
      - {id: ask, tool: task, args: {subagent_slug: helper, description: "ask"}}
      - {id: start, tool: subagent_start, args: {subagent_slug: helper, description: "start"}}
  - tool_calls:
      - {id: wait, tool: subagent_await, args: {run_id: "{{start.json.run_id}}"}}
  - text: "counted"
)";
constexpr const char* kHelper = R"(agent: helper
turns:
  - tool_calls: [{id: count, tool: execute, args: {command: "echo {{user}} >> effects"}}]
  - text: "helped"
)";
constexpr unsigned long kMostPoints = 500;
constexpr unsigned long kFewestPoints = 15;  // a run like this can't do with less

const Headers kRequest{{"Idempotency-Key", "the-one-run"}};

// The run id, unless the server died over it.
std::optional<std::string> try_submit(Server& server) {
    try {
        return std::string(server.submit("main", "go", kRequest).at("run_id").as_string());
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

// True when the server died, false when the run ended first.
bool dies_before_the_end(Server& server) {
    const auto run_id = try_submit(server);
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (server.running() && std::chrono::steady_clock::now() < until) {
        try {
            const HttpReply reply =
                http(server.port(), "GET", "/api/agent/runs/" + run_id.value_or("") + "/result");
            if (reply.status == 200 && reply.json().as_object().at("status") == "completed") {
                // What is written after the answer has until now.
                std::this_thread::sleep_for(100ms);
                return !server.running();
            }
        } catch (const std::exception&) {
            // it is about to be gone
        }
        std::this_thread::sleep_for(2ms);
    }
    return !server.running();
}

void check_after_restart(Server& server) {
    // The same request: it finds the run that was accepted, or makes it.
    const std::string run_id(server.submit("main", "go", kRequest).at("run_id").as_string());
    const json::object result = server.wait_for_end(run_id);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(result.at("output"), "counted") << json::serialize(result);
    const std::vector<SseEvent> events =
        read_events(server.port(), "/api/agent/runs/" + run_id + "/events");
    EXPECT_TRUE(ids_rise(events));
    const auto is_end = [](const SseEvent& event) { return event.type == "end"; };
    EXPECT_EQ(std::ranges::count_if(events, is_end), 1);
    EXPECT_TRUE(!events.empty() && is_end(events.back()));
    for (const auto& [line, count] : server.effects("local")) {
        EXPECT_EQ(count, 1) << line;
    }
}

class Failpoints : public testing::TestWithParam<const char*> {};

TEST_P(Failpoints, EveryCommitCanBeTheLast) {
    unsigned long point = 1;
    bool died = true;
    for (; died && point < kMostPoints && !HasFailure(); ++point) {
        SCOPED_TRACE(std::string(GetParam()) + " commit " + std::to_string(point));
        Server server;
        server.write("scripts/main.yaml", kMain);
        server.write("scripts/helper.yaml", kHelper);
        server.use_binary(ARS_FAILPOINTS);
        const std::string where = GetParam() + (" " + std::to_string(point));
        try {
            server.start({{"ARS_KILL_AT", where}});
            died = dies_before_the_end(server);
        } catch (const std::exception&) {
            died = true;  // in the first writes of a start
        }
        if (died) {
            server.start();
            check_after_restart(server);
        }
    }
    std::printf("%s: %lu points\n", GetParam(), point - 2);
    EXPECT_GE(point - 2, kFewestPoints);
    EXPECT_LT(point, kMostPoints);
}

INSTANTIATE_TEST_SUITE_P(
    Moments,
    Failpoints,
    testing::Values("before", "after"),
    [](const auto& instance) { return std::string(instance.param); }
);

}  // namespace
}  // namespace ars::tests
