#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/tools/result_cap.hpp"
#include "tests/unit/runtime/tools/tools_fixture.hpp"

#include <chrono>
#include <set>
#include <string>

namespace ars::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReadFile : public ToolsTest {};

TEST_F(ReadFile, ShowsNumberedLines) {
    put(work("f"), "one\ntwo\r\nthree");
    const auto result = call("read_file", R"({"file_path": "f"})");
    EXPECT_FALSE(result.is_error);
    EXPECT_EQ(result.text, "     1\tone\n     2\ttwo\n     3\tthree\n");
    EXPECT_EQ(
        call("read_file", R"({"file_path": "/home/gem/user-data/work/f"})").text, result.text
    );
}

TEST_F(ReadFile, PagesNameTheNextOffset) {
    put(work("f"), "1\n2\n3\n4\n5\n");
    const auto page = call("read_file", R"({"file_path": "f", "offset": 1, "limit": 2})");
    EXPECT_EQ(page.text, "     2\t2\n     3\t3\n[more lines follow: continue with offset=3]");
    const auto last = call("read_file", R"({"file_path": "f", "offset": 3, "limit": 2})");
    EXPECT_EQ(last.text, "     4\t4\n     5\t5\n");
    const auto behind = call("read_file", R"({"file_path": "f", "offset": 5})");
    EXPECT_TRUE(behind.is_error);
    EXPECT_THAT(behind.text, HasSubstr("has 5 lines"));
}

TEST_F(ReadFile, AnEmptyFileGetsANotice) {
    put(work("f"), "");
    const auto result = call("read_file", R"({"file_path": "f"})");
    EXPECT_FALSE(result.is_error);
    EXPECT_THAT(result.text, HasSubstr("empty"));
}

TEST_F(ReadFile, LongLinesAreShownInPartsAtCodePoints) {
    std::string line;
    for (int i = 0; i < 4000; ++i) {
        line += "\xc3\xa4";
    }
    put(work("f"), line + "\nend\n");
    const auto result = call("read_file", R"({"file_path": "f"})");
    EXPECT_TRUE(base::is_utf8(result.text));
    EXPECT_THAT(result.text, HasSubstr("\n   1.1\t"));
    EXPECT_THAT(result.text, HasSubstr("\n     2\tend\n"));
}

TEST_F(ReadFile, APageNeverExceedsTheCapOfAResult) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) {
        text += "line number " + std::to_string(i) + "\n";
    }
    put(work("f"), text);
    auto result = call("read_file", R"({"file_path": "f", "limit": 100000})");
    const std::string before = result.text;
    EXPECT_LE(before.size(), base::limits::kToolResultBytes);
    EXPECT_THAT(before, HasSubstr("continue with offset="));
    result = run(cap_result(std::move(result), *environment_, "run:1:0"));
    EXPECT_EQ(result.text, before) << "K144: its own result is never evicted to a file";
    EXPECT_FALSE(exists(work("outputs")));

    put(work("one-line"), std::string(3'000'000, 'x'));
    const auto wide = call("read_file", R"({"file_path": "one-line"})");
    EXPECT_LE(wide.text.size(), base::limits::kToolResultBytes);
    EXPECT_THAT(wide.text, HasSubstr("longer than a page"));
}

