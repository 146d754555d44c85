#include "tests/unit/runtime/tools/tools_fixture.hpp"

namespace ars::tools {
namespace {

TEST_F(ToolsTest, K151RegularFilesAreArtifactsByTheirWholePaths) {
    put(user_data("work/report.md"), "done");
    put(user_data("top.txt"), "also");
    const ToolResult result =
        call("present_artifacts", R"({"filepaths": ["report.md", "/home/gem/user-data/top.txt"]})");
    EXPECT_FALSE(result.is_error) << result.text;
    EXPECT_EQ(
        result.state,
        boost::json::parse(
            R"({"artifacts": ["/home/gem/user-data/work/report.md", "/home/gem/user-data/top.txt"]})"
        )
    );
    EXPECT_NE(result.text.find("/home/gem/user-data/work/report.md"), std::string::npos);
}

TEST_F(ToolsTest, K151WhatIsNoRegularFileIsNoArtifactAndNoneOfTheCallIs) {
    put(user_data("work/report.md"), "done");
    for (const char* bad : {"missing.md", ".", "/etc/passwd", "../../../etc/passwd"}) {
        const ToolResult result =
            call("present_artifacts", {{"filepaths", boost::json::array{"report.md", bad}}});
        EXPECT_TRUE(result.is_error) << bad;
        EXPECT_TRUE(result.state.empty()) << bad;
    }
    EXPECT_TRUE(call("present_artifacts", R"({"filepaths": []})").is_error);
    EXPECT_TRUE(call("present_artifacts", R"({})").is_error);
}

}  // namespace
}  // namespace ars::tools
