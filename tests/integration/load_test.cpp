// Many runs at once, and crashes in the middle of work with sub-agents.
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

// VmRSS and VmHWM of a process, in KiB.
std::string memory_of(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string out;
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS") || line.starts_with("VmHWM")) {
            out += line + "  ";
        }
    }
    return out;
}

TEST(Load, AHundredRunsStartedAtOnceAllComplete) {
    Server server;
    server.write(
        "scripts/work.yaml",
        "agent: main\nturns:\n"
        "  - text: \"Counting.\"\n"
        "    tool_calls:\n"
        "      - {id: a, tool: execute, args: {command: \"echo $((6 * 7))\"}}\n"
        "      - {id: b, tool: write_file, args: {file_path: note.txt, content: \"forty-two\"}}\n"
        "  - tool_calls: [{id: c, tool: read_file, args: {file_path: note.txt}}]\n"
        "  - text: \"{{a}} {{c}}\"\n"
    );
    server.start();
    const auto begun = std::chrono::steady_clock::now();
    std::vector<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        ids.push_back(text(server.submit("main", "run " + std::to_string(i)), "run_id"));
    }
    for (const std::string& id : ids) {
        const json::object result = server.wait_for_end(id);
        ASSERT_EQ(result.at("status"), "completed") << json::serialize(result);
        ASSERT_NE(text(result, "output").find("42"), std::string::npos) << json::serialize(result);
        ASSERT_NE(text(result, "output").find("forty-two"), std::string::npos);
    }
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begun
    );
    std::printf(
        "100 runs, 300 model calls, 300 tool calls: %lld ms; %s\n",
        static_cast<long long>(ms.count()),
        memory_of(server.pid()).c_str()
    );
    EXPECT_EQ(server.stop(), 0);
}

TEST(S8Restart, AParentWithTwoChildrenIsTakenOverAndFinishes) {
    Server server;
    server.write(
        "scripts/main.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls:\n"
        "      - {id: s1, tool: subagent_start, args: {subagent_slug: helper, description: "
        "\"number one\"}}\n"
        "      - {id: s2, tool: subagent_start, args: {subagent_slug: helper, description: "
        "\"number two\"}}\n"
        "  - tool_calls:\n"
        "      - {id: a1, tool: subagent_await, args: {run_id: \"{{s1.json.run_id}}\"}}\n"
        "      - {id: a2, tool: subagent_await, args: {run_id: \"{{s2.json.run_id}}\"}}\n"
        "  - tool_calls: [{id: t, tool: task, args: {subagent_slug: helper, description: \"number "
        "three\"}}]\n"
        "  - text: \"{{a1.json.result.output}} | {{a2.json.result.output}} | {{t}}\"\n"
    );
    server.write(
        "scripts/helper.yaml",
        "agent: helper\nturns:\n"
        "  - tool_calls: [{id: work, tool: execute, args: {command: \"sleep 0.4; echo done >> "
        "\\\"$PWD/effects\\\"; echo ok\"}}]\n"
        "  - tool_calls: [{id: more, tool: execute, args: {command: \"sleep 0.2; echo fine\"}}]\n"
        "  - text: \"helper says {{user}}\"\n"
    );
    server.start();
    const json::object run = server.submit("main", "go");
    for (const auto pause : {300ms, 500ms, 700ms}) {
        std::this_thread::sleep_for(pause);
        server.kill();
        server.start();
    }
    const json::object result = server.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result) << server.log();
    const std::string output = text(result, "output");
    EXPECT_NE(output.find("number one"), std::string::npos) << output;
    EXPECT_NE(output.find("number two"), std::string::npos) << output;
    EXPECT_NE(output.find("number three"), std::string::npos) << output;
    const std::vector<SseEvent> events =
        read_events(server.port(), "/api/agent/runs/" + text(run, "run_id") + "/events");
    EXPECT_TRUE(ids_rise(events));
    EXPECT_EQ(events.back().type, "end");
}

TEST(S67Cancel, OfTheRootStopsTheChildrenToo) {
    Server server;
    server.write(
        "scripts/main.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: t, tool: task, args: {subagent_slug: helper, description: "
        "\"sleep\"}}]\n"
        "  - text: \"never\"\n"
    );
    server.write(
        "scripts/helper.yaml",
        "agent: helper\nturns:\n"
        "  - tool_calls: [{id: work, tool: execute, args: {command: \"sleep 8081\"}}]\n"
        "  - text: \"never\"\n"
    );
    server.start();
    const json::object run = server.submit("main", "go");
    std::this_thread::sleep_for(500ms);
    EXPECT_GE(processes_with("8081"), 1);
    http(server.port(), "POST", "/api/agent/runs/" + text(run, "run_id") + "/cancel");
    EXPECT_EQ(server.wait_for_end(text(run, "run_id"), {}, 10s).at("status"), "cancelled");
    for (int i = 0; i < 200 && processes_with("8081") != 0; ++i) {
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(processes_with("8081"), 0);
}

TEST(S10Restart, SigtermLeavesWhatTheNextBootFinishes) {
    Server server;
    server.write(
        "scripts/main.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: t, tool: execute, args: {command: \"sleep 1; echo slept\"}}]\n"
        "  - text: \"finished\"\n"
    );
    server.start();
    const json::object run = server.submit("main", "go");
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(server.stop(), 0);
    server.start();
    EXPECT_EQ(server.wait_for_end(text(run, "run_id")).at("output"), "finished");
}

}  // namespace
}  // namespace ars::tests
