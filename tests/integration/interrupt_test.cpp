// Runs that wait for a person, as an orchestrator and a person at a terminal see them: real binary,
// real HTTP, kill -9 in between.
#include "tests/support/served_runs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kTwoCalls = R"(agent: main
turns:
  - text: "May I?"
    tool_calls:
      - {id: look, tool: ls, args: {}}
      - {id: one, tool: execute, args: {command: "echo x >> effects; echo did it"}}
      - id: ask
        tool: ask_user_question
        args: {questions: [{question_id: colour, question: "Which?", options: [red, blue]}]}
  - tool_calls: [{id: read, tool: read_file, args: {file_path: effects}}]
  - text: "{{one}} and {{ask}} and {{read}}"
)";

constexpr const char* kGreeting = R"(agent: main
when: {user_contains: "hello"}
turns:
  - text: "hello"
)";

class Interrupt : public ServedRuns {
  protected:
    Interrupt() {
        server_.write("scripts/two.yaml", kTwoCalls);
        server_.write("scripts/hello.yaml", kGreeting);
        server_.write(
            "agents/main.yaml",
            "slug: main\nname: Main\ndescription: Asks before it acts.\nbackend_id: ChatbotAgent\n"
            "share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}\n"
            "config_json:\n  context: {system_prompt: \"Ask.\", tool_approval_mode: default}\n"
        );
        server_.start();
    }

    // A run that waits: its answer to the submission.
    json::object wait_for_interrupt() {
        json::object run = server_.submit("main", "go");
        wait_for_status(text(run, "run_id"), "interrupted");
        return run;
    }
    json::array pending(const std::string& thread) {
        return state(thread).at("interrupts").as_array();
    }
    HttpReply resume(const std::string& run, json::value answers, json::object more = {}) {
        more["agent_slug"] = "main";
        more["created_by_run_id"] = run;
        more["resume"] = std::move(answers);
        return http_json(server_.port(), "POST", "/api/agent/runs", more);
    }
    static json::object all_answered(const json::array& pending) {
        json::object out;
        for (const json::value& one : pending) {
            out[one.at("id").as_string()] = one.at("type") == "question"
                                                ? json::object{{"answers", {{"colour", "blue"}}}}
                                                : json::object{{"decision", "approve"}};
        }
        return out;
    }
    // What the approved command wrote.
    std::string effects(const std::string& thread) {
        return read_text(workdir(thread) + "/effects");
    }
};

TEST_F(Interrupt, S15S78AKillWhileItWaitsChangesNothingAndTheAnswerStartsTheCallOnce) {
    const json::object run = wait_for_interrupt();
    const std::string id = text(run, "run_id");
    const std::string thread = text(run, "thread_id");
    const json::array before = pending(thread);
    ASSERT_EQ(before.size(), 2U);
    EXPECT_EQ(record(id).at("interrupts"), before);
    server_.kill();
    server_.start();
    EXPECT_EQ(pending(thread), before);
    const HttpReply resumed = resume(id, all_answered(before));
    ASSERT_EQ(resumed.status, 202) << resumed.body;
    const std::string next = text(resumed.json().as_object(), "run_id");
    const json::object result = server_.wait_for_end(next);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    const std::string output = text(result, "output");
    EXPECT_NE(output.find("did it"), std::string::npos) << output;
    EXPECT_NE(output.find("blue"), std::string::npos) << output;
    EXPECT_EQ(effects(thread), "x\n");
    EXPECT_EQ(text(record(next), "created_by_run_id"), id);
    EXPECT_EQ(record(next).at("run_type"), "resume");
    EXPECT_EQ(text(record(id), "resumed_by_run_id"), next);
    EXPECT_TRUE(pending(thread).empty());
    expect_no_open_calls(thread);
}

