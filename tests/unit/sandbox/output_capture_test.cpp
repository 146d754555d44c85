#include "sandbox/output_capture.hpp"

#include "base/text.hpp"

#include <gtest/gtest.h>

namespace ars::sandbox {
namespace {

TEST(HeadTail, KeepsAShortTextAsItIs) {
    HeadTail text(10);
    text.append("12345");
    text.append("67890");
    const auto result = text.finish({});
    EXPECT_EQ(result.text, "1234567890");
    EXPECT_EQ(result.omitted, 0U);
}

TEST(HeadTail, CountsWhatItLeavesOutBetweenHeadAndTail) {
    HeadTail text(10);
    for (int i = 0; i < 1000; ++i) {
        text.append("abc");
    }
    const auto result = text.finish("/log");
    EXPECT_EQ(result.omitted, 2990U);
    EXPECT_EQ(result.text, "abcab\n[... 2990 bytes omitted; full text: /log ...]\nbcabc");
}

TEST(HeadTail, CutsBetweenCharacters) {
    HeadTail text(10);
    for (int i = 0; i < 20; ++i) {
        text.append("\xC3\xBC");  // two bytes each, and both halves are five bytes
    }
    const auto result = text.finish({});
    EXPECT_FALSE(result.lossy);
    EXPECT_EQ(result.omitted, 32U);
}

TEST(HeadTail, FloodOfContinuationBytesIsLossyButKept) {
    HeadTail text(10);
    text.append(std::string(100, '\x80'));
    const auto result = text.finish({});
    EXPECT_TRUE(result.lossy);
    EXPECT_LE(result.omitted, 96U);
}

TEST(OutputCapture, CharacterCutByTheOtherStreamStaysWholeInTheMergedText) {
    OutputCapture capture(100, nullptr, {});
    capture.append(1, "a\xE2\x82");
    capture.append(2, "error\n");
    capture.append(1, "\xAC\n");
    Outcome outcome;
    capture.finish(outcome);
    EXPECT_EQ(outcome.out, "a\xE2\x82\xAC\n");
    EXPECT_EQ(outcome.merged, "aerror\n\xE2\x82\xAC\n");
    EXPECT_FALSE(outcome.lossy);
}

TEST(OutputCapture, UnfinishedCharacterAtTheEndIsShown) {
    OutputCapture capture(100, nullptr, {});
    capture.append(1, "a\xE2\x82");
    Outcome outcome;
    capture.finish(outcome);
    EXPECT_TRUE(outcome.lossy);
    EXPECT_TRUE(base::is_utf8(outcome.merged));
    EXPECT_TRUE(outcome.merged.starts_with("a\xEF\xBF\xBD"));
}

}  // namespace
}  // namespace ars::sandbox
