#include "tests/unit/runtime/tools/tools_fixture.hpp"

#include <boost/json/serialize.hpp>

namespace ars::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WriteFile : public ToolsTest {};

TEST_F(WriteFile, WritesBelowTheWorkdirAndReportsTheBytes) {
    const auto result = call("write_file", R"({"file_path": "a/b.md", "content": "text"})");
    EXPECT_FALSE(result.is_error) << result.text;
    EXPECT_EQ(get(work("a/b.md")), "text");
    EXPECT_EQ(result.facts.at("bytes"), 4U);
    EXPECT_EQ(result.facts.at("path"), "/home/gem/user-data/work/a/b.md");
}

TEST_F(WriteFile, AnExistingFileIsKeptUnlessOverwriteIsSaid) {
    put(work("f"), "old");
    const auto refused = call("write_file", R"({"file_path": "f", "content": "new"})");
    EXPECT_TRUE(refused.is_error);
    EXPECT_THAT(refused.text, StartsWith("already_exists"));
    EXPECT_THAT(refused.text, HasSubstr("overwrite"));
    EXPECT_EQ(get(work("f")), "old");
    const auto done = call("write_file", R"({"file_path": "f", "content": "", "overwrite": true})");
    EXPECT_FALSE(done.is_error);
    EXPECT_EQ(get(work("f")), "");
}

TEST_F(WriteFile, ARerunThatFindsOtherBytesReplacesNothing) {
    const ToolResult first = call("write_file", R"({"file_path": "r.txt", "content": "mine"})");
    ASSERT_FALSE(first.is_error) << first.text;
    const ToolResult again = call(
        "write_file", R"({"file_path": "r.txt", "content": "yours", "overwrite": true})", true
    );
    EXPECT_TRUE(again.is_error);
    const ToolResult seen = call("read_file", R"({"file_path": "r.txt"})");
    EXPECT_NE(seen.text.find("mine"), std::string::npos) << seen.text;
}

TEST_F(WriteFile, ARerunThatFindsItsOwnBytesHasSucceeded) {
    put(work("f"), "same");
    EXPECT_FALSE(call("write_file", R"({"file_path": "f", "content": "same"})", true).is_error);
    EXPECT_TRUE(call("write_file", R"({"file_path": "f", "content": "diff"})", true).is_error);
    EXPECT_TRUE(call("write_file", R"({"file_path": "f", "content": "same"})", false).is_error);
    EXPECT_FALSE(call("write_file", R"({"file_path": "g", "content": "x"})", true).is_error);
    EXPECT_EQ(get(work("g")), "x");
}

TEST_F(WriteFile, K138SkillsAndPlacesOutsideAreRefused) {
    EXPECT_THAT(
        call("write_file", R"({"file_path": "/home/gem/skills/x", "content": ""})").text,
        StartsWith("read_only")
    );
    EXPECT_THAT(
        call("write_file", R"({"file_path": "/tmp/x", "content": ""})").text,
        StartsWith("path_escape")
    );
}

TEST_F(WriteFile, TheListOfTodosGoesIntoTheState) {
    const auto result = call(
        "write_todos",
        R"({"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]})"
    );
    EXPECT_FALSE(result.is_error);
    EXPECT_EQ(
        boost::json::serialize(result.state),
        R"({"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]})"
    );
    const auto wrong = call("write_todos", R"({"todos": [{"content": "a", "status": "done"}]})");
    EXPECT_TRUE(wrong.is_error);
    EXPECT_THAT(wrong.text, HasSubstr("in_progress"));
    EXPECT_TRUE(wrong.state.empty());
}

}  // namespace
}  // namespace ars::tools