TEST_F(Interrupt, S6AKillRightAfterTheAnswerNeverRunsTheCallTwice) {
    const json::object run = wait_for_interrupt();
    const std::string id = text(run, "run_id");
    const json::object answers = all_answered(pending(text(run, "thread_id")));
    const HttpReply resumed = resume(id, answers);
    ASSERT_EQ(resumed.status, 202) << resumed.body;
    server_.kill();
    server_.start();
    const HttpReply again = resume(id, answers);
    ASSERT_EQ(again.status, 202) << again.body;
    const std::string next = text(resumed.json().as_object(), "run_id");
    EXPECT_EQ(text(again.json().as_object(), "run_id"), next) << "K112";
    const json::object result = server_.wait_for_end(next);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_LE(effects(text(run, "thread_id")).size(), 2U) << "once, or given up by the kill";
    expect_no_open_calls(text(run, "thread_id"));
    const std::vector<SseEvent> events =
        read_events(server_.port(), "/api/agent/runs/" + next + "/events");
    EXPECT_TRUE(ids_rise(events));
    EXPECT_EQ(
        std::ranges::count(events, "end", [](const SseEvent& event) { return event.type; }), 1
    );
}

TEST_F(Interrupt, K74aTheStreamOfAWaitingRunEndsWithItsInterrupts) {
    const json::object run = wait_for_interrupt();
    const std::string target = "/api/agent/runs/" + text(run, "run_id") + "/events";
    const std::vector<SseEvent> events = read_events(server_.port(), target);
    ASSERT_GE(events.size(), 3U);
    EXPECT_EQ(events[events.size() - 3].type, "interrupt");
    EXPECT_EQ(events[events.size() - 2].type, "interrupt");
    EXPECT_EQ(events.back().type, "end");
    // S27: who comes back after the last event gets an end, not silence.
    const std::vector<SseEvent> rest =
        read_events(server_.port(), target, {{"Last-Event-ID", events.back().id}});
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].type, "end");
}

TEST_F(Interrupt, K94S39S41AMessageIsRefusedWithItsOwnCodeAndStoresNothing) {
    const json::object run = wait_for_interrupt();
    const std::string thread = text(run, "thread_id");
    const std::string history = "/api/chat/thread/" + thread + "/history";
    const std::string before = http(server_.port(), "GET", history).body;
    const HttpReply refused = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        json::object{{"agent_slug", "main"}, {"query", "hello"}, {"thread_id", thread}}
    );
    EXPECT_EQ(refused.status, 409);
    EXPECT_NE(refused.body.find("run_interrupted"), std::string::npos) << refused.body;
    EXPECT_NE(refused.body.find(text(run, "run_id")), std::string::npos) << refused.body;
    EXPECT_EQ(http(server_.port(), "GET", history).body, before);
}

