// What a boot does with what the process before left open, rule by rule, on the real binary:
//   R1  cancel_requested becomes cancelled with its open calls answered, and so do the children of
//   an
//       ended root and the runs of a deleted thread; pending stays; running goes to pending,
//       attempt
//       + 1, in the old order; interrupted stays.
//   R2  A run without open calls asks the model again.
//   R3  An open call keeps a stored result, is run again when that does no harm, and is otherwise
//       answered with "may have happened". (failpoint_test: EveryCommitOfARun...)
//   R4  What waits for a person has no intent; siblings finish first.
//   R5  Background commands are gone, and the next command says what was reset.
//   R6  Twenty boots without a new record fail a run; a full disk makes it wait. (The second half
//   is
//       in storage_fault_test.)
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kAsker = R"(slug: asker
name: Asker
description: Asks before it acts.
backend_id: ChatbotAgent
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json:
  context: {system_prompt: "Ask.", tool_approval_mode: default, subagents: [helper]}
)";

class Recovery : public ::testing::Test {
  protected:
    Recovery() { server_.write("agents/asker.yaml", kAsker); }

    static std::string text(const json::object& from, const char* key) {
        return std::string(from.at(key).as_string());
    }
    HttpReply get(const std::string& path) { return http(server_.port(), "GET", path); }
    json::object view(const std::string& run) {
        return get("/api/agent/runs/" + run).json().at("run").as_object();
    }
    static void wait_until(const std::function<bool()>& condition, const std::string& what) {
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (!condition() && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(5ms);
        }
        EXPECT_TRUE(condition()) << what;
    }
    void wait_for(const std::string& run, const std::string& status) {
        wait_until([&] { return text(view(run), "status") == status; }, run + " " + status);
    }
    std::string workdir(const json::object& run) {
        const HttpReply thread = get("/api/chat/thread/" + text(run, "thread_id"));
        return server_.workspace("local") + "/" + text(thread.json().as_object(), "workdir_path");
    }
    // Inside its tool, which has made the file `held`.
    json::object held(const std::string& agent, const std::string& query) {
        json::object run = server_.submit(agent, query);
        const std::string file = workdir(run) + "/held";
        wait_until([&] { return std::filesystem::exists(file); }, "held: " + query);
        return run;
    }
    // Each call of the thread with its result, in order.
    std::vector<json::object> calls(const json::object& run) {
        std::vector<json::object> out;
        const json::value history =
            get("/api/chat/thread/" + text(run, "thread_id") + "/history").json();
        for (const json::value& message : history.at("history").as_array()) {
            if (const json::value* calls = message.as_object().if_contains("tool_calls")) {
                for (const json::value& call : calls->as_array()) {
                    out.push_back(call.as_object());
                }
            }
        }
        return out;
    }
    std::vector<SseEvent> events(const std::string& run) {
        return read_events(server_.port(), "/api/agent/runs/" + run + "/events");
    }
    void restart() {
        server_.kill();
        server_.start();
    }
    void change_settings(const std::string& from, const std::string& to) {
        std::string config = read_text(server_.config_path());
        config.replace(config.find(from), from.size(), to);
        server_.write("appliance.yaml", config);
    }

    Server server_;
};

