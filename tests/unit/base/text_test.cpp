#include "base/text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ars::base {
namespace {

constexpr std::string_view kBad = "\xEF\xBF\xBD";

TEST(Utf8, AcceptsEachLengthAtItsEdges) {
    for (const char* good : {
             "",
             "a",
             "\x7F",
             "\xC2\x80",          // U+0080
             "\xDF\xBF",          // U+07FF
             "\xE0\xA0\x80",      // U+0800
             "\xED\x9F\xBF",      // U+D7FF
             "\xEE\x80\x80",      // U+E000
             "\xF0\x90\x80\x80",  // U+10000
             "\xF4\x8F\xBF\xBF",  // U+10FFFF
         }) {
        EXPECT_TRUE(is_utf8(good)) << good;
        EXPECT_EQ(to_utf8(good).text, good);
        EXPECT_FALSE(to_utf8(good).lossy);
    }
}

TEST(Utf8, RefusesOverlongsSurrogatesAndWhatIsAboveUnicode) {
    for (const char* bad : {
             "\x80",              // a continuation alone
             "\xC0\x80",          // overlong NUL
             "\xC1\xBF",          // overlong
             "\xE0\x9F\xBF",      // overlong
             "\xED\xA0\x80",      // surrogate
             "\xF0\x8F\xBF\xBF",  // overlong
             "\xF4\x90\x80\x80",  // above U+10FFFF
             "\xF5\x80\x80\x80",
             "\xFF",
             "\xE2\x82",  // cut
         }) {
        EXPECT_FALSE(is_utf8(bad));
        EXPECT_TRUE(to_utf8(bad).lossy);
        EXPECT_TRUE(is_utf8(to_utf8(bad).text));
    }
}

TEST(Utf8, ReplacesOnlyTheBytesThatAreWrong) {
    EXPECT_EQ(to_utf8("a\xFFz").text, "a" + std::string(kBad) + "z");
    EXPECT_EQ(to_utf8("\xC3\xA9\x80").text, "\xC3\xA9" + std::string(kBad));
    // A cut sequence before a good character: the good one stays.
    EXPECT_EQ(
        to_utf8("\xE2\x82"
                "b")
            .text,
        std::string(kBad) + std::string(kBad) + "b"
    );
}

TEST(Utf8, KeepsNulBytes) {
    const std::string text("a\0b", 3);
    EXPECT_TRUE(is_utf8(text));
    EXPECT_EQ(to_utf8(text).text, text);
}

TEST(Utf8Cut, NeverSplitsACodePoint) {
    const std::string text =
        "a\xE2\x82\xAC"
        "b";  // a, euro sign, b: 1 + 3 + 1 bytes
    EXPECT_EQ(utf8_head(text, 5), text);
    EXPECT_EQ(utf8_head(text, 4), "a\xE2\x82\xAC");
    EXPECT_EQ(utf8_head(text, 3), "a");
    EXPECT_EQ(utf8_head(text, 2), "a");
    EXPECT_EQ(utf8_head(text, 0), "");
    EXPECT_EQ(utf8_tail(text, 5), text);
    EXPECT_EQ(
        utf8_tail(text, 4),
        "\xE2\x82\xAC"
        "b"
    );
    EXPECT_EQ(utf8_tail(text, 3), "b");
    EXPECT_EQ(utf8_tail(text, 0), "");
}

TEST(HeadAndTail, LeavesATextWithinTheBoundAlone) {
    EXPECT_EQ(head_and_tail("0123456789", 10, "/x"), "0123456789");
}

TEST(HeadAndTail, SaysHowMuchIsMissingAndWhereAllOfItIs) {
    EXPECT_EQ(
        head_and_tail("0123456789", 4, "/out/1.log"),
        "01\n[... 6 bytes omitted; full text: /out/1.log ...]\n89"
    );
    EXPECT_EQ(head_and_tail("0123456789", 5), "01\n[... 5 bytes omitted ...]\n789");
}

TEST(HeadAndTail, CountsTheBytesOfCutCharactersAsMissing) {
    // Ten euro signs, 30 bytes: 5 bytes of head hold one, 5 of tail hold one, 24 bytes are missing.
    std::string euros;
    for (int i = 0; i < 10; ++i) {
        euros += "\xE2\x82\xAC";
    }
    EXPECT_EQ(head_and_tail(euros, 10), "\xE2\x82\xAC\n[... 24 bytes omitted ...]\n\xE2\x82\xAC");
}

TEST(Trim, TakesBlanksFromBothEndsOnly) {
    EXPECT_EQ(trim(" \t a b \r\n"), "a b");
    EXPECT_EQ(trim("a"), "a");
    EXPECT_EQ(trim(" \n"), "");
    EXPECT_EQ(trim(""), "");
}

TEST(Text, Base64IsPadded) {
    EXPECT_EQ(to_base64(""), "");
    EXPECT_EQ(to_base64("f"), "Zg==");
    EXPECT_EQ(to_base64("fo"), "Zm8=");
    EXPECT_EQ(to_base64("foo"), "Zm9v");
    EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
    EXPECT_EQ(to_base64("\xFF\xFE"), "//4=");
}

}  // namespace
}  // namespace ars::base
