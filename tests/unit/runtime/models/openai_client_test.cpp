#include "runtime/models/openai_client.hpp"

#include "base/fd.hpp"
#include "tests/support/model_server.hpp"
#include "tests/unit/runtime/models/client_fixture.hpp"

#include <boost/system/system_error.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include <sys/socket.h>
#include <sys/time.h>

namespace ars::models {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::call_reply;
using tests::chunk;
using tests::Cut;
using tests::error_reply;
using tests::frame;
using tests::ModelServer;
using tests::Pause;
using tests::raw_reply;
using tests::ScriptedReply;
using tests::Send;
using tests::text_reply;

ScriptedReply with_header(ScriptedReply reply, const char* name, const std::string& value) {
    reply.headers.emplace_back(name, value);
    return reply;
}

// Text, then the connection is cut before the end.
ScriptedReply cut_reply(const std::string& text, bool reset) {
    ScriptedReply reply;
    reply.body = {Send{frame(chunk({{"content", text}}))}, Pause{20ms}, Cut{reset}};
    return reply;
}

TEST(OpenAiClient, StreamsTextAndSendsWhatItWasGiven) {
    ModelServer server;
    server.push(text_reply({"Hel", "lo"}));
    auto settings = quick_settings(server.base_url());
    settings.api_key = "sk-secret\n";
    Caller caller(settings);
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->content, "Hello");
    EXPECT_TRUE(reply->usage_known);
    EXPECT_EQ(reply->usage.input_tokens, 10U);
    EXPECT_THAT(caller.sink.pieces, ElementsAre("Hel", "lo"));
    const auto requests = server.requests();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].target, "/v1/chat/completions");
    EXPECT_EQ(requests[0].header("authorization"), "Bearer sk-secret");
    EXPECT_EQ(requests[0].last("user"), "hi");
}

TEST(OpenAiClient, SendsNoAuthorizationWithoutAKey) {
    ModelServer server;
    server.push(text_reply({"x"}));
    Caller caller(quick_settings(server.base_url()));
    ASSERT_TRUE(caller.call(request_saying("hi")));
    EXPECT_EQ(server.requests()[0].header("authorization"), "");
}

TEST(OpenAiClient, BringsToolCalls) {
    ModelServer server;
    server.push(call_reply({{"a", "f", R"({"x":1})"}, {"b", "g", "{}"}}, "let me see"));
    Caller caller(quick_settings(server.base_url()));
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->tool_calls.size(), 2U);
    EXPECT_EQ(reply->tool_calls[0].arguments, R"({"x":1})");
    EXPECT_EQ(reply->tool_calls[1].name, "g");
    EXPECT_EQ(reply->content, "let me see");
}

TEST(OpenAiClient, UsesItsConnectionAgain) {
    ModelServer server([](const auto&, std::size_t) { return text_reply({"x"}); });
    Caller caller(quick_settings(server.base_url()));
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(caller.call(request_saying("hi")));
    }
    EXPECT_EQ(server.requests()[2].connection, 1U);
}

TEST(OpenAiClient, TakesAFreshConnectionWhenTheIdleOneWasClosed) {
    ModelServer server([](const auto&, std::size_t) { return text_reply({"x"}); });
    auto settings = quick_settings(server.base_url());
    settings.retries = 0;
    Caller caller(settings);
    ASSERT_TRUE(caller.call(request_saying("hi")));
    server.drop_connections();
    ASSERT_TRUE(caller.call(request_saying("hi")));
    EXPECT_EQ(server.requests()[1].connection, 2U);
}

TEST(OpenAiClient, ReadsAReplySentInSinglePiecesOfAnySize) {
    for (const std::size_t split : {1U, 2U, 3U, 7U, 64U}) {
        ModelServer server;
        auto reply = call_reply({{"a", "f", R"({"x":"\u00fc"})"}}, "Gr\u00fc\u00dfe");
        reply.split_bytes = split;
        server.push(reply);
        Caller caller(quick_settings(server.base_url()));
        const auto got = caller.call(request_saying("hi"));
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(got->content, "Gr\u00fc\u00dfe");
        EXPECT_EQ(got->tool_calls[0].arguments, R"({"x":"\u00fc"})");
    }
}

