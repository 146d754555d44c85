#include "runtime/tools/text_edit.hpp"

#include "tests/unit/runtime/tools/tools_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ars::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kBytes = 1 << 20;

std::string edited(
    std::string_view file, std::string_view old_text, std::string_view new_text, bool all = false
) {
    const auto result = apply_edit(file, {old_text, new_text, all}, kBytes);
    return result ? result->text : "!" + result.error().code;
}

TEST(TextEdit, C75AnEmptyOldTextIsRefused) {
    EXPECT_EQ(edited("abc", "", "X", true), "!invalid_argument");
    EXPECT_EQ(edited("", "", "X"), "!invalid_argument");
    EXPECT_EQ(edited("abc", "b", "b"), "!invalid_argument");
}

TEST(TextEdit, C75WhiteSpaceMatchesOnlyItself) {
    EXPECT_EQ(edited("abc", "  ", "X", true), "!no_match");
    EXPECT_EQ(edited("a\tb", "a b", "X"), "!no_match");
}

TEST(TextEdit, C76ALineFeedMatchesCrLfAndTheSpanKeepsItsStyle) {
    EXPECT_EQ(edited("a\r\nb\r\n", "a\nb", "a\nc"), "a\r\nc\r\n");
    EXPECT_EQ(
        edited(
            "\xef\xbb\xbf"
            "a\r\nb\r\nz\n",
            "a\nb",
            "a\nc"
        ),
        "\xef\xbb\xbf"
        "a\r\nc\r\nz\n"
    );
    EXPECT_EQ(edited("a\r\nb\r\n", "b", "c\nd"), "a\r\nc\r\nd\r\n");
    EXPECT_EQ(edited("a\r\nb\nc\r\n", "b\nc", "x\ny"), "a\r\nx\ny\r\n")
        << "the span's own style counts";
    EXPECT_EQ(edited("a\r\nb", "\nb", "\nc"), "a\r\nc");
    EXPECT_EQ(edited("a\r\nb\r\n", "a\r\nb", "a\r\nc"), "a\r\nc\r\n");
    EXPECT_EQ(edited("a\nb", "a\r\nb", "x"), "!no_match");
}

TEST(TextEdit, C77TwoPlacesAreListedWithTheirLines) {
    const std::string file = "\tif (a) {\n\t\tx();\n\t}\n\n\tif (a) {\n\t\tx();\n\t}\n";
    const auto twice = apply_edit(file, {"\t\tx();\n", "y", false}, kBytes);
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, "not_unique");
    EXPECT_THAT(twice.error().message, HasSubstr("2 times, in lines 2, 6"));
    const auto all = apply_edit(file, {"x()", "y()", true}, kBytes);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->places, 2U);
    EXPECT_EQ(all->first_line, 2U);
    EXPECT_EQ(all->last_line, 6U);
    EXPECT_EQ(all->text, "\tif (a) {\n\t\ty();\n\t}\n\n\tif (a) {\n\t\ty();\n\t}\n");
    EXPECT_EQ(edited("aaa", "aa", "b"), "!not_unique") << "overlapping places count";
    EXPECT_EQ(edited("aaaa", "aa", "b", true), "bb");
}

TEST(TextEdit, C77TheNewTextIsLiteral) {
    EXPECT_EQ(edited("call(x)", "x", "$& $1 \\1 \\n %s"), "call($& $1 \\1 \\n %s)");
}

TEST(TextEdit, C79ForeignEncodingsKeepTheirBytesOrAreRefused) {
    const std::string gbk = "// \xc4\xe3\xba\xc3\r\nint A = 1;\r\n";
    EXPECT_EQ(edited(gbk, "A = 1;\n", "A = 2;\n"), "// \xc4\xe3\xba\xc3\r\nint A = 2;\r\n");
    // 0xc4 0x41 is one character: its second byte is no letter A.
    EXPECT_EQ(edited("\xc4\x41 x\n", "A x", "B"), "!decode_error");
    EXPECT_EQ(edited(gbk, "int", "\xc3\xa4"), "!decode_error");
    EXPECT_EQ(edited(std::string_view("a\0b", 3), "a", "b"), "!decode_error");
}

TEST(TextEdit, C79NoNewlineIsAddedAtTheEnd) {
    EXPECT_EQ(edited("a\nb", "b", "c"), "a\nc");
    EXPECT_EQ(edited("", "x", "y"), "!no_match");
    EXPECT_EQ(edited("abc", "abc", ""), "");
}

TEST(TextEdit, AMissTellsWhereTheTextProbablyIs) {
    const auto miss = apply_edit("a\n  foo(1);\n", {"foo(1);\n  bar();", "x", false}, kBytes);
    ASSERT_FALSE(miss);
    EXPECT_THAT(miss.error().message, HasSubstr("line 2"));
}

