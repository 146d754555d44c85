// The blocking call of orchestrators, on the real binary.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kRuns = "/api/agent-invocation/agent-call/runs";

constexpr const char* kAnswer = R"(agent: main
turns:
  - text: "The answer."
)";
constexpr const char* kSlow = R"(agent: main
when: {user_contains: "slow"}
turns:
  - tool_calls:
      - {id: nap, tool: execute, args: {command: "until [ -e go ]; do sleep 0.05; done"}}
  - text: "woken"
)";

json::object call_of(const std::string& text, json::object more = {}) {
    json::object body{
        {"agent_slug", "main"},
        {"messages",
         {{{"role", "system"}, {"content", "ignored"}},
          {{"role", "user"}, {"content", "an older one"}},
          {{"role", "assistant"}, {"content", "yes"}},
          {{"role", "user"}, {"content", {{{"type", "text"}, {"text", text}}}}}}}
    };
    for (auto& entry : more) {
        body[entry.key()] = entry.value();
    }
    return body;
}

class AgentCall : public testing::Test {
  protected:
    void SetUp() override {
        server_.write("scripts/answer.yaml", kAnswer);
        server_.write("scripts/slow.yaml", kSlow);
        server_.start();
    }
    [[nodiscard]] HttpReply call(const json::object& body, const Headers& headers = {}) const {
        return http_json(server_.port(), "POST", kRuns, body, headers);
    }
    void wake(const std::string& thread) const {
        const HttpReply put = http(
            server_.port(),
            "PUT",
            "/api/viewer/filesystem/file?thread_id=" + thread + "&path=go",
            "x"
        );
        EXPECT_EQ(put.status, 201) << put.body;
    }
    static std::string text(const json::value& object, const char* key) {
        return std::string(object.at(key).as_string());
    }

    Server server_;
};

TEST_F(AgentCall, WaitsForTheRunAndAnswersLikeAChatCompletion) {
    const HttpReply reply = call(call_of("go", {{"agent_call_meta", {{"flow", "f1"}}}}));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json::value body = reply.json();
    EXPECT_EQ(body.at("status"), "completed");
    EXPECT_EQ(body.at("output"), "The answer.");
    const json::value& choice = body.at("choices").at(0);
    EXPECT_EQ(choice.at("message").at("content"), "The answer.");
    EXPECT_EQ(choice.at("finish_reason"), "stop");
    EXPECT_EQ(
        body.at("usage").at("total_tokens").to_number<int>(),
        body.at("usage").at("prompt_tokens").to_number<int>() +
            body.at("usage").at("completion_tokens").to_number<int>()
    );
    EXPECT_EQ(body.at("agent_call_meta").at("flow"), "f1");
    EXPECT_TRUE(text(body, "thread_id").starts_with("invocation_"));
    EXPECT_EQ(text(body, "thread_id").size(), 64U);
    // The last user message was the input.
    const HttpReply history =
        http(server_.port(), "GET", "/api/chat/thread/" + text(body, "thread_id") + "/history");
    EXPECT_EQ(history.json().at("history").at(0).at("content"), "go") << history.body;
    const HttpReply result = http_json(
        server_.port(), "POST", std::string(kRuns) + "/result", {{"run_id", body.at("run_id")}}
    );
    EXPECT_EQ(result.json().at("output"), "The answer.");
    const HttpReply other = http_json(
        server_.port(),
        "POST",
        std::string(kRuns) + "/result",
        {{"run_id", body.at("run_id")}, {"agent_slug", "helper"}}
    );
    EXPECT_EQ(other.status, 409);
    const HttpReply none =
        http_json(server_.port(), "POST", std::string(kRuns) + "/result", {{"run_id", "nope"}});
    EXPECT_EQ(none.status, 404);
}

TEST_F(AgentCall, K116ATimedOutWaitIs504WithTheRunWhichGoesOn) {
    const HttpReply late =
        call(call_of("slow please", {{"wait_timeout", "100ms"}, {"request_id", "r1"}}));
    ASSERT_EQ(late.status, 504) << late.body;
    const json::value detail = late.json().at("detail");
    EXPECT_EQ(detail.at("code"), "wait_timeout");
    EXPECT_EQ(detail.at("run").at("request_id"), "r1");
    wake(text(detail.at("run"), "thread_id"));
    // The same call again waits for the same run.
    const HttpReply again = call(call_of("slow please", {{"request_id", "r1"}}));
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(again.json().at("run_id"), detail.at("run").at("id"));
    EXPECT_EQ(again.json().at("output"), "woken");
}

