#include "runtime/models/chat_request.hpp"

#include "tests/support/strict_request.hpp"
#include "tests/unit/runtime/models/client_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::models {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;

Message user(std::string text) { return message_of(Role::user, std::move(text)); }
Message result(std::string id, std::string text) {
    return result_of(std::move(id), std::move(text));
}
Message says(std::string text, std::string reasoning = {}) {
    Message message = message_of(Role::assistant, std::move(text));
    message.reasoning = std::move(reasoning);
    return message;
}

// The body for these messages, checked by the strict provider.
json::object body_of(const ModelRequest& request, const ChatOptions& options = {}) {
    const auto body = chat_request_body(request, options);
    EXPECT_TRUE(body) << body.error().message;
    EXPECT_EQ(tests::find_request_fault(*body).value_or(""), "") << *body;
    return json::parse(*body).as_object();
}

json::array messages_of(std::vector<Message> messages, const ChatOptions& options = {}) {
    ModelRequest request;
    request.model = "m";
    request.messages = std::move(messages);
    return body_of(request, options).at("messages").as_array();
}

std::vector<std::string> roles_of(const json::array& messages) {
    std::vector<std::string> out;
    for (const json::value& message : messages) {
        const json::object& one = message.as_object();
        const bool tool = one.contains("tool_call_id");
        out.push_back(
            std::string(one.at("role").as_string()) +
            (tool ? ":" + std::string(one.at("tool_call_id").as_string()) : "")
        );
    }
    return out;
}

TEST(ChatRequest, AsksForAStreamWithUsage) {
    ModelRequest request;
    request.model = "gpt-x";
    request.messages = {message_of(Role::system, "Be kind."), user("hi")};
    EXPECT_EQ(
        json::serialize(body_of(request)),
        R"({"model":"gpt-x","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"hi"}],)"
        R"("stream":true,"stream_options":{"include_usage":true}})"
    );
}

TEST(ChatRequest, S49_PutsResultsBehindTheirCallsInCallOrder) {
    const auto messages = messages_of(
        {user("go"),
         calling({{"a", "f", "{}"}, {"b", "g", "{}"}}),
         user("by the way"),
         result("b", "2"),
         result("a", "1")}
    );
    EXPECT_THAT(roles_of(messages), ElementsAre("user", "assistant", "tool:a", "tool:b", "user"));
    EXPECT_EQ(messages[2].at("content"), "1");
    EXPECT_TRUE(messages[1].at("content").is_null());
}

TEST(ChatRequest, RefusesAHistoryThatNoProviderWouldTake) {
    for (const auto& messages : std::vector<std::vector<Message>>{
             {user("go"), calling({{"a", "f", "{}"}})},
             {user("go"), calling({{"a", "f", "{}"}}), result("a", "1"), result("a", "2")},
             {user("go"), calling({{"a", "f", "{}"}}), result("b", "1")},
             {user("go"), result("a", "1")},
             {user("go"), calling({{"a", "f", "{}"}}), says("x"), result("a", "1")}
         }) {
        ModelRequest request;
        request.model = "m";
        request.messages = messages;
        const auto body = chat_request_body(request, {});
        ASSERT_FALSE(body);
        EXPECT_EQ(body.error().code, "history_unpaired");
    }
}

TEST(ChatRequest, LeavesOutEmptyMessagesAndFillsEmptyResults) {
    const auto messages =
        messages_of({user("a"), says(""), user("b"), calling({{"x", "f", ""}}), result("x", "")});
    EXPECT_THAT(roles_of(messages), ElementsAre("user", "user", "assistant", "tool:x"));
    EXPECT_EQ(messages[3].at("content"), "(empty result)");
}

TEST(ChatRequest, S43_S44_WrapsArgumentsThatAreNoObject) {
    const auto messages = messages_of(
        {user("go"),
         calling(
             {{"a", "f", R"({"a":)"},
              {"b", "f", "[1]"},
              {"c", "f", ""},
              {"d", "f", R"({"x":"\ud83d"})"}}
         ),
         result("a", "1"),
         result("b", "2"),
         result("c", "3"),
         result("d", "4")}
    );
    const auto arguments = [&](std::size_t i) {
        return std::string(
            messages[1].at("tool_calls").at(i).at("function").at("arguments").as_string()
        );
    };
    EXPECT_EQ(arguments(0), R"({"malformed_arguments":"{\"a\":"})");
    EXPECT_EQ(arguments(1), R"({"malformed_arguments":"[1]"})");
    EXPECT_EQ(arguments(2), "{}");
    EXPECT_EQ(arguments(3), R"({"x":"\ufffd"})");
}

