#include "runtime/tools/environment.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/tools/result_cap.hpp"
#include "tests/unit/runtime/tools/tools_fixture.hpp"

namespace ars::tools {
namespace {

using ::testing::HasSubstr;

class EnvironmentTest : public ToolsTest {};

TEST_F(EnvironmentTest, K144ALongResultGoesToAFileWithHeadAndTailKept) {
    ToolResult result;
    result.text = "begin" + std::string(400 * 1024, 'x') + "end";
    const std::string whole = result.text;
    result = run(cap_result(std::move(result), *environment_, "0b8f:3:1"));
    EXPECT_LE(result.text.size(), base::limits::kToolResultBytes);
    EXPECT_TRUE(result.text.starts_with("begin"));
    EXPECT_TRUE(result.text.ends_with("end"));
    EXPECT_THAT(
        result.text, HasSubstr("/home/gem/user-data/work/outputs/large_tool_results/0b8f_3_1.txt")
    );
    EXPECT_EQ(get(work("outputs/large_tool_results/0b8f_3_1.txt")), whole);
}

TEST_F(EnvironmentTest, AShortResultIsOnlyMadeValidUtf8) {
    ToolResult result;
    result.text =
        "a\xff"
        "b";
    result = run(cap_result(std::move(result), *environment_, "c"));
    EXPECT_EQ(
        result.text,
        "a\xEF\xBF\xBD"
        "b"
    );
    EXPECT_FALSE(exists(work("outputs")));
}

TEST_F(EnvironmentTest, AReservedFileIsSeenOnlyWhenPublished) {
    const auto file = environment_->reserve_output_file("call");
    ASSERT_TRUE(file);
    ASSERT_TRUE(base::write_all(file->fd->get(), "log"));
    EXPECT_FALSE(exists(work("outputs")));
    ASSERT_TRUE(environment_->publish_output_file(*file));
    EXPECT_EQ(get(work("outputs/large_tool_results/call.txt")), "log");
    EXPECT_EQ(mode_of(work("outputs/large_tool_results/call.txt")), 0600U);
}

TEST_F(EnvironmentTest, TwoOutputFilesOfOneNameDoNotMix) {
    const auto first = environment_->make_output_file("x");
    const auto second = environment_->make_output_file("x");
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->guest_path, second->guest_path);
}

}  // namespace
}  // namespace ars::tools