// Against the obvious way: for LF files the edit is a plain find and replace.
TEST(TextEdit, RandomEditsChangeNothingOutsideTheSpan) {
    std::mt19937 random(7);
    const auto text = [&](std::size_t size) {
        std::string out;
        for (std::size_t i = 0; i < size; ++i) {
            out += "ab\n"[random() % 3];
        }
        return out;
    };
    int replaced = 0;
    for (int round = 0; round < 3000; ++round) {
        const std::string file = text(random() % 30);
        const std::string old_text = text(1 + random() % 3);
        const std::string new_text = text(random() % 4);
        if (old_text == new_text) {
            continue;
        }
        std::string expected;
        std::size_t from = 0;
        for (std::size_t at; (at = file.find(old_text, from)) != std::string::npos;) {
            expected += file.substr(from, at - from) + new_text;
            from = at + old_text.size();
        }
        expected += file.substr(from);
        const bool found = file.find(old_text) != std::string::npos;
        replaced += found ? 1 : 0;
        ASSERT_EQ(edited(file, old_text, new_text, true), found ? expected : "!no_match");
        std::string crlf_file;
        std::string crlf_expected;
        for (const char c : file) {
            crlf_file += c == '\n' ? "\r\n" : std::string(1, c);
        }
        for (const char c : expected) {
            crlf_expected += c == '\n' ? "\r\n" : std::string(1, c);
        }
        if (file.find('\n') != std::string::npos) {
            ASSERT_EQ(
                edited(crlf_file, old_text, new_text, true), found ? crlf_expected : "!no_match"
            ) << file
              << "|" << old_text << "|" << new_text;
        }
    }
    EXPECT_GT(replaced, 500);
}

class EditFile : public ToolsTest {};

TEST_F(EditFile, EditsInPlaceAndKeepsTheMode) {
    put(work("run.sh"), "echo one\n");
    ::chmod(work("run.sh").c_str(), 0755);
    const auto result =
        call("edit_file", R"({"file_path": "run.sh", "old_string": "one", "new_string": "two"})");
    EXPECT_FALSE(result.is_error) << result.text;
    EXPECT_THAT(result.text, HasSubstr("line 1"));
    EXPECT_EQ(get(work("run.sh")), "echo two\n");
    EXPECT_EQ(mode_of(work("run.sh")), 0755U);
}

TEST_F(EditFile, C75ARefusedEditLeavesTheFileAlone) {
    put(work("f"), "abc");
    const auto result = call(
        "edit_file",
        R"({"file_path": "f", "old_string": "", "new_string": "X", "replace_all": true})"
    );
    EXPECT_TRUE(result.is_error);
    EXPECT_THAT(result.text, StartsWith("invalid_argument"));
    EXPECT_EQ(get(work("f")), "abc");
}

TEST_F(EditFile, SkillsCantBeEdited) {
    put(skills("f"), "abc");
    EXPECT_THAT(
        call(
            "edit_file",
            R"({"file_path": "/home/gem/skills/f", "old_string": "a", "new_string": "b"})"
        )
            .text,
        StartsWith("read_only")
    );
}

TEST(TextEdit, ReplacingEverywhereCannotGrowWithoutBound) {
    const std::string file(1000, 'a');
    const std::string big(5000, 'b');
    EXPECT_EQ(edited(file, "a", big, true), "!file_too_large");
    EXPECT_EQ(edited(file, "a", "bb", true), std::string(2000, 'b'));
}

TEST(TextEdit, APieceThatAlmostMatchesEverywhereEndsAtTheDeadline) {
    std::string file;
    std::string old_text;
    for (int i = 0; i < 400'000; ++i) {
        file += "a\n";
        old_text += i < 200'000 ? "a\n" : "";
    }
    const auto result = apply_edit(
        file,
        {old_text + "b", "x", false},
        kBytes,
        base::Deadline{std::chrono::steady_clock::time_point::min()}
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, "timed_out");
    EXPECT_EQ(edited(std::string(400'000, 'a'), std::string(200'000, 'a') + "b", "x"), "!no_match");
}

TEST(TextEdit, ManyPlacesAreListedUpToABound) {
    std::string file;
    for (int i = 0; i < 100'000; ++i) {
        file += "same\n";
    }
    const auto result = apply_edit(file, {"same", "x", false}, kBytes);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, "not_unique");
    EXPECT_THAT(result.error().message, HasSubstr("more than 20 times"));
    EXPECT_LT(result.error().message.size(), 400U);
}

}  // namespace
}  // namespace ars::tools