TEST_F(Recovery, R1S12S14S16EachOpenRunGoesWhereItsStatusSays) {
    server_.write("scripts/stubborn.yaml", R"(agent: main
when: {user_contains: "stubborn"}
turns:
  - tool_calls:
      - {id: held, tool: execute, args: {command: "trap '' TERM; touch held; while :; do sleep 0.1; done"}}
  - text: "never said"
)");
    server_.write("scripts/hold.yaml", R"(agent: main
when: {user_contains: "hold"}
turns:
  - tool_calls: [{id: held, tool: execute, args: {command: "touch held; sleep 7223"}}]
  - tool_calls:
      - {id: order, tool: execute, args: {command: "echo '{{user}}' >> /home/gem/user-data/order"}}
  - text: "went on"
)");
    server_.write("scripts/quick.yaml", "agent: main\nturns:\n  - text: \"quick\"\n");
    server_.write("scripts/asker.yaml", R"(agent: asker
turns:
  - tool_calls: [{id: ask, tool: execute, args: {command: "echo asked >> effects"}}]
  - text: "asked"
)");
    server_.add_settings("runs: {max_concurrent: 64}\n");
    server_.start();
    std::vector<json::object> running;
    for (const char* name : {"hold 1", "hold 2", "hold 3", "hold 4"}) {
        running.push_back(held("main", name));
    }
    const json::object waiting = server_.submit("asker", "go");
    wait_for(text(waiting, "run_id"), "interrupted");
    const json::object stubborn = held("main", "stubborn");
    const std::string cancelled = "/api/agent/runs/" + text(stubborn, "run_id");
    EXPECT_EQ(http(server_.port(), "POST", cancelled + "/cancel").status, 200);
    ASSERT_EQ(text(view(text(stubborn, "run_id")), "status"), "cancel_requested");
    std::vector<json::object> pending;
    for (int i = 0; i < 8; ++i) {
        pending.push_back(server_.submit("main", "quick"));
    }
    server_.kill();
    // One slot: what goes on does so one after the other.
    change_settings("max_concurrent: 64", "max_concurrent: 1");
    server_.start();

    EXPECT_EQ(server_.wait_for_end(text(stubborn, "run_id")).at("status"), "cancelled");
    ASSERT_EQ(calls(stubborn).size(), 1U);
    EXPECT_FALSE(calls(stubborn)[0].at("output").is_null());
    EXPECT_EQ(text(view(text(waiting, "run_id")), "status"), "interrupted");
    EXPECT_EQ(view(text(waiting, "run_id")).at("attempt"), 1);
    for (const json::object& run : running) {
        EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), "went on");
        EXPECT_EQ(view(text(run, "run_id")).at("attempt"), 2);
    }
    EXPECT_EQ(read_text(server_.workspace("local") + "/order"), "hold 1\nhold 2\nhold 3\nhold 4\n");
    for (const json::object& run : pending) {
        EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), "quick");
    }
    running.insert(running.end(), pending.begin(), pending.end());
    running.push_back(stubborn);
    for (const json::object& run : running) {
        const std::vector<SseEvent> log = events(text(run, "run_id"));
        EXPECT_TRUE(ids_rise(log));
        EXPECT_EQ(std::ranges::count(log, std::string("end"), &SseEvent::type), 1);
        EXPECT_EQ(log.back().type, "end");
    }
}

TEST_F(Recovery, R2S8ARunWithoutOpenCallsAsksTheModelAgain) {
    server_.write(
        "scripts/main.yaml", "agent: main\nturns:\n  - {delay: 10m, text: \"never said\"}\n"
    );
    server_.start();
    const json::object run = server_.submit("main", "go");
    wait_for(text(run, "run_id"), "running");
    server_.kill();
    server_.write("scripts/main.yaml", "agent: main\nturns:\n  - text: \"asked again\"\n");
    server_.start();
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("output"), "asked again") << json::serialize(result);
    EXPECT_EQ(view(text(run, "run_id")).at("attempt"), 2);
    EXPECT_EQ(result.at("token_usage").at("complete"), false)
        << "what the lost answer cost is not known: " << json::serialize(result);
    EXPECT_EQ(
        std::ranges::count(events(text(run, "run_id")), std::string("reset"), &SseEvent::type), 1
    );
}

