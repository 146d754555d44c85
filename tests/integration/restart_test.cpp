// What a boot makes of the work of the one before it, and what it tells the model of it.
#include "tests/support/model_server.hpp"
#include "tests/support/served_runs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::string_view kGone = "/tmp and background processes from before are gone";

class Restart : public ServedRuns {};

constexpr const char* kPhases = R"(agent: main
when: {user_contains: "tool"}
turns:
  - tool_calls:
      - {id: work, tool: execute, args: {command: "touch begun; until [ -e go ]; do sleep 0.02; done"}}
  - text: "done with the tool"
)";
constexpr const char* kModelPhase = R"(agent: main
when: {user_contains: "model"}
turns:
  - text: "done with the model"
    delay: 1500ms
)";
constexpr const char* kChildPhase = R"(agent: main
when: {user_contains: "child"}
turns:
  - tool_calls: [{id: t, tool: task, args: {subagent_slug: helper, description: look}}]
  - text: "done: {{t | line \"helper \"}}"
)";
constexpr const char* kChild = R"(agent: helper
turns:
  - tool_calls:
      - {id: work, tool: ls, args: {}}
  - text: "helper looked"
    delay: 1500ms
)";
constexpr const char* kQuestion = R"(agent: main
when: {user_contains: "question"}
turns:
  - tool_calls:
      - {id: ask, tool: ask_user_question, args: {questions: [{question_id: q, question: "Go?"}]}}
  - text: "done with the question"
)";

TEST_F(Restart, S16I1RunsInEveryPhaseHaveAnOutcomeAfterAKill) {
    server_.write("scripts/tool.yaml", kPhases);
    server_.write("scripts/model.yaml", kModelPhase);
    server_.write("scripts/by_child.yaml", kChildPhase);
    server_.write("scripts/child.yaml", kChild);
    server_.write("scripts/question.yaml", kQuestion);
    server_.start();
    const json::value in_tool = send("tool").json();
    const json::value in_model = send("model").json();
    const json::value in_child = send("child").json();
    const json::value waiting = send("question").json();
    const HttpReply queued = send(
        "tool again", {{"thread_id", text(in_tool, "thread_id")}, {"request_id", "queued-one"}}
    );
    EXPECT_EQ(queued.json().at("status"), "queued") << queued.body;
    wait_for_status(text(waiting, "run_id"), "interrupted");
    const std::string directory = workdir(text(in_tool, "thread_id"));
    wait_for_file(directory + "/begun");
    server_.kill();
    std::ofstream(directory + "/go") << "go\n";
    server_.start();
    for (const json::value& run : {in_tool, in_model, in_child}) {
        const std::string id = text(run, "run_id");
        const json::object result = server_.wait_for_end(id);
        EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
        EXPECT_TRUE(text(result, "output").starts_with("done")) << json::serialize(result);
        const std::vector<SseEvent> all = events(id);
        EXPECT_TRUE(ids_rise(all));
        EXPECT_EQ(
            std::ranges::count(all, "end", [](const SseEvent& event) { return event.type; }), 1
        );
    }
    EXPECT_EQ(text(record(text(waiting, "run_id")), "status"), "interrupted");
    std::string next;
    for (int i = 0; i < 3000 && next.empty(); ++i) {
        const json::value request =
            http(server_.port(), "GET", "/api/agent/requests/queued-one").json().at("request");
        if (request.at("dispatched_run_id").is_string()) {
            next = text(request, "dispatched_run_id");
        }
        std::this_thread::sleep_for(10ms);
    }
    ASSERT_FALSE(next.empty()) << server_.log();
    EXPECT_EQ(server_.wait_for_end(next).at("status"), "completed");
}

TEST_F(Restart, K31AChildOfBeforeIsFoundAgainAndNotStartedTwice) {
    server_.write("scripts/by_child.yaml", kChildPhase);
    server_.write("scripts/child.yaml", kChild);
    server_.start();
    const json::value run = send("child").json();
    for (int kills = 0; kills < 3; ++kills) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + 150 * kills));
        server_.kill();
        server_.start();
    }
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), "done: looked");
    std::vector<std::string> started;
    for (const SseEvent& event : events(text(run, "run_id"))) {
        const json::value& payload = event.data.at("payload");
        const json::value* name = payload.as_object().if_contains("name");
        if (name != nullptr && *name == "ars.subagent_run_update") {
            started.push_back(text(payload, "run_id"));
        }
    }
    std::ranges::sort(started);
    const auto repeated = std::ranges::unique(started);
    started.erase(repeated.begin(), repeated.end());
    EXPECT_EQ(started.size(), 1U);
}

// --- what the model is told of its sandbox ---------------------------------------------------

constexpr const char* kCommands = R"(agent: main
turns:
  - tool_calls: [{id: a, tool: execute, args: {command: "echo x >> /tmp/mark; cat /tmp/mark"}}]
  - tool_calls: [{id: b, tool: execute, args: {command: "cat /tmp/mark"}}]
  - text: "done"
)";

int told_in(const std::vector<std::string>& outputs) {
    return static_cast<int>(std::ranges::count_if(outputs, [](const std::string& output) {
        return output.find(kGone) != std::string::npos;
    }));
}

