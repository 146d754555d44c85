#include "runtime/models/scripted_client.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <optional>

namespace ars::models {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Pieces : public DeltaSink {
  public:
    void text(std::string_view piece) override { pieces.emplace_back(piece); }
    void reasoning(std::string_view) override {}
    void restart(std::string_view) override {}
    [[nodiscard]] std::string joined() const {
        std::string out;
        for (const auto& piece : pieces) {
            out += piece;
        }
        return out;
    }
    std::vector<std::string> pieces;
};

std::shared_ptr<const ScriptBook> demo_book() {
    Script script;
    script.agent = "analyst";
    ScriptTurn first;
    first.text = "I look at the file first, then I add up what is in it.";
    first.tool_calls = {
        {"head", "execute", {{"command", "head sales.csv"}}},
        {"sum", "execute", {{"command", "echo {{user | sh}}"}, {"timeout", 5}}},
    };
    first.place = "s.yaml:4";
    ScriptTurn second;
    second.text = "The sum is {{sum | line \"total=\"}}.";
    second.place = "s.yaml:9";
    script.turns = {first, second};
    return std::make_shared<const ScriptBook>(std::vector<Script>{script});
}

ModelRequest request(std::vector<Message> messages) {
    ModelRequest out;
    out.model = "scripted";
    out.agent_slug = "analyst";
    out.messages = std::move(messages);
    return out;
}

Message user(std::string text) { return {Role::user, std::move(text), {}, {}, {}, false}; }
Message assistant(std::vector<ToolCall> calls) {
    return {Role::assistant, "", {}, std::move(calls), {}, false};
}
Message tool(std::string id, std::string text) {
    return {Role::tool, std::move(text), {}, {}, std::move(id), false};
}

base::Result<ModelReply> complete(
    const ModelRequest& asked, DeltaSink& sink, std::shared_ptr<const ScriptBook> book = demo_book()
) {
    boost::asio::io_context io(1);
    ScriptedClient client(std::move(book));
    std::optional<base::Result<ModelReply>> out;
    std::exception_ptr thrown;
    boost::asio::co_spawn(
        io,
        client.complete(asked, sink),
        [&](std::exception_ptr error, base::Result<ModelReply> reply) {
            thrown = error;
            out = std::move(reply);
        }
    );
    io.run();
    if (thrown) {
        std::rethrow_exception(thrown);
    }
    return std::move(*out);
}

TEST(ScriptedClient, TheFirstTurnStreamsItsTextAndCallsItsTools) {
    Pieces sink;
    const auto reply = complete(request({user("what's up?")}), sink);
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    EXPECT_EQ(reply->content, "I look at the file first, then I add up what is in it.");
    EXPECT_EQ(sink.joined(), reply->content);
    EXPECT_GT(sink.pieces.size(), 2U);
    ASSERT_THAT(reply->tool_calls, SizeIs(2));
    EXPECT_EQ(reply->tool_calls[0].id, "head");
    EXPECT_EQ(reply->tool_calls[1].arguments, R"({"command":"echo 'what'\\''s up?'","timeout":5})");
    EXPECT_TRUE(reply->usage_known);
    EXPECT_GT(reply->usage.output_tokens, 10U);
}

TEST(ScriptedClient, TheNextTurnIsFilledFromToolResults) {
    Pieces sink;
    const auto asked = request({
        user("an older question"),
        assistant({}),
        tool("sum", "total=1"),
        user("and now?"),
        assistant({{"head", "execute", "{}"}, {"sum", "execute", "{}"}}),
        tool("head", "date,region"),
        tool("sum", "rows=3\ntotal= 42.50\n"),
    });
    const auto reply = complete(asked, sink);
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    EXPECT_EQ(reply->content, "The sum is 42.50.")
        << "results before the last user message don't count";
    EXPECT_TRUE(reply->tool_calls.empty());
    Pieces again;
    EXPECT_EQ(complete(asked, again)->content, reply->content)
        << "the same request, the same reply";
}

TEST(ScriptedClient, AnUnresolvedPlaceholderIsAModelErrorWithFileAndLine) {
    Pieces sink;
    const auto reply =
        complete(request({user("q"), assistant({}), tool("sum", "Permission denied")}), sink);
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code, "model_rejected");
    EXPECT_THAT(
        reply.error().message, HasSubstr("s.yaml:9: the placeholder {{sum | line \"total=\"}}")
    );
    EXPECT_THAT(reply.error().message, HasSubstr("Permission denied"));
    EXPECT_TRUE(sink.pieces.empty());
}

TEST(ScriptedClient, ARequestNoScriptForeseesIsAModelError) {
    Pieces sink;
    auto asked = request({user("q"), assistant({}), assistant({})});
    auto reply = complete(asked, sink);
    ASSERT_FALSE(reply.has_value());
    EXPECT_THAT(reply.error().message, HasSubstr("s.yaml:9: the script has 2 turns, but turn 3"));
    asked.agent_slug = "writer";
    reply = complete(asked, sink);
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code, "model_rejected");
    EXPECT_THAT(reply.error().message, HasSubstr("no script answers the agent \"writer\""));
}

