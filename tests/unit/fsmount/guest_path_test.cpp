#include "fsmount/guest_path.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace ars::fsmount {
namespace {

constexpr std::string_view kCwd = "/home/gem/user-data/projects/p1";

TEST(GuestPath, ARelativePathStartsAtTheWorkdir) {
    const auto path = parse_guest_path("a//./b/", kCwd);
    ASSERT_TRUE(path);
    EXPECT_EQ(path->root, GuestRoot::user_data);
    EXPECT_EQ(path->rest, "projects/p1/a/b");
    EXPECT_EQ(path->text(), "/home/gem/user-data/projects/p1/a/b");
}

TEST(GuestPath, AnAbsolutePathNamesItsRoot) {
    EXPECT_EQ(parse_guest_path("/home/gem/skills/x/SKILL.md", kCwd)->root, GuestRoot::skills);
    EXPECT_EQ(parse_guest_path("/home/gem/user-data", kCwd)->rest, "");
    EXPECT_EQ(parse_guest_path("//home/./gem/user-data//a", kCwd)->rest, "a");
}

TEST(GuestPath, K138APathOutsideTheRootsIsAnEscape) {
    for (const std::string_view path :
         {"/", "/etc/passwd", "/home/gem", "/home/gem/user-data2/x", "/home/gem/.cache", "/tmp/x"
         }) {
        const auto parsed = parse_guest_path(path, kCwd);
        ASSERT_FALSE(parsed) << path;
        EXPECT_EQ(parsed.error().code, "path_escape") << path;
        EXPECT_NE(parsed.error().message.find("/home/gem/user-data"), std::string::npos);
    }
}

TEST(GuestPath, K140DotDotIsRefusedWithAText) {
    for (const std::string_view path :
         {"..", "../x", "a/../b", "/home/gem/user-data/../skills/x"}) {
        const auto parsed = parse_guest_path(path, kCwd);
        ASSERT_FALSE(parsed) << path;
        EXPECT_EQ(parsed.error().code, "invalid_path");
        EXPECT_NE(parsed.error().message.find(".."), std::string::npos);
    }
    EXPECT_TRUE(parse_guest_path("..a/b..", kCwd));
}

TEST(GuestPath, EmptyNulAndEndlessPathsAreInvalid) {
    EXPECT_EQ(parse_guest_path("", kCwd).error().code, "invalid_path");
    EXPECT_EQ(parse_guest_path(std::string_view("a\0b", 3), kCwd).error().code, "invalid_path");
    EXPECT_EQ(parse_guest_path(std::string(5000, 'a'), kCwd).error().code, "invalid_path");
}

TEST(GuestPath, ErrorsNameTheGuestPathAndAStableCode) {
    EXPECT_EQ(file_error("/home/gem/user-data/x", ENOENT).code, "not_found");
    EXPECT_EQ(file_error("/home/gem/skills/x", EROFS).code, "read_only");
    EXPECT_EQ(file_error("/home/gem/user-data/x", ENOSPC).code, "no_space");
    EXPECT_EQ(file_error("/home/gem/user-data/x", EIO).code, "file_error");
    EXPECT_TRUE(
        file_error("/home/gem/user-data/x", EACCES).message.starts_with("/home/gem/user-data/x")
    );
}

TEST(GuestPath, NamesThatAreNoTextGoThereAndBack) {
    EXPECT_EQ(quote_path("plain ä.txt"), "plain ä.txt");
    EXPECT_EQ(quote_path("a\xff\nb"), "$'a\\xff\\x0ab'");
    EXPECT_EQ(quote_path("back\\slash"), "back\\slash") << "no reason to quote";
    EXPECT_EQ(quote_path("$'x'"), "$'$\\'x\\''") << "what looks quoted must be";
    for (int c = 1; c < 256; ++c) {
        for (const char* const around : {"", "'", "\\", "$'", "é", "\xc3"}) {
            const std::string name = around + std::string(1, static_cast<char>(c)) + around + "'";
            EXPECT_EQ(unquote_path(quote_path(name)).value_or("!"), name);
        }
    }
    EXPECT_EQ(unquote_path("$'\\377\\x4a\\n\\t'").value_or("!"), "\xffJ\n\t")
        << "printf %q of bash";
    for (const char* const bad : {"$'\\q'", "$'\\x'", "$'\\xzz'", "$'a\\'"}) {
        EXPECT_EQ(unquote_path(bad).error().code, "invalid_path") << bad;
    }
    EXPECT_EQ(parse_guest_path("$'a/\\xff'", kCwd)->rest, "projects/p1/a/\xff");
    EXPECT_EQ(parse_guest_path("$'a\\x00b'", kCwd).error().code, "invalid_path");
    EXPECT_EQ(parse_guest_path("$'\\x2e\\x2e/b'", kCwd).error().code, "invalid_path");
    EXPECT_EQ(parse_guest_path("./$'a'", kCwd)->rest, "projects/p1/$'a'");
}

}  // namespace
}  // namespace ars::fsmount