TEST_F(ReadFile, C71AHugeSparseFileIsAnsweredAtOnceInBoundedMemory) {
    const base::Fd file(::open(work("big").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(file.get(), 200LL << 30), 0);
    const auto zeros = call("read_file", R"({"file_path": "big", "limit": 10})");
    EXPECT_TRUE(zeros.is_error);
    EXPECT_THAT(zeros.text, StartsWith("binary_file"));
    EXPECT_THAT(zeros.text, HasSubstr("214748364800 bytes"));
    EXPECT_THAT(zeros.text, HasSubstr("sparse"));
    std::string head;
    for (int i = 0; i < 5000; ++i) {
        head += "line " + std::to_string(i) + "\n";
    }
    ASSERT_EQ(::pwrite(file.get(), head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
    const auto text = call("read_file", R"({"file_path": "big", "limit": 10})");
    EXPECT_FALSE(text.is_error) << text.text;
    EXPECT_THAT(text.text, HasSubstr("    10\tline 9\n"));
    const auto far = call("read_file", R"({"file_path": "big", "offset": 1000000})");
    EXPECT_THAT(far.text, StartsWith("file_too_large"));
}

TEST_F(ReadFile, C79BinaryAndForeignEncodingsAreTypedErrors) {
    put(work("nul"), std::string("a\0b", 3));
    put(work("png"), "\x89PNG\r\n\x1a\n rest");
    put(work("gbk"), "int x; // \xc4\xe3\xba\xc3\r\n");
    EXPECT_THAT(call("read_file", R"({"file_path": "nul"})").text, StartsWith("binary_file"));
    EXPECT_THAT(call("read_file", R"({"file_path": "png"})").text, HasSubstr("PNG image"));
    const auto gbk = call("read_file", R"({"file_path": "gbk"})");
    EXPECT_TRUE(gbk.is_error);
    EXPECT_THAT(gbk.text, StartsWith("decode_error"));
    EXPECT_THAT(gbk.text, HasSubstr("iconv"));
}

TEST_F(ReadFile, C70AFifoIsRefusedAtOnce) {
    ASSERT_EQ(::mkfifo(work("f").c_str(), 0600), 0);
    for (const char* name : {"read_file", "write_file", "edit_file"}) {
        const auto result = call(
            name,
            name == std::string("read_file") ? R"({"file_path": "f"})"
            : name == std::string("write_file")
                ? R"({"file_path": "f", "content": "x", "overwrite": true})"
                : R"({"file_path": "f", "old_string": "a", "new_string": "b"})"
        );
        EXPECT_TRUE(result.is_error) << name;
        EXPECT_THAT(result.text, StartsWith("not_regular_file")) << name;
    }
    EXPECT_THAT(call("read_file", R"({"file_path": "."})").text, HasSubstr("a directory"));
}

TEST_F(ReadFile, WrongArgumentsAreNamedOneByOne) {
    const auto result = call("read_file", R"({"path": "f", "offset": "x", "limit": 0})");
    EXPECT_TRUE(result.is_error);
    EXPECT_THAT(result.text, HasSubstr("file_path"));
    EXPECT_THAT(result.text, HasSubstr("path"));
    EXPECT_THAT(result.text, HasSubstr("offset"));
    EXPECT_THAT(result.text, HasSubstr("limit"));
}

TEST_F(ReadFile, C51K138K140PathsThatLeaveAreErrorTexts) {
    link("/etc/passwd", "work/l");
    EXPECT_THAT(call("read_file", R"({"file_path": "l"})").text, StartsWith("path_escape"));
    EXPECT_THAT(
        call("read_file", R"({"file_path": "/etc/passwd"})").text, StartsWith("path_escape")
    );
    EXPECT_THAT(call("read_file", R"({"file_path": "../x"})").text, StartsWith("invalid_path"));
    EXPECT_THAT(call("glob", R"({"pattern": "../*"})").text, HasSubstr("\"..\""));
    EXPECT_TRUE(call("glob", R"({"pattern": "../*"})").is_error);
}

TEST(ReadFileSpec, ToolsHaveAnObjectSchemaAndAnEffect) {
    const std::set<std::string> reading = {
        "read_file",
        "ls",
        "glob",
        "grep",
        "execute_output",
        "ask_user_question",
        "present_artifacts"
    };
    for (const auto& tool : make_file_tools()) {
        const ToolSpec& spec = tool->spec();
        EXPECT_EQ(spec.parameters.at("type"), "object") << spec.name;
        EXPECT_FALSE(spec.description.empty()) << spec.name;
        EXPECT_EQ(spec.effect == Effect::read_only, reading.contains(spec.name)) << spec.name;
    }
}

}  // namespace
}  // namespace ars::tools