TEST(OpenAiClient, TriesAgainAfterARateLimitWhenTheProviderSaysSo) {
    ModelServer server;
    server.push(with_header(error_reply(429, "{}"), "Retry-After", "0.2"));
    server.push(text_reply({"x"}));
    Caller caller(quick_settings(server.base_url()));
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(caller.call(request_saying("hi")));
    EXPECT_GE(std::chrono::steady_clock::now() - start, 200ms);
    EXPECT_EQ(server.requests().size(), 2U);
    EXPECT_TRUE(caller.sink.restarts.empty()) << "nothing was published before";
}

TEST(OpenAiClient, TakesARetryAfterDate) {
    ModelServer server;
    const std::time_t soon = std::time(nullptr) + 2;
    std::tm utc{};
    ::gmtime_r(&soon, &utc);
    char date[64];
    std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    server.push(with_header(error_reply(503, "busy"), "Retry-After", date));
    server.push(text_reply({"x"}));
    Caller caller(quick_settings(server.base_url()));
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(caller.call(request_saying("hi")));
    EXPECT_GE(std::chrono::steady_clock::now() - start, 900ms);
}

TEST(OpenAiClient, DoesNotWaitBeyondItsDeadline) {
    ModelServer server;
    server.push(with_header(error_reply(429, "{}"), "Retry-After", "3600"));
    Caller caller(quick_settings(server.base_url()));
    auto request = request_saying("hi");
    request.deadline = base::Deadline::after(30s);
    const auto reply = caller.call(request);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_rate_limited");
    EXPECT_FALSE(request.deadline.passed());
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(OpenAiClient, GivesUpAfterItsRetries) {
    ModelServer server([](const auto&, std::size_t) {
        return error_reply(500, "<html>oops</html>");
    });
    Caller caller(quick_settings(server.base_url()));
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_unavailable");
    EXPECT_THAT(reply.error().message, HasSubstr("oops"));
    EXPECT_THAT(reply.error().message, HasSubstr("3 attempts"));
    EXPECT_EQ(server.requests().size(), 3U);
}

TEST(OpenAiClient, SucceedsAfterA500) {
    ModelServer server;
    server.push(error_reply(500, "oops"));
    server.push(text_reply({"x"}));
    Caller caller(quick_settings(server.base_url()));
    EXPECT_TRUE(caller.call(request_saying("hi")));
}

TEST(OpenAiClient, RestartsTheStreamWhenItIsCutInTheMiddle) {
    for (const bool reset : {false, true}) {
        ModelServer server;
        server.push(cut_reply("old", reset));
        server.push(text_reply({"new"}));
        Caller caller(quick_settings(server.base_url()));
        const auto reply = caller.call(request_saying("hi"));
        ASSERT_TRUE(reply) << reply.error().message;
        EXPECT_EQ(reply->content, "new");
        EXPECT_EQ(caller.sink.content, "new");
        EXPECT_THAT(caller.sink.pieces, ElementsAre("old", "new"));
        EXPECT_EQ(caller.sink.restarts.size(), 1U);
    }
}

TEST(OpenAiClient, TakesACutStreamWhoseReplyWasWhole) {
    ModelServer server;
    ScriptedReply reply;
    reply.body = {Send{frame(chunk({{"content", "x"}}, "stop"))}, Pause{20ms}, Cut{true}};
    server.push(reply);
    Caller caller(quick_settings(server.base_url()));
    const auto got = caller.call(request_saying("hi"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->content, "x");
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(OpenAiClient, S51_TakesAReplyWithoutFinishReason) {
    ModelServer server;
    server.push(raw_reply(frame(chunk({{"content", "x"}})) + "data: [DONE]"));
    Caller caller(quick_settings(server.base_url()));
    EXPECT_TRUE(caller.call(request_saying("hi")));
}

TEST(OpenAiClient, S52_RetriesAnErrorInsideTheStream) {
    ModelServer server;
    server.push(raw_reply(
        frame(chunk({{"content", "old"}})) + frame(R"({"error":{"message":"x","code":429}})")
    ));
    server.push(text_reply({"new"}));
    Caller caller(quick_settings(server.base_url()));
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->content, "new");
    ASSERT_EQ(caller.sink.restarts.size(), 1U);
    EXPECT_THAT(caller.sink.restarts[0], HasSubstr("429"));
}

TEST(OpenAiClient, S53_AsksOnceWhenItIsRejected) {
    ModelServer server([](const auto&, std::size_t) {
        return error_reply(
            400, R"({"error":{"message":"Invalid schema in tools[0].function","code":null}})"
        );
    });
    Caller caller(quick_settings(server.base_url()));
    auto request = request_saying("hi");
    request.tools.push_back(std::make_shared<ToolSchema>("broken_tool", "", boost::json::object()));
    const auto reply = caller.call(request);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_rejected");
    EXPECT_THAT(reply.error().message, HasSubstr("Invalid schema"));
    EXPECT_THAT(reply.error().message, HasSubstr("broken_tool"));
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(OpenAiClient, DoesNotFollowARedirect) {
    ModelServer server;
    server.push(with_header(error_reply(307, ""), "Location", "http://127.0.0.1:1/elsewhere"));
    Caller caller(quick_settings(server.base_url()));
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_rejected");
    EXPECT_THAT(reply.error().message, HasSubstr("/elsewhere"));
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(OpenAiClient, ReadsAProviderThatDoesNotStream) {
    ModelServer server;
    auto answer =
        error_reply(200, R"({"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]})");
    server.push(answer);
    Caller caller(quick_settings(server.base_url()));
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->content, "whole");
    EXPECT_EQ(caller.sink.content, "whole");
}

TEST(OpenAiClient, NeverShowsItsKey) {
    base::Pipe log = *base::make_pipe();
    ModelServer server;
    server.push(error_reply(500, R"({"error":{"message":"trouble with sk-secret-key"}})"));
    server.push(
        error_reply(401, R"({"error":{"message":"Incorrect API key provided: sk-secret-key."}})")
    );
    auto settings = quick_settings(server.base_url());
    settings.api_key = "sk-secret-key";
    Caller caller(settings, log.write.get());
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_rejected");
    EXPECT_THAT(
        reply.error().message, HasSubstr("Incorrect API key provided: [redacted:API key].")
    );
    log.write.reset();
    const std::string lines = *base::read_to_end(log.read.get(), 65536);
    EXPECT_THAT(lines, HasSubstr("model_retry"));
    EXPECT_THAT(lines, Not(HasSubstr("sk-secret")));
}

TEST(OpenAiClient, ReportsAPortNobodyListensOn) {
    std::string url;
    {
        const ModelServer server;
        url = server.base_url();
    }
    Caller caller(quick_settings(url));
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_unavailable");
    EXPECT_THAT(reply.error().message, HasSubstr("refused"));
}

TEST(OpenAiClient, S28_EndsAStreamOfCommentsWithTheFirstEventLimit) {
    ModelServer server([](const auto&, std::size_t) {
        ScriptedReply reply;
        for (int i = 0; i < 400; ++i) {
            reply.body.emplace_back(Send{": keep-alive\n\n"});
            reply.body.emplace_back(Pause{50ms});
        }
        return reply;
    });
    auto settings = quick_settings(server.base_url());
    settings.first_byte_timeout = 500ms;
    settings.retries = 0;
    Caller caller(settings);
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_timeout");
    EXPECT_THAT(reply.error().message, HasSubstr("no event for 500 ms"));
    EXPECT_TRUE(server.wait_for_hang_up(1, 20s));
}

TEST(OpenAiClient, EndsWhenNoHeadComes) {
    ModelServer server([](const auto&, std::size_t) {
        ScriptedReply reply;
        reply.delay_before_head = 60s;
        return reply;
    });
    auto settings = quick_settings(server.base_url());
    settings.first_byte_timeout = 200ms;
    settings.retries = 1;
    Caller caller(settings);
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_timeout");
    EXPECT_EQ(server.requests().size(), 2U);
    EXPECT_TRUE(server.wait_for_hang_up(2, 20s));
}

TEST(OpenAiClient, EndsWhenTheStreamFallsSilent) {
    ModelServer server([](const auto&, std::size_t) {
        ScriptedReply reply;
        reply.body = {Send{frame(chunk({{"content", "x"}}))}, Pause{60s}};
        return reply;
    });
    auto settings = quick_settings(server.base_url());
    settings.idle_timeout = 300ms;
    settings.retries = 0;
    Caller caller(settings);
    const auto reply = caller.call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_timeout");
    EXPECT_THAT(reply.error().message, HasSubstr("300 ms"));
}

TEST(OpenAiClient, LetsCommentsKeepAStreamAliveAfterItsFirstEvent) {
    ModelServer server;
    ScriptedReply reply;
    reply.body = {Send{frame(chunk({{"content", "a"}}))}};
    for (int i = 0; i < 20; ++i) {
        reply.body.emplace_back(Pause{100ms});
        reply.body.emplace_back(Send{": thinking\n\n"});
    }
    reply.body.emplace_back(Send{frame(chunk({{"content", "b"}}, "stop")) + frame("[DONE]")});
    server.push(reply);
    auto settings = quick_settings(server.base_url());
    settings.idle_timeout = 1500ms;  // the whole pause takes 2 s
    settings.retries = 0;
    Caller caller(settings);
    const auto got = caller.call(request_saying("hi"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->content, "ab");
}

TEST(OpenAiClient, EndsWithItsDeadline) {
    ModelServer server([](const auto&, std::size_t) {
        ScriptedReply reply;
        for (int i = 0; i < 400; ++i) {
            reply.body.emplace_back(Send{frame(chunk({{"content", "x"}}))});
            reply.body.emplace_back(Pause{50ms});
        }
        return reply;
    });
    Caller caller(quick_settings(server.base_url()));
    auto request = request_saying("hi");
    request.deadline = base::Deadline::after(400ms);
    const auto reply = caller.call(request);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "model_timeout");
    EXPECT_THAT(reply.error().message, HasSubstr("total time"));
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(OpenAiClient, ClosesItsSocketAtOnceWhenCancelled) {
    ModelServer server;
    ScriptedReply reply;
    reply.body = {Send{frame(chunk({{"content", "x"}}))}, Pause{60s}};
    server.push(reply);
    Caller caller(quick_settings(server.base_url()));
    caller.sink.on_text = [&] { caller.cancel(); };
    try {
        [[maybe_unused]] const auto got = caller.call(request_saying("hi"));
        FAIL() << "the call went on";
    } catch (const boost::system::system_error& error) {
        EXPECT_EQ(error.code(), boost::asio::error::operation_aborted);
    }
    EXPECT_TRUE(server.wait_for_hang_up(1, 20s));
    EXPECT_TRUE(caller.sink.restarts.empty());
}

TEST(OpenAiClient, RefusesSettingsThatCantWork) {
    auto settings = quick_settings("ftp://x");
    EXPECT_EQ(Caller(settings).call(request_saying("hi")).error().code, "model_rejected");
    settings = quick_settings("http://127.0.0.1:1/v1");
    settings.api_key = "a\r\nX-Evil: 1";
    EXPECT_EQ(Caller(settings).call(request_saying("hi")).error().code, "model_rejected");
}

TEST(OpenAiClient, ReportsAnAnswerThatIsNotHttp) {
    ModelServer server;
    ScriptedReply reply;
    reply.headers = {{"Content-Type", "text/event-stream"}, {"Content-Length", "zzz"}};
    server.push(reply);
    auto settings = quick_settings(server.base_url());
    settings.retries = 0;
    Caller caller(settings);
    const auto got = caller.call(request_saying("hi"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, "model_protocol");
}

TEST(OpenAiClient, IsHeardByAStrictProviderOverAWholeTurn) {
    ModelServer server([](const auto& request, std::size_t n) {
        return n == 0 ? call_reply({{"call_0", "f", "{}"}})
                      : text_reply({"done: " + request.last("tool")});
    });
    Caller caller(quick_settings(server.base_url()));
    auto request = request_saying("hi");
    request.tools.push_back(std::make_shared<ToolSchema>("f", "does it", boost::json::object()));
    auto first = caller.call(request);
    ASSERT_TRUE(first);
    const std::string id = "run:1:0";  // as the run loop names it
    first->tool_calls[0].id = id;
    request.messages.push_back(calling(first->tool_calls));
    request.messages.push_back(result_of(id, "42"));
    const auto second = caller.call(request);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->content, "done: 42");
}

}  // namespace
}  // namespace ars::models
