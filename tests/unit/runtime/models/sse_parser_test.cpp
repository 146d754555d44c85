#include "runtime/models/sse_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ars::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> drain(SseParser& parser) {
    std::vector<std::string> out;
    while (const auto event = parser.next()) {
        out.push_back(
            (event->type.empty() ? "" : std::string(event->type) + "|") + std::string(event->data)
        );
    }
    return out;
}

std::vector<std::string> events_of(std::string_view bytes, bool finish = false) {
    SseParser parser(1000);
    parser.feed(bytes);
    if (finish) {
        parser.finish();
    }
    return drain(parser);
}

TEST(SseParser, GivesOneEventForEachEmptyLine) {
    EXPECT_THAT(events_of("data: a\n\ndata: b\n\n"), ElementsAre("a", "b"));
}

TEST(SseParser, JoinsDataLinesWithALineFeed) {
    EXPECT_THAT(events_of("data: a\ndata:\ndata: b\n\n"), ElementsAre("a\n\nb"));
}

TEST(SseParser, AcceptsCrLfAndLoneCrAsLineEnds) {
    EXPECT_THAT(events_of("data: a\r\n\r\ndata: b\r\rdata: c\n\n"), ElementsAre("a", "b", "c"));
}

TEST(SseParser, AcceptsDataWithoutASpaceAndKeepsASecondSpace) {
    EXPECT_THAT(events_of("data:{}\n\ndata:  x\n\n"), ElementsAre("{}", " x"));
}

TEST(SseParser, PassesOverCommentsUnknownFieldsAndEventsWithoutData) {
    EXPECT_THAT(
        events_of(": keep-alive\n\nretry: 5\nid: 7\nfoo\n\nevent: ping\n\ndata: x\n\n"),
        ElementsAre("x")
    );
}

TEST(SseParser, TellsTheTypeOfAnEvent) {
    EXPECT_THAT(events_of("event: error\ndata: x\n\ndata: y\n\n"), ElementsAre("error|x", "y"));
}

TEST(SseParser, DropsAByteOrderMark) {
    EXPECT_THAT(
        events_of("\xEF\xBB\xBF"
                  "data: x\n\n"),
        ElementsAre("x")
    );
}

TEST(SseParser, KeepsAnUnfinishedEventUntilTheStreamIsFinished) {
    EXPECT_THAT(events_of("data: a\n\ndata: [DONE]"), ElementsAre("a"));
    EXPECT_THAT(events_of("data: a\n\ndata: [DONE]", true), ElementsAre("a", "[DONE]"));
}

TEST(SseParser, GivesTheSameEventsForEveryCutOfTheBytes) {
    const std::string bytes =
        ": hi\r\n\r\ndata: one\r\ndata: two\r\n\r\nevent: e\ndata: three\n\n\rdata:four\r\r";
    const auto whole = events_of(bytes);
    ASSERT_THAT(whole, ElementsAre("one\ntwo", "e|three", "four"));
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        SseParser parser(1000);
        parser.feed(std::string_view(bytes).substr(0, cut));
        auto events = drain(parser);
        parser.feed(std::string_view(bytes).substr(cut));
        for (std::string& event : drain(parser)) {
            events.push_back(std::move(event));
        }
        EXPECT_EQ(events, whole) << "cut at " << cut;
    }
}

TEST(SseParser, StopsAtALineOrAnEventOverItsBound) {
    SseParser line(10);
    line.feed("data: 12345678901");
    EXPECT_THAT(drain(line), IsEmpty());
    EXPECT_TRUE(line.overflowed());
    SseParser event(10);
    event.feed("data:1234\ndata:1234\ndata:1234\n\n");
    EXPECT_THAT(drain(event), IsEmpty());
    EXPECT_TRUE(event.overflowed());
    SseParser many(10);
    many.feed("data:1\n\ndata:2\n\ndata:3\n\n");
    EXPECT_THAT(drain(many), ElementsAre("1", "2", "3"));
    EXPECT_FALSE(many.overflowed());
}

}  // namespace
}  // namespace ars::models
