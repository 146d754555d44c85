#include "runtime/models/chat_reply.hpp"

#include "runtime/models/sse_parser.hpp"
#include "tests/unit/runtime/models/client_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<ToolSchemaPtr>& tools() {
    static const auto all = [] {
        std::vector<ToolSchemaPtr> out;
        for (const char* name : {"f", "g", "get_weather"}) {
            out.push_back(std::make_shared<ToolSchema>(name, "", boost::json::object()));
        }
        return out;
    }();
    return all;
}

std::string delta(const std::string& json, const std::string& finish = "null") {
    return R"({"choices":[{"index":0,"delta":)" + json + R"(,"finish_reason":)" + finish + "}]}";
}

// A chunk whose delta has this list of tool calls.
std::string calls(const std::string& list) { return delta(R"({"tool_calls":[)" + list + "]}"); }

const std::string kEnd = delta("{}", R"("tool_calls")");

struct Outcome {
    std::expected<ModelReply, CallFailure> reply;
    RecordingSink sink;
};

Outcome outcome_of(const std::vector<std::string>& chunks, std::uint32_t max_output_tokens = 0) {
    Outcome out{ModelReply{}, {}};
    ReplyBuilder builder(tools(), max_output_tokens, out.sink);
    for (const std::string& chunk : chunks) {
        if (auto fed = builder.feed(chunk); !fed) {
            out.reply = std::unexpected(fed.error());
            return out;
        }
    }
    out.reply = builder.take();
    return out;
}

// "id:name(arguments)" of each call.
std::vector<std::string> shown(const Outcome& outcome) {
    std::vector<std::string> out;
    if (!outcome.reply) {
        return {outcome.reply.error().error.code + ": " + outcome.reply.error().error.message};
    }
    for (const ToolCall& call : outcome.reply->tool_calls) {
        out.push_back(call.id + ":" + call.name + "(" + call.arguments + ")");
    }
    return out;
}

struct CallCase {
    const char* quirk;
    std::vector<std::string> chunks;
    std::vector<std::string> expected;
};

