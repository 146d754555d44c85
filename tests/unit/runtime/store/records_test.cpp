#include "runtime/store/records.hpp"

#include <gtest/gtest.h>

namespace ars::store {
namespace {

TEST(Records, StatusesHaveTheNamesOfTheOuterSurface) {
    EXPECT_STREQ(to_string(RunStatus::cancel_requested), "cancel_requested");
    EXPECT_STREQ(to_string(RunType::subagent), "subagent");
    EXPECT_STREQ(to_string(ThreadStatus::archived), "archived");
    EXPECT_STREQ(to_string(Role::tool), "tool");
}

TEST(Records, OnlyCompletedFailedAndCancelledAreTerminal) {
    EXPECT_TRUE(is_terminal(RunStatus::completed));
    EXPECT_TRUE(is_terminal(RunStatus::failed));
    EXPECT_TRUE(is_terminal(RunStatus::cancelled));
    EXPECT_FALSE(is_terminal(RunStatus::interrupted));
    EXPECT_FALSE(is_terminal(RunStatus::cancel_requested));
}

TEST(Records, EventIdsSurviveTheRoundTripThroughText) {
    for (const EventId id :
         {EventId{0, 0}, EventId{1700000000123, 7}, EventId{UINT64_MAX, UINT32_MAX}}) {
        EventId parsed;
        ASSERT_TRUE(parse_event_id(to_string(id), parsed)) << to_string(id);
        EXPECT_EQ(parsed, id);
    }
}

TEST(Records, TextThatIsNoEventIdIsRefusedAndLeavesTheResultAlone) {
    for (const char* text :
         {"",
          "-",
          "1",
          "1-",
          "-1",
          "1-2-3",
          "a-1",
          "1-a",
          " 1-2",
          "1-2 ",
          "+1-2",
          "0x1-2",
          "18446744073709551616-0",
          "1-4294967296"}) {
        EventId id{5, 6};
        EXPECT_FALSE(parse_event_id(text, id)) << text;
        EXPECT_EQ(id, (EventId{5, 6})) << text;
    }
}

}  // namespace
}  // namespace ars::store
