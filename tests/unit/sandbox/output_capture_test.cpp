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
    OutputCapture capture(100, 0, nullptr, {});
    capture.append(1, "a\xE2\x82");
    capture.append(2, "error\n");
    capture.append(1, "\xAC\n");
    Outcome outcome;
    capture.end();
    capture.describe(outcome);
    EXPECT_EQ(outcome.out, "a\xE2\x82\xAC\n");
    EXPECT_EQ(outcome.merged, "aerror\n\xE2\x82\xAC\n");
    EXPECT_FALSE(outcome.lossy);
}

TEST(OutputCapture, UnfinishedCharacterAtTheEndIsShown) {
    OutputCapture capture(100, 0, nullptr, {});
    capture.append(1, "a\xE2\x82");
    Outcome outcome;
    capture.end();
    capture.describe(outcome);
    EXPECT_TRUE(outcome.lossy);
    EXPECT_TRUE(base::is_utf8(outcome.merged));
    EXPECT_TRUE(outcome.merged.starts_with("a\xEF\xBF\xBD"));
}

TEST(OutputCapture, SnapshotLeavesAnUnfinishedCharacterForLater) {
    OutputCapture capture(100, 100, nullptr, {});
    capture.append(1, "a\xE2\x82");
    Outcome so_far;
    capture.describe(so_far);
    EXPECT_EQ(so_far.out, "a");
    EXPECT_EQ(so_far.merged, "a");
    EXPECT_FALSE(so_far.lossy);
    EXPECT_EQ(capture.window().read(0, 100).bytes, "a");
    capture.append(1, "\xAC");
    capture.end();
    EXPECT_EQ(capture.window().read(1, 100).bytes, "\xE2\x82\xAC");
}

TEST(OutputCapture, RawBytesAreKeptAsTheyCame) {
    OutputCapture capture(100, 0, nullptr, {});
    capture.append(1, std::string_view("a\xFF\0b", 4));
    capture.append(2, "e");
    capture.end();
    Outcome outcome;
    outcome.raw = true;
    capture.describe(outcome);
    EXPECT_EQ(outcome.raw_out, std::string("a\xFF\0b", 4));
    EXPECT_EQ(outcome.raw_err, "e");
}

TEST(OutputWindow, IsReadByOffsetInPages) {
    OutputWindow window(100);
    window.append("hello ");
    window.append("world");
    OutputPage page = window.read(0, 8);
    EXPECT_EQ(page.bytes, "hello wo");
    EXPECT_EQ(page.next_offset, 8U);
    EXPECT_EQ(page.total, 11U);
    page = window.read(page.next_offset, 8);
    EXPECT_EQ(page.bytes, "rld");
    page = window.read(page.next_offset, 8);
    EXPECT_EQ(page.bytes, "");
    EXPECT_EQ(page.next_offset, 11U);
    EXPECT_EQ(window.read(5000, 8).next_offset, 11U) << "nothing is there yet";
}

TEST(OutputWindow, SaysWhatIsTooOldToBeShown) {
    OutputWindow window(10);
    for (int i = 0; i < 100; ++i) {
        window.append("0123456789abc");
        EXPECT_LE(window.size(), 20U);
    }
    const OutputPage page = window.read(0, 100);
    EXPECT_EQ(page.total, 1300U);
    EXPECT_EQ(page.dropped, page.offset);
    EXPECT_GE(page.bytes.size(), 10U);
    EXPECT_TRUE(page.bytes.ends_with("3456789abc"));
    EXPECT_EQ(page.next_offset, 1300U);
}

TEST(OutputWindow, PageEndsBetweenCharactersButNeverStandsStill) {
    OutputWindow window(100);
    window.append("a\xE2\x82\xAC z");
    EXPECT_EQ(window.read(0, 3).bytes, "a");
    EXPECT_EQ(window.read(1, 3).bytes, "\xE2\x82\xAC");
    EXPECT_EQ(window.read(1, 2).bytes.size(), 2U);
}

}  // namespace
}  // namespace ars::sandbox
