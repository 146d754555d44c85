// ls, glob and grep as a model calls them.
#include "tests/unit/runtime/tools/tools_fixture.hpp"

#include <chrono>

namespace ars::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Search : public ToolsTest {
  protected:
    Search() {
        make_directory("work/d");
        put(work("a.py"), "import os\nprint('needle')\n");
        put(work("d/b.py"), "needle\nhay\nneedle needle\n");
        put(work("d/c.txt"), "hay\n");
    }
};

TEST_F(Search, C51LsShowsKindsSizesAndWhereLinksLead) {
    link("/etc/passwd", "work/l");
    const auto result = call("ls", "{}");
    EXPECT_THAT(result.text, StartsWith("/home/gem/user-data/work: 3 entries\na.py  26 bytes  2"));
    EXPECT_THAT(result.text, HasSubstr("\nd/\nl -> /etc/passwd (link)\n"));
}

TEST_F(Search, C72LsPagesALargeDirectoryWithItsTotal) {
    for (int i = 0; i < 1200; ++i) {
        put(work("d/n" + std::to_string(10'000 + i)), "");
    }
    const auto first = call("ls", R"({"path": "d"})");
    EXPECT_THAT(first.text, HasSubstr("1202 entries"));
    EXPECT_THAT(first.text, HasSubstr("[702 more: continue with after=\"n10497\"]"));
    const auto next = call("ls", R"({"path": "d", "after": "n10497", "limit": 2000})");
    EXPECT_THAT(next.text, HasSubstr("n10498"));
    EXPECT_THAT(next.text, HasSubstr("n11199"));
    EXPECT_THAT(next.text, Not(HasSubstr("more: continue")));
}

TEST_F(Search, LsOfTheTopShowsTheTwoRoots) {
    EXPECT_EQ(call("ls", R"({"path": "/"})").text, "/home/gem/user-data/\n/home/gem/skills/\n");
    EXPECT_THAT(call("ls", R"({"path": "missing"})").text, StartsWith("not_found"));
    EXPECT_THAT(call("ls", R"({"path": "a.py"})").text, StartsWith("not_a_directory"));
}

TEST_F(Search, GlobFindsSortedAbsolutePaths) {
    EXPECT_EQ(call("glob", R"({"pattern": "*.py"})").text, "/home/gem/user-data/work/a.py\n");
    EXPECT_EQ(
        call("glob", R"({"pattern": "**/*.py"})").text,
        "/home/gem/user-data/work/a.py\n/home/gem/user-data/work/d/b.py\n"
    );
    EXPECT_EQ(
        call("glob", R"({"pattern": "/home/gem/user-data/**/c.*"})").text,
        "/home/gem/user-data/work/d/c.txt\n"
    );
    EXPECT_THAT(call("glob", R"({"pattern": "*.rs"})").text, StartsWith("No file matches"));
    EXPECT_TRUE(call("glob", R"({"pattern": "/etc/*"})").is_error);
}

TEST_F(Search, K141TheTopSearchesExactlyTheReadableRoots) {
    put(skills("s.py"), "needle\n");
    EXPECT_EQ(
        call("glob", R"({"pattern": "**/*.py", "path": "/"})").text,
        "/home/gem/skills/s.py\n/home/gem/user-data/work/a.py\n/home/gem/user-data/work/d/b.py\n"
    );
    EXPECT_EQ(
        call("grep", R"({"pattern": "needle", "path": "/"})").text,
        "/home/gem/skills/s.py\n/home/gem/user-data/work/a.py\n/home/gem/user-data/work/d/b.py\n"
    );
}

TEST_F(Search, GrepHasThreeKindsOfAnswer) {
    EXPECT_EQ(
        call("grep", R"({"pattern": "needle"})").text,
        "/home/gem/user-data/work/a.py\n/home/gem/user-data/work/d/b.py\n"
    );
    EXPECT_EQ(
        call("grep", R"({"pattern": "needle", "path": "d/b.py", "output_mode": "content"})").text,
        "/home/gem/user-data/work/d/b.py:1: needle\n/home/gem/user-data/work/d/b.py:3: needle "
        "needle\n"
    );
    EXPECT_EQ(
        call("grep", R"({"pattern": "needle", "glob": "b*", "output_mode": "count"})").text,
        "/home/gem/user-data/work/d/b.py: 2\n"
    );
    EXPECT_THAT(call("grep", R"({"pattern": "a.*b"})").text, StartsWith("No line holds"));
}

TEST_F(Search, C70GrepSkipsFifosWithoutBlocking) {
    ASSERT_EQ(::mkfifo(work("d/fifo").c_str(), 0600), 0);
    const auto begin = std::chrono::steady_clock::now();
    const auto tree = call("grep", R"({"pattern": "needle"})");
    EXPECT_THAT(tree.text, HasSubstr("b.py"));
    EXPECT_THAT(tree.text, HasSubstr("[skipped, not_regular_file: d/fifo]"));
    EXPECT_THAT(
        call("grep", R"({"pattern": "needle", "path": "d/fifo"})").text,
        StartsWith("not_regular_file")
    );
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(Search, GrepSkipsBinariesAndDoesNotFollowLinks) {
    put(work("bin"), std::string("needle\0", 7));
    link("/etc", "work/etc");
    const auto result = call("grep", R"({"pattern": "needle"})");
    EXPECT_THAT(result.text, HasSubstr("[skipped 1 binary files]"));
    EXPECT_THAT(result.text, Not(HasSubstr("work/bin")));
    EXPECT_THAT(call("grep", R"({"pattern": "root:"})").text, StartsWith("No line holds"));
}

TEST_F(Search, GrepFindsATextAcrossTheBordersOfLongLines) {
    std::string line(64 * 1024 - 3, 'x');
    put(work("long"), line + "needle" + std::string(100'000, 'y') + "\nneedle\n");
    EXPECT_EQ(
        call("grep", R"({"pattern": "needle", "path": "long", "output_mode": "count"})").text,
        "/home/gem/user-data/work/long: 2\n"
    );
}

TEST_F(Search, GrepStopsWhenItsAnswerIsFull) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) {
        text += "needle\n";
    }
    put(work("many"), text);
    const auto result =
        call("grep", R"({"pattern": "needle", "path": "many", "output_mode": "content"})");
    EXPECT_THAT(result.text, HasSubstr("[incomplete"));
    EXPECT_LT(result.text.size(), 200'000U);
}

}  // namespace
}  // namespace ars::tools