TEST_F(Interrupt, S37S38ACancelFreesTheThreadAlsoAfterAKill) {
    const json::object run = wait_for_interrupt();
    const std::string id = text(run, "run_id");
    const std::string thread = text(run, "thread_id");
    EXPECT_EQ(http(server_.port(), "POST", "/api/agent/runs/" + id + "/cancel").status, 200);
    server_.kill();
    server_.start();
    EXPECT_EQ(record(id).at("status"), "cancelled");
    EXPECT_EQ(resume(id, json::object{{"decision", "approve"}}).status, 409);
    expect_no_open_calls(thread);
    const HttpReply next = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        json::object{{"agent_slug", "main"}, {"query", "hello"}, {"thread_id", thread}}
    );
    ASSERT_EQ(next.status, 202) << next.body;
    const json::object result = server_.wait_for_end(text(next.json().as_object(), "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
}

TEST_F(Interrupt, K111K113WhatIsNoAnswerIsRefused) {
    const json::object run = wait_for_interrupt();
    const std::string id = text(run, "run_id");
    const json::object approve{{"decision", "approve"}};
    const auto refused = [&](const HttpReply& reply, int status, std::string_view code) {
        EXPECT_EQ(reply.status, status) << reply.body;
        EXPECT_NE(reply.body.find(code), std::string::npos) << reply.body;
    };
    refused(resume("nope", approve), 404, "run_not_found");
    refused(resume(id, approve), 409, "interrupt_id_required");
    refused(resume(id, json::object{{"nope", approve}}), 422, "unknown_interrupt");
    refused(resume(id, "yes"), 422, "bad_resume");
    refused(resume(id, json::object{{"decision", "edit"}}), 422, "bad_resume");
    refused(resume(id, approve, {{"queue_policy", "steer"}}), 422, "queue_policy");
    refused(resume(id, approve, {{"query", "hello"}}), 422, "query");
    refused(resume(id, approve, {{"colour", "red"}}), 422, "colour");
    refused(resume(id, approve, {{"thread_id", "elsewhere"}}), 404, "run_not_found");
    const HttpReply nobody = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        json::object{{"agent_slug", "main"}, {"resume", approve}}
    );
    refused(nobody, 422, "created_by_run_id");
    // S94: what does not apply is said.
    const HttpReply taken = resume(
        id, all_answered(pending(text(run, "thread_id"))), {{"tool_approval_mode", "always_trust"}}
    );
    EXPECT_EQ(taken.status, 202) << taken.body;
    EXPECT_EQ(taken.json().at("not_applied"), json::array{"tool_approval_mode"});
}

TEST_F(Interrupt, OneOfManyAnswersAtTheSameMomentStartsARun) {
    const json::object run = wait_for_interrupt();
    const std::string id = text(run, "run_id");
    const json::object answers = all_answered(pending(text(run, "thread_id")));
    std::vector<std::thread> callers;
    std::vector<HttpReply> replies(8);
    for (std::size_t i = 0; i < replies.size(); ++i) {
        callers.emplace_back([&, i] {
            replies[i] = resume(id, answers, {{"request_id", "answer-" + std::to_string(i)}});
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    std::size_t taken = 0;
    for (const HttpReply& reply : replies) {
        taken += reply.status == 202 ? 1U : 0U;
        EXPECT_TRUE(
            reply.status == 202 || reply.body.find("resume_superseded") != std::string::npos
        ) << reply.body;
    }
    EXPECT_EQ(taken, 1U);
}

constexpr const char* kLocal = R"(data_dir: data
mounts: {users: data/users}
agents: ["agents/*.yaml"]
models:
  default: "demo:scripted"
  providers:
    demo: {type: scripted, scripts: "scripts/*.yaml"}
)";

struct LocalRun {
    LocalRun() {
        config = dir.write("appliance.yaml", kLocal);
        dir.write("agents/main.yaml", "slug: main\nname: Main\nbackend_id: ChatbotAgent\n");
        dir.write("scripts/two.yaml", kTwoCalls);
    }
    TempDir dir;
    std::string config;
};

TEST(RunOnATerminal, WithoutOneTheRunEndsWithWhatItWaitsForAndAnExitCodeOfItsOwn) {
    const LocalRun local;
    const Finished done =
        run({ars_binary(), "run", "main", "go", "--config", local.config},
            {{"XDG_STATE_HOME", local.dir.path()}});
    EXPECT_EQ(done.exit_code, 3) << done.out << done.err;
    EXPECT_NE(done.err.find("execute"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find("always_trust"), std::string::npos) << done.err;
}

TEST(RunOnATerminal, ThePersonIsAskedAndTheRunGoesOn) {
    const LocalRun local;
    const Finished done =
        run({"/usr/bin/script",
             "-qec",
             ars_binary() + " run main go --config " + local.config,
             "/dev/null"},
            {{"XDG_STATE_HOME", local.dir.path()}},
            "y\n2\n");
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    EXPECT_NE(done.out.find("y to approve"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("did it"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("blue"), std::string::npos) << done.out;
}

}  // namespace
}  // namespace ars::tests
