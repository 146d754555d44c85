#include "runtime/agents/slug.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ars::agents {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Slug, IsMadeFromANameByLowerCaseAndDashes) {
    EXPECT_EQ(make_slug("Data Analyst!"), "data-analyst");
    EXPECT_EQ(make_slug("--A_b.C--"), "a_b-c");
    EXPECT_EQ(make_slug(std::string(70, 'x')), std::string(56, 'x'));
    EXPECT_EQ(make_slug(std::string(55, 'x') + "!yz"), std::string(55, 'x'))
        << "no dash at the cut";
    EXPECT_THAT(make_slug("\xe5\xad\x90"), MatchesRegex("agent-[0-9a-f]+"));
    EXPECT_NE(make_slug(""), make_slug(""));
}

TEST(Slug, TakenOnesGetANumberWithinTheBound) {
    std::set<std::string, std::less<>> used = {"a", "a-2", std::string(80, 'x')};
    const auto taken = [&used](std::string_view slug) { return used.contains(slug); };
    EXPECT_EQ(free_slug("b", taken), "b");
    EXPECT_EQ(free_slug("a", taken), "a-3");
    EXPECT_EQ(free_slug(std::string(80, 'x'), taken), std::string(78, 'x') + "-2");
}

TEST(Slug, PathWordsOfTheApiAndBadCharactersAreRefusedWithARemedy) {
    EXPECT_EQ(check_slug("data-analyst_2"), "");
    for (const char* word : {"backends", "default", "runs", "requests", "thread"}) {
        EXPECT_THAT(check_slug(word), HasSubstr("path word of the API")) << word;
    }
    EXPECT_THAT(check_slug("Data Analyst"), HasSubstr("write \"data-analyst\""));
    EXPECT_THAT(check_slug("../x"), HasSubstr("is not a slug"));
    EXPECT_THAT(check_slug(""), HasSubstr("empty"));
    EXPECT_EQ(check_slug(std::string(80, 'x')), "");
    EXPECT_THAT(check_slug(std::string(81, 'x')), HasSubstr("at most 80"));
}

}  // namespace
}  // namespace ars::agents
