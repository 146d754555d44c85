// SIGKILL at random moments under 50 runs at once (ARS_RUNS) with sub-agents and tools that count:
// every accepted run ends, and no effect happens twice. `./dev soak` kills 300 times (ARS_KILLS).
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Each effect is a line that names its run and its place in it. The pauses spread the kills over
// model calls, running tools and waiting parents.
constexpr const char* kMain = R"(agent: main
turns:
  - delay: 60ms
    tool_calls:
      - {id: one, tool: execute, args: {command: "echo {{user}}-one >> effects; sleep 0.05"}}
      - {id: two, tool: execute, args: {command: "sleep 0.05; echo {{user}}-two >> effects"}}
  - delay: 60ms
    tool_calls:
      - {id: ask, tool: task, args: {subagent_slug: helper, description: "{{user}}"}}
      - {id: start, tool: subagent_start, args: {subagent_slug: helper, description: "{{user}}-beside"}}
  - tool_calls:
      - {id: wait, tool: subagent_await, args: {run_id: "{{start.json.run_id}}"}}
  - delay: 60ms
    tool_calls:
      - {id: last, tool: execute, args: {command: "echo {{user}}-last >> effects"}}
  - text: "did {{user}}"
)";
constexpr const char* kHelper = R"(agent: helper
turns:
  - delay: 40ms
    tool_calls:
      - {id: count, tool: execute, args: {command: "echo {{user}}-helper >> effects; sleep 0.05"}}
  - text: "helped {{user}}"
)";

int number_from(const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
}

bool has_ended(const Server& server, const std::string& run_id) {
    const HttpReply reply = http(server.port(), "GET", "/api/agent/runs/" + run_id + "/result");
    return reply.json().as_object().at("status") == "completed";
}

TEST(KillLoop, EveryAcceptedRunEndsAndNoEffectHappensTwice) {
    const int kills = number_from("ARS_KILLS", 20);
    const int runs = number_from("ARS_RUNS", 50);
    const unsigned seed = std::random_device{}();
    std::printf("seed %u, %d kills, %d runs\n", seed, kills, runs);
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> uptime_ms(20, 400);

    Server server;
    server.write("scripts/main.yaml", kMain);
    server.write("scripts/helper.yaml", kHelper);
    server.start();
    std::vector<std::string> accepted;
    std::vector<std::string> open;
    for (int kill = 0; kill < kills; ++kill) {
        std::erase_if(open, [&server](const std::string& id) { return has_ended(server, id); });
        while (static_cast<int>(open.size()) < runs) {
            const std::string name = "run" + std::to_string(accepted.size());
            open.emplace_back(server.submit("main", name).at("run_id").as_string());
            accepted.push_back(open.back());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(uptime_ms(random)));
        server.kill();
        server.start();
    }
    for (const std::string& run_id : accepted) {
        const json::object result = server.wait_for_end(run_id, {}, 120s);
        EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
        const std::vector<SseEvent> events =
            read_events(server.port(), "/api/agent/runs/" + run_id + "/events");
        EXPECT_TRUE(ids_rise(events)) << run_id;
        const auto is_end = [](const SseEvent& event) { return event.type == "end"; };
        EXPECT_EQ(std::ranges::count_if(events, is_end), 1) << run_id;
        EXPECT_TRUE(!events.empty() && is_end(events.back())) << run_id;
    }
    const auto times = server.effects("local");
    std::printf("%zu runs with %zu effects\n", accepted.size(), times.size());
    EXPECT_GE(times.size(), accepted.size());  // of five for each run
    for (const auto& [line, count] : times) {
        EXPECT_EQ(count, 1) << line << " happened " << count << " times";
    }
    EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace ars::tests