TEST_F(AgentCall, K88TheSameCallIsOneRunAndAnotherBodyAConflict) {
    const json::object body = call_of("go", {{"request_id", "r1"}});
    const json::value first = call(body).json();
    EXPECT_EQ(call(body).json().at("run_id"), first.at("run_id"));
    EXPECT_EQ(
        call(call_of("go"), {{"Idempotency-Key", "r1"}}).json().at("run_id"), first.at("run_id")
    );
    // Waiting or not is no part of what the run does.
    EXPECT_EQ(
        call(call_of("go", {{"request_id", "r1"}, {"async_mode", true}})).json().at("run_id"),
        first.at("run_id")
    );
    const HttpReply conflict = call(call_of("other", {{"request_id", "r1"}}));
    EXPECT_EQ(conflict.status, 409);
    EXPECT_EQ(conflict.json().at("detail").at("code"), "request_id_conflict");
    server_.kill();
    server_.start();
    EXPECT_EQ(call(body).json().at("run_id"), first.at("run_id"));
    EXPECT_NE(call(call_of("go")).json().at("run_id"), first.at("run_id"));
}

TEST_F(AgentCall, AnAsyncCallAnswersAtOnce) {
    const HttpReply reply = call(call_of("slow please", {{"async_mode", true}}));
    ASSERT_EQ(reply.status, 202) << reply.body;
    const json::value body = reply.json();
    EXPECT_TRUE(body.at("choices").at(0).at("finish_reason").is_null());
    EXPECT_TRUE(body.at("usage").is_null());
    wake(text(body, "thread_id"));
    const json::object result = server_.wait_for_end(text(body, "run_id"));
    EXPECT_EQ(result.at("output"), "woken");
}

TEST_F(AgentCall, ACancelledRunEndsTheWaitAndABusyThreadIsRefused) {
    auto waiting = std::async(std::launch::async, [this] {
        return call(call_of("slow please", {{"request_id", "r1"}}));
    });
    const HttpReply late =
        call(call_of("slow please", {{"request_id", "r1"}, {"wait_timeout", "1ms"}}));
    ASSERT_EQ(late.status, 504) << late.body;
    const json::value found = late.json().at("detail").at("run");
    const std::string run = text(found, "id");
    const std::string thread = text(found, "thread_id");
    EXPECT_EQ(call(call_of("go", {{"thread_id", thread}})).status, 409);
    EXPECT_EQ(http(server_.port(), "POST", "/api/agent/runs/" + run + "/cancel").status, 200);
    const HttpReply ended = waiting.get();
    EXPECT_EQ(ended.status, 200) << ended.body;
    EXPECT_EQ(ended.json().at("status"), "cancelled");
    EXPECT_EQ(ended.json().at("choices").at(0).at("finish_reason"), "cancelled");
}

TEST_F(AgentCall, S94WhatItCannotDoIsRefused) {
    for (const json::object& more : std::vector<json::object>{
             {{"stream", true}},
             {{"agent_call_meta", {{"context", json::object()}}}},
             {{"queue_policy", "enqueue"}},
             {{"messages", json::array()}},
             {{"messages", "text"}},
             {{"messages", {{{"role", "assistant"}, {"content", "x"}}}}},
             {{"messages", {{{"role", "user"}, {"content", " "}}}}},
             {{"messages",
               {{{"role", "user"}, {"content", {{{"type", "image_url"}, {"image_url", "x"}}}}}}}},
             {{"request_id", std::string(65, 'x')}},
             {{"async_mode", true}, {"wait_timeout", "1s"}},
             {{"unknown", 1}}
         }) {
        const HttpReply refused = call(call_of("go", more));
        EXPECT_EQ(refused.status, 422) << json::serialize(more) << refused.body;
    }
    EXPECT_EQ(call(call_of("go", {{"agent_slug", "nope"}})).status, 404);
    EXPECT_EQ(call(call_of("go", {{"thread_id", "nope"}})).status, 404);
}

}  // namespace
}  // namespace ars::tests