const std::vector<CallCase>& call_cases() {
    static const std::vector<CallCase> all{
        {"two parallel calls, the first goes on after the second began",
         {calls(R"({"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}})"),
          calls(R"({"index":0,"function":{"arguments":"{\"x\":"}})"),
          calls(R"({"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}})"
          ),
          calls(R"({"index":0,"function":{"arguments":"1}"}})")},
         {R"(a:f({"x":1}))", "b:g({})"}},
        {"no index, new ids",
         {calls(R"({"id":"a","function":{"name":"f","arguments":"{\"x\":"}})"),
          calls(R"({"function":{"arguments":"1}"}})"),
          calls(R"({"id":"b","function":{"name":"g","arguments":"{}"}})")},
         {R"(a:f({"x":1}))", "b:g({})"}},
        {"index null for all",
         {calls(R"({"index":null,"id":"a","function":{"name":"f","arguments":"{}"}})"),
          calls(R"({"index":null,"id":"b","function":{"name":"f","arguments":"{}"}})")},
         {"a:f({})", "b:f({})"}},
        {"index 0 for all, new ids",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":""}})"),
          calls(R"({"index":0,"function":{"arguments":"{\"x\":1}"}})"),
          calls(R"({"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":"}})"),
          calls(R"({"index":0,"function":{"arguments":"2}"}})")},
         {R"(a:f({"x":1}))", R"(b:g({"y":2}))"}},
        {"index 0 for all and no ids: a name after complete arguments opens a call",
         {calls(R"({"index":0,"function":{"name":"f","arguments":"{}"}})"),
          calls(R"({"index":0,"function":{"name":"f","arguments":"{}"}})"),
          calls(R"({"index":0,"function":{"name":"g","arguments":"{}"}})")},
         {":f({})", ":f({})", ":g({})"}},
        {"neither index nor id, whole calls in one chunk",
         {calls(
             R"({"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{\"a\":2}"}})"
         )},
         {":f({})", R"(:g({"a":2}))"}},
        {"two tools without arguments, no ids, one index",
         {calls(R"({"index":0,"function":{"name":"f","arguments":""}})"),
          calls(R"({"index":0,"function":{"name":"g","arguments":""}})")},
         {":f()", ":g()"}},
        {"the index drifts between chunks",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":""}})"),
          calls(R"({"index":1,"function":{"arguments":"{\"x\""}})"),
          calls(R"({"index":2,"function":{"arguments":":1}"}})")},
         {R"(a:f({"x":1}))"}},
        {"the id is repeated in every chunk",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}})"),
          calls(R"({"index":0,"id":"a","function":{"arguments":":1}"}})"),
          calls(R"({"index":0,"id":"a","function":{"arguments":""}})")},
         {R"(a:f({"x":1}))"}},
        {"id and name are repeated in every chunk, the index drifts",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}})"),
          calls(R"({"index":1,"id":"a","function":{"name":"f","arguments":":1}"}})")},
         {R"(a:f({"x":1}))"}},
        {"S48: one id for two calls",
         {calls(R"({"index":0,"id":"call_0","function":{"name":"f","arguments":"{}"}})"),
          calls(R"({"index":1,"id":"call_0","function":{"name":"g","arguments":"{}"}})")},
         {"call_0:f({})", "call_0:g({})"}},
        {"S48: empty ids",
         {calls(R"({"index":0,"id":"","function":{"name":"f","arguments":"{}"}})"),
          calls(R"({"index":1,"id":"","function":{"name":"g","arguments":"{}"}})")},
         {":f({})", ":g({})"}},
        {"a new id in every chunk of one call",
         {calls(R"({"index":0,"id":"a1","function":{"name":"f","arguments":"{\"x\""}})"),
          calls(R"({"index":0,"id":"a2","function":{"arguments":":1}"}})")},
         {R"(a1:f({"x":1}))"}},
        {"the id comes later than the name",
         {calls(R"({"index":0,"function":{"name":"f"}})"),
          calls(R"({"index":0,"id":"a","function":{"arguments":"{}"}})")},
         {"a:f({})"}},
        {"the name comes later than the id",
         {calls(R"({"index":0,"id":"a"})"),
          calls(R"({"index":0,"function":{"name":"f","arguments":"{}"}})")},
         {"a:f({})"}},
        {"the name is repeated",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}})"),
          calls(R"({"index":0,"function":{"name":"f","arguments":"}"}})"),
          calls(R"({"index":0,"function":{"name":"f","arguments":""}})")},
         {"a:f({})"}},
        {"the name comes in pieces",
         {calls(R"({"index":0,"id":"a","function":{"name":"get_"}})"),
          calls(R"({"index":0,"function":{"name":"weather","arguments":"{}"}})")},
         {"a:get_weather({})"}},
        {"the name grows",
         {calls(R"({"index":0,"id":"a","function":{"name":"get_"}})"),
          calls(R"({"index":0,"function":{"name":"get_weather","arguments":"{}"}})")},
         {"a:get_weather({})"}},
        {"no arguments",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":""}})")},
         {"a:f()"}},
        {"arguments null and absent",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":null}})"),
          calls(R"({"index":1,"id":"b","function":{"name":"g"}})")},
         {"a:f()", "b:g()"}},
        {"arguments are an object",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1,2]}}})")},
         {R"(a:f({"x":[1,2]}))"}},
        {"S43: malformed arguments pass as they are",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}})")},
         {R"(a:f({"a":))"}},
        {"S44: arguments that are no object pass as they are",
         {calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}})"),
          calls(R"({"index":1,"id":"b","function":{"name":"f","arguments":"\"x\""}})"),
          calls(R"({"index":2,"id":"c","function":{"name":"f","arguments":"null"}})")},
         {"a:f([1])", R"(b:f("x"))", "c:f(null)"}},
        {"the legacy function_call",
         {delta(R"({"function_call":{"name":"f","arguments":"{\"x\""}})"),
          delta(R"({"function_call":{"arguments":":1}"}})")},
         {R"(:f({"x":1}))"}},
        {"elements that are no calls", {calls(R"(7,{"index":0},{"index":0,"function":"f"})")}, {}},
    };
    return all;
}

