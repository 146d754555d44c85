#include "runtime/runs/loop_guard.hpp"

#include <gtest/gtest.h>

namespace ars::runs {
namespace {

using store::MessageRecord;
using store::Role;

struct Call {
    std::string name;
    std::string arguments;
    std::string result;
};

class Talk {
  public:
    Talk& user() {
        history_.emplace_back().role = Role::user;
        return *this;
    }
    // One turn of the model and its results, which come in the opposite order.
    Talk& turn(const std::vector<Call>& calls) {
        ++turns_;
        MessageRecord& message = history_.emplace_back();
        message.role = Role::assistant;
        for (const Call& call : calls) {
            store::ToolCall& made = message.tool_calls.emplace_back();
            made.id = std::to_string(turns_) + ":" + std::to_string(message.tool_calls.size());
            made.name = call.name;
            made.arguments = call.arguments;
        }
        const std::vector<store::ToolCall> made = message.tool_calls;
        for (std::size_t i = made.size(); i-- > 0;) {
            MessageRecord& result = history_.emplace_back();
            result.role = Role::tool;
            result.tool_call_id = made[i].id;
            result.content = calls[i].result;
        }
        return *this;
    }
    [[nodiscard]] std::uint32_t repeated() const { return repeated_turns(history_); }
    [[nodiscard]] std::string notice() const { return repetition_notice(history_); }
    std::vector<MessageRecord>& history() { return history_; }

  private:
    std::vector<MessageRecord> history_;
    int turns_ = 0;
};

TEST(S46LoopGuard, CountsTurnsThatAreAlikeInCallsAndResults) {
    Talk talk;
    EXPECT_EQ(talk.repeated(), 0U);
    EXPECT_EQ(talk.user().repeated(), 0U);
    EXPECT_EQ(talk.turn({{"ls", "{}", "a"}}).repeated(), 1U);
    EXPECT_EQ(talk.turn({{"ls", "{}", "a"}}).repeated(), 2U);
    EXPECT_EQ(talk.turn({{"ls", "{}", "b"}}).repeated(), 1U) << "another result is news";
    EXPECT_EQ(talk.turn({{"ls", R"({"path":"x"})", "b"}}).repeated(), 1U);
    EXPECT_EQ(talk.turn({{"ls", R"({"path":"x"})", "b"}, {"ls", "{}", "b"}}).repeated(), 1U);
    EXPECT_EQ(talk.turn({{"ls", R"({"path":"x"})", "b"}, {"ls", "{}", "b"}}).repeated(), 2U);
    EXPECT_EQ(talk.user().turn({{"ls", "{}", "b"}}).repeated(), 1U) << "asked anew";
}

TEST(S46LoopGuard, WhatGoesOnByItselfMayBeLookedAtAgain) {
    Talk talk;
    for (int i = 0; i < 30; ++i) {
        talk.turn({{"subagent_status", "{}", "running"}});
        EXPECT_EQ(talk.repeated(), 1U);
    }
}

TEST(S46LoopGuard, TellsTheModelFromTheFifthTurnOn) {
    Talk talk;
    for (std::uint32_t i = 1; i <= kRepeatsLimit; ++i) {
        talk.turn({{"execute", R"({"command":"false"})", "exit code 1"}});
        EXPECT_EQ(talk.notice().empty(), i < kRepeatsNoticed) << i;
    }
    EXPECT_NE(talk.notice().find("20 times in a row"), std::string::npos) << talk.notice();
}

TEST(S46LoopGuard, AnUnansweredCallIsNoTurn) {
    Talk talk;
    talk.turn({{"ls", "{}", "a"}}).turn({{"ls", "{}", "a"}, {"ls", "{}", "a"}});
    talk.history().pop_back();
    EXPECT_EQ(talk.repeated(), 1U);
}

}  // namespace
}  // namespace ars::runs