TEST(ChatRequest, S48_MakesCallIdsThatEveryProviderTakes) {
    const std::string odd = "run-1:2:0";
    const auto messages = messages_of({user("go"), calling({{odd, "f", "{}"}}), result(odd, "1")});
    const json::value& id = messages[1].at("tool_calls").at(0).at("id");
    EXPECT_EQ(id, messages[2].at("tool_call_id"));
    EXPECT_EQ(id.as_string().size(), 37U);
    EXPECT_EQ(wire_call_id("call_0"), "call_0");
    EXPECT_NE(wire_call_id("run-1:2:0"), wire_call_id("run-1:2:1"));
    EXPECT_EQ(wire_call_id(std::string(41, 'x')).size(), 37U);
}

TEST(ChatRequest, S48_TellsRepeatedAndEmptyIdsApart) {
    const auto messages = messages_of(
        {user("go"),
         calling({{"call_0", "f", "{}"}}),
         result("call_0", "1"),
         calling({{"call_0", "f", "{}"}, {"", "g", "{}"}, {"", "g", "{}"}}),
         result("", "3"),
         result("call_0", "2"),
         result("", "4")}
    );
    ASSERT_EQ(messages.size(), 7U);
    EXPECT_EQ(messages[1].at("tool_calls").at(0).at("id"), "call_0");
    std::vector<std::string> contents;
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(messages[3].at("tool_calls").at(i).at("id"), messages[4 + i].at("tool_call_id"));
        contents.emplace_back(messages[4 + i].at("content").as_string());
    }
    EXPECT_THAT(contents, ElementsAre("2", "3", "4"));
}

TEST(ChatRequest, S55_ReplaysReasoningByPolicy) {
    std::vector<Message> history{
        user("go"), says("t", "plain"), user("on"), calling({{"a", "f", "{}"}}), result("a", "1")
    };
    history[3].reasoning = "with a call";
    const auto replayed = [&](ReasoningReplay policy) {
        std::vector<bool> out;
        for (const json::value& message : messages_of(history, {.reasoning = policy})) {
            if (message.at("role") == "assistant") {
                out.push_back(message.as_object().contains("reasoning_content"));
            }
        }
        return out;
    };
    EXPECT_THAT(replayed(ReasoningReplay::never), ElementsAre(false, false));
    EXPECT_THAT(replayed(ReasoningReplay::with_tool_calls), ElementsAre(false, true));
    EXPECT_THAT(replayed(ReasoningReplay::always), ElementsAre(true, true));
}

TEST(ChatRequest, S54_NormalizesToolSchemas) {
    ModelRequest request;
    request.model = "m";
    request.messages = {user("go")};
    request.tools.push_back(std::make_shared<ToolSchema>("bare", "No parameters", json::object()));
    request.tools.push_back(std::make_shared<ToolSchema>(
        "odd",
        "Odd ones",
        json::parse(R"({
        "$schema":"http://json-schema.org/draft-07/schema#","type":"object",
        "properties":{"uniqueItems":{"type":"boolean"},
                      "list":{"type":"array","uniqueItems":true},
                      "deep":{"anyOf":[{"type":"object"},{"type":"array","items":{"$schema":"x","type":"string"}}]}},
        "required":["list"]})")
            .as_object()
    ));
    const auto tools = body_of(request).at("tools").as_array();
    EXPECT_EQ(
        json::serialize(tools[0].at("function").at("parameters")),
        R"({"type":"object","properties":{}})"
    );
    EXPECT_EQ(
        json::serialize(tools[1].at("function").at("parameters")),
        R"({"type":"object","properties":{"uniqueItems":{"type":"boolean"},"list":{"type":"array","items":{}},)"
        R"("deep":{"anyOf":[{"type":"object","properties":{}},{"type":"array","items":{"type":"string"}}]}},)"
        R"("required":["list"]})"
    );
}

TEST(ChatRequest, S88_IsValidUtf8WhateverItIsGiven) {
    const auto messages =
        messages_of({user("a\xff\xfe"
                          "b")});
    EXPECT_EQ(messages[0].at("content"), "a\uFFFD\uFFFDb");
}

TEST(ChatRequest, SendsAnOutputLimitOnlyWhenThereIsOne) {
    ModelRequest request;
    request.model = "m";
    request.messages = {user("go")};
    EXPECT_FALSE(body_of(request).contains("max_tokens"));
    EXPECT_EQ(body_of(request, {.max_output_tokens = 99}).at("max_tokens"), 99);
}

}  // namespace
}  // namespace ars::models