class ToolCalls : public testing::TestWithParam<CallCase> {};

TEST_P(ToolCalls, AreAssembled) {
    std::vector<std::string> chunks = GetParam().chunks;
    chunks.push_back(kEnd);
    EXPECT_EQ(shown(outcome_of(chunks)), GetParam().expected) << GetParam().quirk;
}

INSTANTIATE_TEST_SUITE_P(Quirks, ToolCalls, testing::ValuesIn(call_cases()));

TEST(ChatReply, PublishesTextAndReasoningAsTheyComeAndNothingEmpty) {
    const auto out = outcome_of(
        {delta(R"({"role":"assistant","content":""})"),
         delta(R"({"reasoning_content":"hm"})"),
         delta(R"({"reasoning":"m","content":null})"),
         delta(R"({"content":"Hel"})"),
         delta(R"({"content":"lo"})"),
         delta("{}", R"("stop")"),
         "[DONE]"}
    );
    ASSERT_TRUE(out.reply);
    EXPECT_EQ(out.reply->content, "Hello");
    EXPECT_EQ(out.reply->reasoning, "hmm");
    EXPECT_THAT(out.sink.pieces, ElementsAre("hm", "m", "Hel", "lo"));
}

TEST(ChatReply, ReadsAnAnswerThatWasNotStreamed) {
    const auto out = outcome_of(
        {R"({"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
        {"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":3,"completion_tokens":4}})"}
    );
    EXPECT_THAT(shown(out), ElementsAre("a:f({})", "b:g({})"));
    EXPECT_EQ(out.reply->content, "Hi");
    EXPECT_EQ(out.reply->usage.input_tokens, 3U);
}

TEST(ChatReply, ReadsContentGivenAsParts) {
    EXPECT_EQ(
        outcome_of({delta(R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})"),
                    "[DONE]"})
            .reply->content,
        "ab"
    );
}

TEST(ChatReply, S51_IsCompleteWithDoneAlone) {
    const auto out = outcome_of({delta(R"({"content":"x"})"), "[DONE]"});
    ASSERT_TRUE(out.reply);
    EXPECT_EQ(out.reply->content, "x");
}

TEST(ChatReply, IsCompleteWithAFinishReasonAlone) {
    EXPECT_TRUE(outcome_of({delta(R"({"content":"x"})", R"("stop")")}).reply);
}

TEST(ChatReply, IsTruncatedWithoutEitherAndMayBeTriedAgain) {
    const auto out = outcome_of({delta(R"({"content":"x"})")});
    ASSERT_FALSE(out.reply);
    EXPECT_TRUE(out.reply.error().retryable);
    EXPECT_EQ(out.reply.error().error.code, "model_unavailable");
}

TEST(ChatReply, ThatSaysNothingAtAllIsAProtocolError) {
    const auto out = outcome_of({"[DONE]"});
    ASSERT_FALSE(out.reply);
    EXPECT_EQ(out.reply.error().error.code, "model_protocol");
}

TEST(ChatReply, KeepsTheLastUsageThatIsNotNull) {
    const auto out = outcome_of(
        {R"({"choices":null})",
         R"({"usage":{"prompt_tokens":1,"completion_tokens":1}})",
         R"({"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":7}})",
         R"({"choices":[],"usage":null})",
         "[DONE]"}
    );
    ASSERT_TRUE(out.reply);
    EXPECT_TRUE(out.reply->usage_known);
    EXPECT_EQ(out.reply->usage.input_tokens, 10U);
    EXPECT_EQ(out.reply->usage.output_tokens, 7U);
}

TEST(ChatReply, DoesNotClaimToKnowAUsageThatNeverCame) {
    EXPECT_FALSE(outcome_of({delta(R"({"content":"x"})"), "[DONE]"}).reply->usage_known);
}

TEST(ChatReply, IgnoresOtherChoicesThanTheFirst) {
    const auto out = outcome_of(
        {R"({"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]})",
         "[DONE]"}
    );
    EXPECT_EQ(out.reply->content, "yes");
}

