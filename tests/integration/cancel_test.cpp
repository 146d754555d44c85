// Cancel in every state of a run, and at the moment in which it ends by itself.
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

constexpr const char* kQuick = R"(agent: main
when: {user_contains: "quick"}
turns:
  - tool_calls: [{id: look, tool: ls, args: {}}, {id: say, tool: execute, args: {command: "echo hi"}}]
  - text: "an answer"
)";
constexpr const char* kSlow = R"(agent: main
when: {user_contains: "slow"}
turns:
  - tool_calls: [{id: nap, tool: execute, args: {command: "sleep 7331"}}]
  - text: "never said"
)";
constexpr const char* kBroken = R"(agent: main
when: {user_contains: "broken"}
turns:
  - tool_calls: [{id: look, tool: ls, args: {}}]
  - text: "{{look.json.such}}"
)";
constexpr const char* kQuestion = R"(agent: main
when: {user_contains: "question"}
turns:
  - tool_calls:
      - {id: ask, tool: ask_user_question, args: {questions: [{question_id: q, question: "Go?"}]}}
  - text: "answered"
)";

class Cancel : public ServedRuns {
  protected:
    Cancel() {
        server_.write("scripts/quick.yaml", kQuick);
        server_.write("scripts/slow.yaml", kSlow);
        server_.write("scripts/broken.yaml", kBroken);
        server_.write("scripts/question.yaml", kQuestion);
        server_.start();
    }

    HttpReply cancel(const std::string& id) {
        return http(server_.port(), "POST", "/api/agent/runs/" + id + "/cancel");
    }
    // I3: record, last event and thread say the same, once.
    void expect_one_end(const json::object& run, const std::string& status) {
        const std::string id = text(run, "run_id");
        EXPECT_EQ(text(record(id), "status"), status);
        const std::vector<SseEvent> all = events(id);
        ASSERT_FALSE(all.empty());
        EXPECT_TRUE(ids_rise(all));
        EXPECT_EQ(
            std::ranges::count(all, "end", [](const SseEvent& event) { return event.type; }), 1
        );
        EXPECT_EQ(all.back().type, "end");
        EXPECT_EQ(text(all.back().data.at("payload"), "status"), status);
        EXPECT_EQ(thread(text(run, "thread_id")).at("thread_status"), "ready");
        expect_no_open_calls(text(run, "thread_id"));
    }
};

TEST_F(Cancel, S32OfARunThatHasEndedChangesNothing) {
    const json::object completed = server_.submit("main", "quick");
    const json::object failed = server_.submit("main", "broken");
    const json::object cancelled = server_.submit("main", "slow");
    cancel(text(cancelled, "run_id"));
    for (const auto& [run, status] : std::vector<std::pair<json::object, std::string>>{
             {completed, "completed"}, {failed, "failed"}, {cancelled, "cancelled"}
         }) {
        const std::string id = text(run, "run_id");
        EXPECT_EQ(text(server_.wait_for_end(id), "status"), status);
        const std::string before = json::serialize(record(id));
        const std::size_t told = events(id).size();
        for (int i = 0; i < 3; ++i) {
            const HttpReply again = cancel(id);
            EXPECT_EQ(again.status, 200) << again.body;
            EXPECT_EQ(text(again.json().at("run"), "status"), status);
        }
        EXPECT_EQ(json::serialize(record(id)), before);
        EXPECT_EQ(events(id).size(), told);
        expect_one_end(run, status);
    }
    EXPECT_EQ(cancel("no-such-run").status, 404);
}

TEST_F(Cancel, K69K73AtTheMomentOfItsEndARunEndsOnceAsOneThing) {
    for (int i = 0; i < 25; ++i) {
        const json::object run = server_.submit("main", "quick");
        const std::string id = text(run, "run_id");
        // From right after the start to past the end.
        std::this_thread::sleep_for(i * 2ms);
        const HttpReply reply = cancel(id);
        ASSERT_EQ(reply.status, 200) << reply.body;
        const std::string said = text(reply.json().at("run"), "status");
        const std::string status = text(server_.wait_for_end(id), "status");
        if (said == "completed" || said == "cancelled" || said == "cancel_requested") {
            EXPECT_EQ(status, said == "completed" ? "completed" : "cancelled");
        } else {
            ADD_FAILURE() << "a cancel answered " << said;
        }
        expect_one_end(run, status);
        // The thread is free, and a strict history is left: the next run reads it.
        EXPECT_EQ(finish("quick", text(run, "thread_id")).at("status"), "completed");
    }
}

TEST_F(Cancel, K69ManyAtOnceAreOneCancel) {
    const json::object run = server_.submit("main", "slow");
    const std::string id = text(run, "run_id");
    std::vector<std::thread> callers;
    std::vector<HttpReply> replies(8);
    for (HttpReply& reply : replies) {
        callers.emplace_back([&] { reply = cancel(id); });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    for (const HttpReply& reply : replies) {
        EXPECT_EQ(reply.status, 200) << reply.body;
    }
    EXPECT_EQ(server_.wait_for_end(id).at("status"), "cancelled");
    expect_one_end(run, "cancelled");
    EXPECT_EQ(processes_with("7331"), 0);
}

TEST_F(Cancel, S32AKillRightAfterTheAnswerKeepsIt) {
    for (int i = 0; i < 4; ++i) {
        const json::object run = server_.submit("main", "slow");
        std::this_thread::sleep_for(i * 40ms);
        EXPECT_EQ(cancel(text(run, "run_id")).status, 200);
        server_.kill();
        server_.start();
        EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("status"), "cancelled");
        expect_one_end(run, "cancelled");
    }
}

TEST_F(Cancel, S37S38OfARunThatWaitsForAPersonClosesItsQuestionOnce) {
    const json::object run = server_.submit("main", "question");
    const std::string id = text(run, "run_id");
    wait_for_status(id, "interrupted");
    const std::size_t told = events(id).size();
    const HttpReply reply = cancel(id);
    EXPECT_EQ(reply.json().at("run").at("status"), "cancelled") << reply.body;
    EXPECT_EQ(cancel(id).json().at("run").at("status"), "cancelled");
    // Its log had its end when it began to wait.
    EXPECT_EQ(events(id).size(), told);
    const std::string thread = text(run, "thread_id");
    EXPECT_TRUE(state(thread).at("interrupts").as_array().empty());
    expect_no_open_calls(thread);
    const HttpReply late = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        json::object{
            {"agent_slug", "main"},
            {"created_by_run_id", id},
            {"resume", {{"answers", {{"q", "yes"}}}}}
        }
    );
    EXPECT_EQ(late.status, 409) << late.body;
    EXPECT_EQ(finish("quick", thread).at("status"), "completed");
}

TEST_F(Cancel, K114AModelThatIsUnknownIsRefusedAndSpacesAroundItsNameAreNot) {
    const auto with = [this](const char* spec) { return send("quick", {{"model_spec", spec}}); };
    for (const char* wrong : {"nobody:model", "demo", ":", "demo:"}) {
        EXPECT_EQ(with(wrong).status, 422) << wrong << with(wrong).body;
    }
    const HttpReply taken = with("  demo:other ");
    ASSERT_EQ(taken.status, 202) << taken.body;
    const std::string id = text(taken.json(), "run_id");
    EXPECT_EQ(text(record(id).at("input_payload"), "model_spec"), "demo:other");
}

}  // namespace
}  // namespace ars::tests
