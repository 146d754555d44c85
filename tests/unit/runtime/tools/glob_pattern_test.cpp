#include "runtime/tools/glob_pattern.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace ars::tools {
namespace {

bool matches(const char* pattern, const char* path) {
    const auto parsed = GlobPattern::parse(pattern);
    EXPECT_TRUE(parsed) << pattern;
    return parsed && parsed->matches(path);
}

TEST(GlobPattern, WildcardsStayWithinAName) {
    EXPECT_TRUE(matches("*.csv", "a.csv"));
    EXPECT_FALSE(matches("*.csv", "d/a.csv"));
    EXPECT_TRUE(matches("a?c", "abc"));
    EXPECT_TRUE(matches(
        "a?c",
        "a\xc3\xa4"
        "c"
    ));
    EXPECT_FALSE(matches("a?c", "ac"));
    EXPECT_TRUE(matches("[a-c]x", "bx"));
    EXPECT_FALSE(matches("[!a-c]x", "bx"));
    EXPECT_TRUE(matches("[", "["));
    EXPECT_TRUE(matches("\\*", "*"));
    EXPECT_FALSE(matches("\\*", "a"));
}

TEST(GlobPattern, DoubleStarsMatchAnyDirectories) {
    for (const char* path : {"a.py", "d/a.py", "d/e/f/a.py"}) {
        EXPECT_TRUE(matches("**/*.py", path)) << path;
    }
    EXPECT_TRUE(matches("src/**/test_*.c", "src/test_a.c"));
    EXPECT_TRUE(matches("src/**/x/**/y", "src/x/x/b/y"));
    EXPECT_FALSE(matches("src/**/test_*.c", "lib/test_a.c"));
    EXPECT_TRUE(matches("**", "a/b/c"));
    EXPECT_TRUE(matches("a/**", "a/b"));
}

TEST(GlobPattern, BracesGiveAlternatives) {
    EXPECT_TRUE(matches("*.{c,h}", "a.h"));
    EXPECT_TRUE(matches("{src,lib/{a,b}}/*", "lib/b/x"));
    EXPECT_FALSE(matches("*.{c,h}", "a.o"));
    EXPECT_TRUE(matches("{a}", "{a}")) << "braces without a comma are plain";
    EXPECT_FALSE(GlobPattern::parse("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"));
}

TEST(GlobPattern, K140DotDotIsRefused) {
    EXPECT_EQ(GlobPattern::parse("../*").error().code, "invalid_argument");
    EXPECT_EQ(GlobPattern::parse("{a,..}/b").error().code, "invalid_argument");
    EXPECT_FALSE(GlobPattern::parse(""));
}

TEST(GlobPattern, WalksMaySkipWhatCantMatch) {
    const auto pattern = GlobPattern::parse("src/*/x.c");
    EXPECT_TRUE(pattern->may_match_below("src"));
    EXPECT_TRUE(pattern->may_match_below("src/a"));
    EXPECT_FALSE(pattern->may_match_below("lib"));
    EXPECT_FALSE(pattern->may_match_below("src/a/b"));
    EXPECT_TRUE(GlobPattern::parse("a/**/b")->may_match_below("a/x/y/z"));
}

TEST(GlobPattern, ManyStarsDoNotExplode) {
    std::string pattern;
    for (int i = 0; i < 60; ++i) {
        pattern += "*a";
    }
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(matches_name(pattern + "b", std::string(250, 'a')));
    std::string parts = "**/";
    for (int i = 0; i < 30; ++i) {
        parts += "a/**/";
    }
    std::string path = "a";
    for (int i = 0; i < 60; ++i) {
        path += "/a";
    }
    EXPECT_FALSE(GlobPattern::parse(parts + "b")->matches(path));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

}  // namespace
}  // namespace ars::tools