TEST(ChatReply, TellsThatLengthCutIt) {
    EXPECT_TRUE(outcome_of({delta(R"({"content":"x"})", R"("length")")}).reply->cut_by_length);
    const auto call =
        calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}})");
    const std::string usage =
        R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":50}})";
    EXPECT_TRUE(outcome_of({call, kEnd, usage}, 50).reply->cut_by_length);
    EXPECT_FALSE(outcome_of({call, kEnd, usage}, 60).reply->cut_by_length);
    EXPECT_FALSE(outcome_of({call, kEnd, usage}).reply->cut_by_length);
}

TEST(ChatReply, CountsCallsNotTheReasonForEnding) {
    const auto call = calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{}"}})");
    EXPECT_THAT(shown(outcome_of({call, delta("{}", R"("stop")")})), ElementsAre("a:f({})"));
    const auto none = outcome_of({delta(R"({"content":"x"})"), kEnd});
    ASSERT_TRUE(none.reply);
    EXPECT_THAT(none.reply->tool_calls, IsEmpty());
}

TEST(ChatReply, S52_ReportsAnErrorInsideTheStream) {
    const auto out = outcome_of({R"({"error":{"message":"slow down please","code":429}})"});
    ASSERT_FALSE(out.reply);
    EXPECT_EQ(out.reply.error().error.code, "model_rate_limited");
    EXPECT_TRUE(out.reply.error().retryable);
    EXPECT_THAT(out.reply.error().error.message, HasSubstr("slow down please"));
    EXPECT_FALSE(outcome_of({delta("{}", R"("error")")}).reply);
    EXPECT_TRUE(
        outcome_of({R"({"error":null,"choices":[{"delta":{"content":"x"}}]})", "[DONE]"}).reply
    );
}

TEST(ChatReply, ThatWasFilteredAwayIsRejected) {
    const auto out = outcome_of({delta("{}", R"("content_filter")")});
    ASSERT_FALSE(out.reply);
    EXPECT_EQ(out.reply.error().error.code, "model_rejected");
    EXPECT_FALSE(out.reply.error().retryable);
}

TEST(ChatReply, ReportsAGarbageChunk) {
    const auto out = outcome_of({"{\"choices\":[{"});
    ASSERT_FALSE(out.reply);
    EXPECT_EQ(out.reply.error().error.code, "model_protocol");
}

TEST(ChatReply, S88_ReplacesLoneSurrogatesAndBrokenUtf8) {
    const auto out = outcome_of(
        {delta(R"({"content":"a\ud83db \ud83d\ude00"})"),
         delta("{\"content\":\"\xff\xfe!\"}"),
         "[DONE]"}
    );
    ASSERT_TRUE(out.reply);
    EXPECT_EQ(out.reply->content, "a\uFFFDb \U0001F600\uFFFD\uFFFD!");
}

TEST(ChatReply, IsTheSameForEveryCutOfTheBytes) {
    std::string bytes = ": open\r\n\r\n";
    for (const std::string& chunk :
         {delta(R"({"role":"assistant","content":"Gr\u00fc\u00df"})"),
          delta("{\"content\":\"\xC3\xBC\xF0\x9F\x98\x80\"}"),
          calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}})"),
          calls(R"({"index":0,"function":{"arguments":"1}"}})"),
          kEnd,
          std::string("[DONE]")}) {
        bytes += "data:" + chunk + "\r\n\r\n";
    }
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        SseParser parser(4096);
        RecordingSink sink;
        ReplyBuilder builder(tools(), 0, sink);
        for (const auto piece :
             {std::string_view(bytes).substr(0, cut), std::string_view(bytes).substr(cut)}) {
            parser.feed(piece);
            while (const auto event = parser.next()) {
                ASSERT_TRUE(builder.feed(event->data));
            }
        }
        ASSERT_TRUE(builder.done()) << "cut at " << cut;
        const auto reply = builder.take();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->content, "Gr\u00fc\u00df\u00fc\U0001F600") << "cut at " << cut;
        ASSERT_EQ(reply->tool_calls.size(), 1U);
        EXPECT_EQ(reply->tool_calls[0].arguments, R"({"x":1})");
    }
}

}  // namespace
}  // namespace ars::models
