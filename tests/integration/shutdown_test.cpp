// SIGTERM: what runs are at when the server is told to stop, and what the next boot makes of it.
#include "tests/support/served_runs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include <signal.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Goes on until a file says so, and then says that it did.
constexpr const char* kGated = R"(agent: main
when: {user_contains: "gated"}
turns:
  - tool_calls:
      - id: work
        tool: execute
        args: {command: "echo begun > begun; until [ -e go ]; do sleep 0.02; done; echo x >> effects; echo did it"}
  - text: "{{work | line \"did \"}}"
)";
constexpr const char* kEndless = R"(agent: main
when: {user_contains: "endless"}
turns:
  - tool_calls:
      - {id: nap, tool: execute, args: {command: "echo begun > begun; sleep 7247"}}
  - text: "went on: {{nap}}"
)";
constexpr const char* kParent = R"(agent: main
when: {user_contains: "delegate"}
turns:
  - tool_calls: [{id: help, tool: task, args: {subagent_slug: helper, description: "gated"}}]
  - text: "{{help | line \"child: \"}}"
)";
constexpr const char* kChild = R"(agent: helper
turns:
  - tool_calls:
      - id: work
        tool: execute
        args: {command: "echo begun > begun; until [ -e go ]; do sleep 0.02; done; echo x >> effects; echo did it"}
  - text: "child: {{work | line \"did \"}}"
)";

constexpr const char* kShortGrace = R"(server: {listen: "127.0.0.1:0"}
data_dir: data
mounts: {users: data/users}
agents: ["agents/*.yaml"]
models:
  default: "demo:scripted"
  providers:
    demo: {type: scripted, scripts: "scripts/*.yaml"}
sandbox: {tool_approval_mode: always_trust}
runs: {stop_grace: 10ms}
)";

class Shutdown : public ServedRuns {
  protected:
    Shutdown() {
        server_.write("scripts/gated.yaml", kGated);
        server_.write("scripts/endless.yaml", kEndless);
        server_.write("scripts/parent.yaml", kParent);
        server_.write("scripts/child.yaml", kChild);
        // Longer than any test, so that none is decided by a slow machine.
        server_.add_settings("runs: {stop_grace: 10m}\n");
    }

    // A run whose tool is at work.
    json::object begun_run(const std::string& query) {
        server_.start();
        json::object run = server_.submit("main", query);
        workdir_ = workdir(text(run, "thread_id"));
        wait_for_file(workdir_ + "/begun");
        return run;
    }
    void tell_to_stop() {
        ::kill(server_.pid(), SIGTERM);
        for (int i = 0; i < 3000 && server_.log().find("\"stopping\"") == std::string::npos; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        EXPECT_NE(server_.log().find("\"stopping\""), std::string::npos) << server_.log();
    }
    void let_go() { std::ofstream(workdir_ + "/go") << "go\n"; }
    std::string shown(const json::object& run) {
        return json::serialize(history(text(run, "thread_id")));
    }

    std::string workdir_;
};

TEST_F(Shutdown, S10K79AToolAtWorkEndsAndTheNextBootGoesOnFromItsResult) {
    const json::object run = begun_run("gated");
    tell_to_stop();
    let_go();
    EXPECT_EQ(server_.wait_for_exit().exit_code, 0) << server_.log();
    EXPECT_EQ(read_text(workdir_ + "/effects"), "x\n");
    server_.start();
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    // Its result was kept: nobody had to guess whether it happened.
    EXPECT_EQ(text(result, "output"), "it") << shown(run);
    EXPECT_EQ(read_text(workdir_ + "/effects"), "x\n");
    EXPECT_EQ(record(text(run, "run_id")).at("attempt"), 2);
}

TEST_F(Shutdown, S10AToolThatDoesNotEndIsCutAndTheRunGoesOn) {
    server_.write("appliance.yaml", kShortGrace);
    const json::object run = begun_run("endless");
    tell_to_stop();
    EXPECT_EQ(server_.wait_for_exit().exit_code, 0) << server_.log();
    EXPECT_EQ(processes_with("7247"), 0);
    server_.start();
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_NE(text(result, "output").find("may have happened"), std::string::npos) << shown(run);
    const std::vector<SseEvent> all = events(text(run, "run_id"));
    EXPECT_TRUE(ids_rise(all));
    EXPECT_EQ(all.back().type, "end");
}

TEST_F(Shutdown, AChildsToolEndsWhileItsParentWaitsAndBothGoOn) {
    const json::object run = begun_run("delegate");
    tell_to_stop();
    let_go();
    EXPECT_EQ(server_.wait_for_exit().exit_code, 0) << server_.log();
    server_.start();
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(text(result, "output"), "it") << shown(run);
    EXPECT_EQ(read_text(workdir_ + "/effects"), "x\n");
}

TEST_F(Shutdown, WhileToolsEndNoRunIsTakenAndNothingOfOneIsLeft) {
    const json::object run = begun_run("gated");
    tell_to_stop();
    const json::object body{{"agent_slug", "main"}, {"query", "gated"}, {"request_id", "too-late"}};
    const HttpReply refused = http_json(server_.port(), "POST", "/api/agent/runs", body);
    EXPECT_EQ(refused.status, 503) << refused.body;
    EXPECT_TRUE(refused.headers.contains("retry-after"));
    EXPECT_EQ(http(server_.port(), "GET", "/api/system/ready").status, 503);
    EXPECT_EQ(record(text(run, "run_id")).at("status"), "running");
    let_go();
    EXPECT_EQ(server_.wait_for_exit().exit_code, 0) << server_.log();
    server_.start();
    EXPECT_EQ(http(server_.port(), "GET", "/api/agent/requests/too-late").status, 404);
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("status"), "completed");
}

TEST_F(Shutdown, ASecondSignalEndsAtOnceAndLosesNothing) {
    const json::object run = begun_run("endless");
    tell_to_stop();
    ::kill(server_.pid(), SIGTERM);
    EXPECT_EQ(server_.wait_for_exit().exit_code, 128 + SIGTERM) << server_.log();
    server_.start();
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("status"), "completed");
    EXPECT_TRUE(no_process_stays_with("7247"));  // a fast run may be over before
}

TEST_F(Shutdown, ACancelDuringItHoldsAtTheNextBoot) {
    const json::object run = begun_run("endless");
    tell_to_stop();
    const std::string path = "/api/agent/runs/" + text(run, "run_id") + "/cancel";
    EXPECT_EQ(http(server_.port(), "POST", path).status, 200);
    EXPECT_EQ(server_.wait_for_exit().exit_code, 0) << server_.log();
    server_.start();
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "cancelled") << json::serialize(result);
    EXPECT_EQ(shown(run).find("\"pending\""), std::string::npos) << shown(run);
}

}  // namespace
}  // namespace ars::tests