TEST_F(Recovery, R4SiblingsOfAnUndecidedCallFinishFirstAlsoAfterARestart) {
    server_.write("scripts/asker.yaml", R"(agent: asker
turns:
  - tool_calls:
      - {id: help, tool: task, args: {subagent_slug: helper, description: "help"}}
      - {id: act, tool: execute, args: {command: "echo acted >> effects"}}
  - text: "{{help}}"
)");
    server_.write(
        "scripts/helper.yaml", "agent: helper\nturns:\n  - {delay: 10m, text: \"never said\"}\n"
    );
    server_.start();
    const json::object run = server_.submit("asker", "go");
    const std::string id = text(run, "run_id");
    wait_until([&] { return calls(run).size() == 2; }, "the turn");
    server_.kill();
    server_.write("scripts/helper.yaml", "agent: helper\nturns:\n  - text: \"helped\"\n");
    server_.start();
    wait_for(id, "interrupted");
    EXPECT_TRUE(server_.effects("local").empty()) << "nobody has approved";
    const json::array open = view(id).at("interrupts").as_array();
    ASSERT_EQ(open.size(), 1U) << json::serialize(open);
    restart();
    EXPECT_EQ(text(view(id), "status"), "interrupted");
    const HttpReply answered = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        json::object{
            {"agent_slug", "asker"},
            {"created_by_run_id", id},
            {"resume", {{open[0].at("id").as_string(), {{"decision", "approve"}}}}}
        }
    );
    ASSERT_EQ(answered.status, 202) << answered.body;
    const json::object result = server_.wait_for_end(text(answered.json().as_object(), "run_id"));
    EXPECT_NE(text(result, "output").find("helped"), std::string::npos) << json::serialize(result);
    EXPECT_EQ(server_.effects("local")["acted"], 1);
}

TEST_F(Recovery, R5BackgroundCommandsAreGoneAndTheNextCommandSaysSo) {
    const std::string script = R"(agent: main
turns:
  - tool_calls: [{id: beside, tool: execute, args: {command: "touch /tmp/mine; sleep 7229", wait: 0}}]
  - tool_calls: [{id: held, tool: execute, args: {command: "touch held; sleep 7229"}}]
  - tool_calls: [{id: ask, tool: execute_output, args: {id: "THE_ID"}}]
  - tool_calls: [{id: look, tool: execute, args: {command: "ls /tmp/mine"}}]
  - tool_calls: [{id: again, tool: execute, args: {command: "echo once"}}]
  - text: "seen"
)";
    server_.write("scripts/main.yaml", script);
    server_.start();
    const json::object run = held("main", "go");
    const std::string begun = text(calls(run)[0], "output");
    const std::string mark = "still running as command ";
    const std::size_t at = begun.find(mark) + mark.size();
    const std::string id = begun.substr(at, begun.find(';', at) - at);
    server_.kill();
    std::string with_id = script;
    with_id.replace(with_id.find("THE_ID"), 6, id);
    server_.write("scripts/main.yaml", with_id);
    server_.start();
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), "seen");
    const std::vector<json::object> all = calls(run);
    ASSERT_EQ(all.size(), 5U);
    const auto said = [&](std::size_t i) { return json::serialize(all[i]); };
    EXPECT_NE(said(1).find("may have happened"), std::string::npos) << said(1);
    EXPECT_NE(said(2).find("gone with the restart"), std::string::npos) << said(2);
    EXPECT_NE(said(3).find("No such file"), std::string::npos) << said(3);
    EXPECT_NE(said(3).find("/tmp and background processes from before are gone"), std::string::npos)
        << said(3);
    EXPECT_EQ(said(4).find("The server was restarted"), std::string::npos) << "once: " << said(4);
    EXPECT_TRUE(no_process_stays_with("sleep 7229"));
}

TEST_F(Recovery, R6TwentyBootsWithoutANewRecordFailARun) {
    server_.write(
        "scripts/main.yaml", "agent: main\nturns:\n  - {delay: 10m, text: \"never said\"}\n"
    );
    server_.start();
    const std::string run = text(server_.submit("main", "go"), "run_id");
    for (int attempt = 1; attempt <= 21; ++attempt) {
        wait_until(
            [&] {
                const json::object now = view(run);
                return now.at("attempt") == attempt && now.at("status") == "running";
            },
            "attempt " + std::to_string(attempt)
        );
        restart();
    }
    const json::object result = server_.wait_for_end(run);
    EXPECT_EQ(result.at("status"), "failed");
    EXPECT_NE(json::serialize(result).find("recovery_limit"), std::string::npos)
        << json::serialize(result);
    EXPECT_EQ(events(run).back().type, "end");
}

}  // namespace
}  // namespace ars::tests