TEST(ScriptedClient, ACallThatARestartCutOffIsMadeAgainAndTheScriptGoesOn) {
    Script script = demo_book()->scripts().front();
    script.redo_after = "server was restarted";
    const auto book = std::make_shared<const ScriptBook>(std::vector<Script>{script});
    auto asked = request({
        user("q"),
        assistant({{"head", "execute", "{}"}, {"sum", "execute", R"({"command":"s"})"}}),
        tool("head", "date"),
        tool("sum", "The server was restarted while this call was running."),
    });
    Pieces sink;
    auto reply = complete(asked, sink, book);
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    ASSERT_THAT(reply->tool_calls, SizeIs(1)) << "what ended well is not repeated";
    EXPECT_EQ(reply->tool_calls[0].id, "sum");
    EXPECT_EQ(reply->tool_calls[0].arguments, R"({"command":"s"})");
    EXPECT_THAT(reply->content, HasSubstr("so I do it again: sum."));

    asked.messages.push_back(assistant(reply->tool_calls));
    asked.messages.push_back(tool("sum", "total=7"));
    reply = complete(asked, sink, book);
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    EXPECT_EQ(reply->content, "The sum is 7.");
}

std::shared_ptr<const ScriptBook> slow_book() {
    Script script;
    script.agent = "analyst";
    script.turns.emplace_back();
    script.turns[0].text = "never said in full because the pace is far too slow for it";
    script.turns[0].pace = 1h;
    script.turns[0].place = "slow.yaml:1";
    return std::make_shared<const ScriptBook>(std::vector<Script>{script});
}

TEST(ScriptedClient, ThePaceIsBoundByTheDeadline) {
    Pieces sink;
    auto asked = request({user("q")});
    asked.deadline = base::Deadline::after(10ms);
    const auto reply = complete(asked, sink, slow_book());
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code, "model_timeout");
    EXPECT_THAT(sink.pieces, SizeIs(1));
}

TEST(ScriptedClient, CancellationEndsAReplyInTheMiddle) {
    boost::asio::io_context io(1);
    boost::asio::cancellation_signal cancel;
    ScriptedClient client(slow_book());
    Pieces sink;
    const auto asked = request({user("q")});
    std::exception_ptr thrown;
    boost::asio::co_spawn(
        io,
        client.complete(asked, sink),
        boost::asio::bind_cancellation_slot(
            cancel.slot(),
            [&](std::exception_ptr error, base::Result<ModelReply>) { thrown = error; }
        )
    );
    io.poll();
    EXPECT_THAT(sink.pieces, SizeIs(1));
    cancel.emit(boost::asio::cancellation_type::terminal);
    io.run();
    ASSERT_TRUE(thrown);
    EXPECT_THROW(std::rethrow_exception(thrown), boost::system::system_error);
}

}  // namespace
}  // namespace ars::models