TEST_F(Restart, ALaterRunIsToldOnceThatTmpIsGone) {
    server_.write("scripts/commands.yaml", kCommands);
    server_.start();
    const json::object first = server_.submit("main", "one");
    const std::string thread = text(first, "thread_id");
    server_.wait_for_end(text(first, "run_id"));
    // Nothing was lost: the sandbox stays warm between runs.
    finish("two", thread);
    std::vector<std::string> outputs_before = outputs(thread, "execute");
    ASSERT_EQ(outputs_before.size(), 4U);
    EXPECT_EQ(told_in(outputs_before), 0);
    EXPECT_NE(outputs_before[3].find("x\nx"), std::string::npos) << outputs_before[3];
    server_.kill();
    server_.start();
    finish("three", thread);
    finish("four", thread);
    const std::vector<std::string> all = outputs(thread, "execute");
    ASSERT_EQ(all.size(), 8U);
    EXPECT_EQ(told_in(all), 1) << all[4];
    EXPECT_NE(all[4].find(kGone), std::string::npos) << all[4];
}

TEST_F(Restart, AnIdleReleaseBetweenRunsIsToldToo) {
    server_.write("scripts/commands.yaml", kCommands);
    server_.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
        "agents: [\"agents/*.yaml\"]\n"
        "models:\n  default: \"demo:scripted\"\n  providers:\n"
        "    demo: {type: scripted, scripts: \"scripts/*.yaml\"}\n"
        "sandbox: {tool_approval_mode: always_trust, idle_release: 1s}\n"
    );
    server_.start();
    const json::object first = server_.submit("main", "one");
    const std::string thread = text(first, "thread_id");
    server_.wait_for_end(text(first, "run_id"));
    for (int i = 0; i < 3000; ++i) {
        if (http(server_.port(), "GET", "/metrics").body.find("\nars_scopes 0\n") !=
            std::string::npos) {
            break;
        }
        std::this_thread::sleep_for(10ms);
    }
    finish("two", thread);
    const std::vector<std::string> all = outputs(thread, "execute");
    ASSERT_EQ(all.size(), 4U);
    EXPECT_NE(all[2].find(kGone), std::string::npos) << all[2];
    EXPECT_EQ(all[1].find(kGone), std::string::npos) << all[1];
}

TEST_F(Restart, ARunThatWaitedForAPersonIsToldThatTmpIsGone) {
    server_.write(
        "scripts/ask.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: a, tool: execute, args: {command: \"echo x > /tmp/mark\"}}]\n"
        "  - tool_calls:\n"
        "      - {id: ask, tool: ask_user_question, args: {questions: [{question_id: q, question: "
        "\"Go?\"}]}}\n"
        "  - tool_calls: [{id: b, tool: execute, args: {command: \"ls /tmp\"}}]\n"
        "  - tool_calls: [{id: c, tool: execute, args: {command: \"ls /tmp\"}}]\n"
        "  - text: done\n"
    );
    server_.start();
    const json::object run = server_.submit("main", "go");
    wait_for_status(text(run, "run_id"), "interrupted");
    server_.kill();
    server_.start();
    const HttpReply resumed = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        json::object{
            {"agent_slug", "main"},
            {"created_by_run_id", run.at("run_id")},
            {"resume", {{"answers", {{"q", "yes"}}}}}
        }
    );
    ASSERT_EQ(resumed.status, 202) << resumed.body;
    const json::object result = server_.wait_for_end(text(resumed.json(), "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    const std::vector<std::string> all = outputs(text(run, "thread_id"), "execute");
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(told_in(all), 1);
    EXPECT_NE(all[1].find(kGone), std::string::npos) << all[1];
}

// --- a strict provider after a kill ----------------------------------------------------------

TEST_F(Restart, S33AKillDuringACallLeavesAHistoryThatAStrictProviderTakes) {
    ModelServer model([](const RecordedRequest& request, std::size_t) {
        if (request.last("user") == "hello") {
            return text_reply({"hello yourself"});
        }
        return request.last("tool").empty()
                   ? call_reply(
                         {{"a", "execute", R"({"command": "touch begun; sleep 7307"})"},
                          {"b", "ls", "{}"}}
                     )
                   : text_reply({"went on"});
    });
    server_.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
        "agents: [\"agents/*.yaml\"]\n"
        "models:\n  default: \"main:m\"\n  providers:\n"
        "    main: {type: openai, base_url: \"" +
            model.base_url() +
            "\", api_key_env: OPENAI_API_KEY}\n"
            "sandbox: {tool_approval_mode: always_trust}\n"
    );
    const std::map<std::string, std::string> keys{{"OPENAI_API_KEY", "a-key-for-the-test"}};
    server_.start(keys);
    const json::value run = send("go").json();
    wait_for_file(workdir(text(run, "thread_id")) + "/begun");
    server_.kill();
    server_.start(keys);
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), "went on");
    EXPECT_EQ(finish("hello", text(run, "thread_id")).at("output"), "hello yourself");
    for (const RecordedRequest& request : model.requests()) {
        EXPECT_EQ(request.fault, "") << request.body;
    }
    EXPECT_TRUE(no_process_stays_with("7307"));
}

}  // namespace
}  // namespace ars::tests
