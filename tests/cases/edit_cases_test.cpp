// C66, C75-C79: what the file tools write, and what they leave as it was.
#include "tests/cases/file_tool.hpp"

#include <filesystem>
#include <thread>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::tests {
namespace {

using namespace std::chrono_literals;

class EditCases : public FileToolCases {
  protected:
    // `ars tool` in a mount namespace of its own, after `preparation`, which sees the workspace as
    // $1.
    Answer tool_in_mounts(
        const std::string& preparation, const std::string& name, const json::object& arguments
    ) {
        std::vector<std::string> argv = {
            "unshare", "-m", "sh", "-c", preparation + "; shift; exec \"$@\"", "sh"
        };
        argv.push_back(workspace().path());
        for (const std::string& part : tool_argv(name)) {
            argv.push_back(part);
        }
        const Finished done = ars::tests::run(argv, {}, tool_stdin(name, arguments));
        EXPECT_EQ(done.err, "");
        return {done.exit_code, done.out};
    }
    [[nodiscard]] int temporary_files() {
        int count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(workspace().path())) {
            count += entry.path().filename().string().starts_with(".ars-") ? 1 : 0;
        }
        return count;
    }
    [[nodiscard]] unsigned mode_of(const std::string& name) {
        struct stat status{};
        return ::stat(path(name).c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
    }
};

TEST_P(EditCases, C66_ReadOnlyRootNeedsNoMoreThanTmp) {
    ARS_NEEDS_ROOT();
    ARS_NEEDS_MOUNTS();
    ARS_NEEDS("setpriv");
    options_.wrapper = {
        "unshare",
        "-m",
        "sh",
        "-c",
        "for d in /tmp \"$1\"; do mount --bind \"$d\" \"$d\" || exit; done; "
        "mount -o remount,bind,ro / && shift && "
        "exec setpriv --reuid 1000 --regid 1000 --clear-groups \"$@\"",
        "sh",
        workspace().path()
    };
    const json::object outcome = run("touch here; mktemp; mktemp -d; touch /usr/x");
    EXPECT_TRUE(holds(outcome, "stderr", "Read-only file system")) << json::serialize(outcome);
    EXPECT_TRUE(holds(outcome, "stdout", "/tmp.")) << json::serialize(outcome);
    EXPECT_TRUE(std::filesystem::exists(path("here")));
}

TEST_P(EditCases, C75_EmptyOldTextChangesNothing) {
    put("f", "abc");
    EXPECT_TRUE(refuses(edit("f", "", "X", true), "invalid_argument"));
    EXPECT_TRUE(refuses(edit("f", "", "X"), "invalid_argument"));
    EXPECT_TRUE(refuses(edit("f", " \t\n", "X", true), "no_match"));
    EXPECT_EQ(get("f"), "abc");
}

TEST_P(EditCases, C76_LineEndingsAndMarkStayOutsideTheSpan) {
    const std::string bom = "\xef\xbb\xbf";
    put("f", bom + "x\r\na\r\nb\r\nlf\nend");
    EXPECT_EQ(edit("f", "a\nb", "a\nc").code, 0);
    EXPECT_EQ(get("f"), bom + "x\r\na\r\nc\r\nlf\nend");
    ASSERT_TRUE(exited(run("printf 'a\\r\\nb\\r\\n' >g"), 0));
    EXPECT_EQ(edit("g", "a\nb", "a\nc").code, 0);
    EXPECT_TRUE(holds(run("od -An -c g"), "stdout", "a  \\r  \\n   c  \\r  \\n"));
}

TEST_P(EditCases, C77_TwoPlacesAreListedAndReplacementsAreLiteral) {
    const std::string block = "\tif (a) {\n\t\tx();\n\t}\n";
    put("f", block + "\n" + block);
    const Answer twice = edit("f", "\t\tx();\n", "y");
    EXPECT_TRUE(refuses(twice, "not_unique"));
    EXPECT_NE(twice.text.find("lines 2, 6"), std::string::npos) << twice.text;
    EXPECT_EQ(get("f"), block + "\n" + block);
    EXPECT_TRUE(refuses(edit("f", "        x();", "y"), "no_match")) << "tabs are no spaces";
    EXPECT_EQ(edit("f", "\n\n\tif (a) {\n\t\tx();", "\n\n\tif (a) {\n\t\t$& \\1 $1 %s;").code, 0);
    EXPECT_EQ(get("f"), block + "\n\tif (a) {\n\t\t$& \\1 $1 %s;\n\t}\n");
}

TEST_P(EditCases, C78_KilledWriteLeavesOldOrNewContent) {
    constexpr std::size_t kSize = 50U << 20U;
    put("big", std::string(kSize, 'o'));
    ASSERT_EQ(::chmod(path("big").c_str(), 0640), 0);
    const std::string arguments = tool_stdin(
        "write_file",
        {{"file_path", "big"}, {"content", std::string(kSize, 'n')}, {"overwrite", true}}
    );
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(ars::tests::run(tool_argv("write_file"), {}, arguments).exit_code, 0);
    const auto whole = std::chrono::steady_clock::now() - begin;
    int killed = 0;
    for (int i = 1; i <= 4; ++i) {
        put("big", std::string(kSize, 'o'));
        ASSERT_EQ(::chmod(path("big").c_str(), 0640), 0);
        Process writer(tool_argv("write_file"), {}, arguments);
        std::this_thread::sleep_for(whole * i / 5);
        killed += writer.running() ? 1 : 0;
        writer.signal(SIGKILL);
        (void)writer.wait();
        const std::string now = get("big");
        ASSERT_EQ(now.size(), kSize);
        ASSERT_TRUE(now == std::string(kSize, now.front())) << "half old, half new";
        EXPECT_EQ(mode_of("big"), 0640U);
    }
    EXPECT_GT(killed, 0);
    EXPECT_EQ(write("big", "whole", true).code, 0);
    EXPECT_EQ(get("big"), "whole");
    EXPECT_EQ(mode_of("big"), 0640U);
    EXPECT_EQ(temporary_files(), 0);
}

TEST_P(EditCases, C78_OtherMountsFullOnesAndReadOnlyTargets) {
    ARS_NEEDS_ROOT();
    ARS_NEEDS_MOUNTS();
    std::filesystem::create_directory(path("sub"));
    const std::string mount =
        "mount -t tmpfs -o size=1m,uid=1000,gid=1000,mode=0700 none \"$1/sub\"";
    EXPECT_EQ(
        tool_in_mounts(mount, "write_file", {{"file_path", "sub/f"}, {"content", "x"}}).text,
        "Wrote " + workspace().guest("sub/f") + " (1 bytes).\n"
    );
    const Answer full = tool_in_mounts(
        mount + "; echo old >\"$1/sub/f\"; chown 1000 \"$1/sub/f\"",
        "write_file",
        {{"file_path", "sub/f"}, {"content", std::string(2U << 20U, 'x')}, {"overwrite", true}}
    );
    EXPECT_TRUE(refuses(full, "no_space"));
    const Answer frozen = tool_in_mounts(
        mount + "; mount -o remount,ro \"$1/sub\"",
        "write_file",
        {{"file_path", "sub/f"}, {"content", "x"}}
    );
    EXPECT_TRUE(refuses(frozen, "read_only"));
    put("fixed", "old");
    ASSERT_EQ(::chmod(path("fixed").c_str(), 0444), 0);
    EXPECT_TRUE(refuses(write("fixed", "new", true), "permission_denied"));
    EXPECT_FALSE(exited(run("echo new >fixed"), 0)) << "the same verdict from a shell";
    EXPECT_EQ(get("fixed"), "old");
    EXPECT_EQ(temporary_files(), 0);
}

TEST_P(EditCases, C78_LinkAsTheLastPartIsFollowedInside) {
    ASSERT_TRUE(exited(run("mkdir d; echo old >d/f; chmod 600 d/f; ln -s d/f l; ln -s d/new n"), 0)
    );
    EXPECT_EQ(write("l", "new", true).code, 0);
    EXPECT_EQ(write("n", "made").code, 0);
    EXPECT_EQ(text(run("readlink l n; cat d/f d/new"), "stdout"), "d/f\nd/new\nnewmade");
}

TEST_P(EditCases, C79_ForeignEncodingsAndEdgesAreKept) {
    // "int x; // <two characters>" twice, and a character whose second byte looks like "\".
    const std::string gbk = "int x; // \xc4\xe3\xba\xc3\r\nint y; // \x81\x5c\r\n";
    put("gbk", gbk);
    EXPECT_EQ(edit("gbk", "int y;", "long y;\nint z;").code, 0);
    EXPECT_EQ(get("gbk"), "int x; // \xc4\xe3\xba\xc3\r\nlong y;\r\nint z; // \x81\x5c\r\n");
    const std::string before = get("gbk");
    EXPECT_TRUE(refuses(edit("gbk", "\\", "/"), "decode_error")) << "half a character";
    EXPECT_TRUE(refuses(edit("gbk", "int x;", "int \xc3\xa4;"), "decode_error"));
    EXPECT_EQ(get("gbk"), before);
    EXPECT_TRUE(refuses(read("gbk"), "decode_error"));
    put("empty", "");
    EXPECT_EQ(read("empty").code, 0);
    EXPECT_TRUE(refuses(edit("empty", "a", "b"), "no_match"));
    EXPECT_EQ(write("empty", "", true).code, 0);
    EXPECT_EQ(get("empty"), "");
    put("unended", "a\nb");
    EXPECT_EQ(edit("unended", "b", "c").code, 0);
    EXPECT_EQ(get("unended"), "a\nc");
    put("nul", std::string("a\0b\n", 4));
    EXPECT_TRUE(refuses(edit("nul", "a", "b"), "decode_error"));
    EXPECT_TRUE(refuses(read("nul"), "binary_file"));
    const Answer raw = tool("read_file", {{"file_path", "nul"}, {"base64", true}});
    EXPECT_EQ(raw.text, "[base64 of 4 bytes from byte 0 on, of 4 bytes]\nYQBiCg==\n");
}

TEST_P(EditCases, K147_WhatFileToolsMakeIsPrivateAndReadableInTheScope) {
    const mode_t old = ::umask(0);
    EXPECT_EQ(write("made/deep/f", "text").code, 0);
    ::umask(0177);
    EXPECT_EQ(write("other/f", "text").code, 0);
    ::umask(old);
    EXPECT_EQ(
        text(
            run("stat -c '%a %u' made made/deep made/deep/f other other/f; cat made/deep/f"),
            "stdout"
        ),
        "700 1000\n700 1000\n600 1000\n700 1000\n600 1000\ntext"
    );
    ASSERT_TRUE(
        exited(run("echo '#!/bin/sh' >run; chmod 755 run; echo x >shared; chmod 664 shared"), 0)
    );
    EXPECT_EQ(write("run", "#!/bin/sh\necho ran\n", true).code, 0);
    EXPECT_EQ(edit("shared", "x", "y").code, 0);
    EXPECT_EQ(text(run("./run; stat -c %a run shared"), "stdout"), "ran\n755\n664\n");
}

ARS_INSTANTIATE_CASES(EditCases);

}  // namespace
}  // namespace ars::tests
