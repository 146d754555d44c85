// execute in a real scope, with the real mount plan.
#include "fsmount/mount_plan.hpp"
#include "tests/unit/runtime/tools/tools_fixture.hpp"

#include <unistd.h>

namespace ars::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Execute : public ToolsTest {
  protected:
    void SetUp() override {
        auto made = sandbox::make_sandbox(io_.get_executor(), {}, log_);
        ASSERT_TRUE(made) << made.error().message;
        sandbox_ = std::move(*made);
        // A workdir made by root would not be writable for gem.
        if (::geteuid() == 0) {
            (void)::chown(work("").c_str(), 1000, 1000);
        }
        use(*sandbox_, [this]() -> base::Result<sandbox::ScopeSpec> {
            auto plan = fsmount::make_mount_plan(*workspace_, {});
            if (!plan) {
                return std::unexpected(plan.error());
            }
            return sandbox::ScopeSpec{{}, std::move(*plan), "ars"};
        });
        if (const auto scope = run(environment_->scope()); !scope) {
            ASSERT_EQ(scope.error().message.find("step mounts"), std::string::npos)
                << "the plan can't be carried out: " << scope.error().message;
            GTEST_SKIP() << "no namespaces tier on this host: " << scope.error().message;
        }
    }
    void TearDown() override {
        if (sandbox_) {
            run(close());
        }
    }
    base::Task<bool> close() {
        co_await sandbox_->close();
        co_return true;
    }
    ToolResult sh(const std::string& command, int timeout = 30) {
        return call("execute", boost::json::object{{"command", command}, {"timeout", timeout}});
    }

    base::Log log_{STDERR_FILENO, base::LogLevel::off};
    std::unique_ptr<sandbox::Sandbox> sandbox_;
};

TEST_F(Execute, GivesMergedOutputAndTheExitCode) {
    const auto result = sh("echo out; echo err >&2; exit 3");
    EXPECT_FALSE(result.is_error);
    EXPECT_THAT(result.text, HasSubstr("out\n"));
    EXPECT_THAT(result.text, HasSubstr("err\n"));
    EXPECT_TRUE(result.text.ends_with("[exit code 3]")) << result.text;
    EXPECT_EQ(result.facts.at("exit_code"), 3);
    EXPECT_EQ(result.facts.at("status"), "exited");
    EXPECT_TRUE(result.facts.contains("duration_ms"));
    EXPECT_EQ(sh("true").text, "[exit code 0]");
}

TEST_F(Execute, RunsInTheWorkdirAndSharesFilesWithTheFileTools) {
    EXPECT_THAT(sh("pwd").text, StartsWith("/home/gem/user-data/work\n"));
    EXPECT_FALSE(sh("echo hello > made.txt").is_error);
    EXPECT_EQ(call("read_file", R"({"file_path": "made.txt"})").text, "     1\thello\n");
}

TEST_F(Execute, C32ATimeoutKeepsTheOutputAndSaysSo) {
    const auto result = sh("echo line1; echo e1 >&2; sleep 30", 1);
    EXPECT_TRUE(result.is_error);
    EXPECT_THAT(result.text, HasSubstr("line1"));
    EXPECT_THAT(result.text, HasSubstr("e1"));
    EXPECT_TRUE(result.text.ends_with("[timed out after 1 s; its processes were killed]"));
}

TEST_F(Execute, C01ABackgroundProcessIsNamedAndDoesNotHold) {
    const auto result = sh("sleep 1000 & echo done");
    EXPECT_THAT(result.text, StartsWith("done\n[1 background process left running:"));
    EXPECT_THAT(result.text, HasSubstr("sleep 1000"));
    EXPECT_TRUE(result.text.ends_with("[exit code 0]"));
}

TEST_F(Execute, LongOutputIsCutAndKeptWholeInAFile) {
    const auto result = sh("seq 200000");
    EXPECT_LE(result.text.size(), base::limits::kToolResultBytes);
    EXPECT_THAT(result.text, StartsWith("1\n2\n"));
    EXPECT_THAT(result.text, HasSubstr("200000\n[exit code 0]"));
    EXPECT_THAT(
        result.text, HasSubstr("/home/gem/user-data/work/outputs/large_tool_results/run_1_0.txt")
    );
    const auto whole = get(work("outputs/large_tool_results/run_1_0.txt"));
    EXPECT_EQ(whole.size(), 1'288'895U);
    EXPECT_TRUE(whole.ends_with("\n200000\n"));
}

TEST_F(Execute, ShortOutputLeavesNoFile) {
    EXPECT_EQ(sh("ls -A").text, "[exit code 0]");
    EXPECT_FALSE(exists(work("outputs")));
}

TEST_F(Execute, SeesOnlyTheDesignedTree) {
    const auto top = sh("ls -A /; ls -A /home /home/gem /root /run /mnt /work 2>&1").text;
    EXPECT_THAT(top, HasSubstr("usr"));
    EXPECT_THAT(top, Not(HasSubstr("lost+found")));
    EXPECT_THAT(top, HasSubstr("cannot access '/mnt'"));
    const auto write =
        sh("touch /usr/x /etc/x /home/gem/skills/x 2>&1; touch /tmp/x ~/x /dev/shm/x && echo ok");
    EXPECT_THAT(write.text, Not(HasSubstr("touch: cannot touch '/tmp")));
    EXPECT_THAT(write.text, HasSubstr("Read-only file system"));
    EXPECT_THAT(write.text, HasSubstr("ok\n"));
    EXPECT_THAT(sh("cat /etc/shadow; wc -c < /etc/shadow").text, HasSubstr("[exit code "));
    EXPECT_THAT(sh("cat /etc/shadow").text, Not(HasSubstr("root:")));
}

TEST_F(Execute, ToolsAreGemByNumberAndByName) {
    const auto result = sh("id; echo ~gem; ls -A / | grep -c text");
    EXPECT_THAT(
        result.text, HasSubstr("uid=1000(gem) gid=1000(gem) groups=1000(gem)\n/home/gem\n0\n")
    );
    EXPECT_THAT(
        sh("chmod u+w /etc/passwd; echo x >> /etc/passwd").text, HasSubstr("Read-only file system")
    );
    EXPECT_THAT(sh("tail -1 /etc/passwd").text, StartsWith("gem:x:1000:1000:"));
}

TEST_F(Execute, C102ShellAndFileToolAgreeAboutLinks) {
    put(skills("s.md"), "skill\n");
    ::chmod(skills("s.md").c_str(), 0644);
    EXPECT_FALSE(
        sh("ln -s /home/gem/skills/s.md s; ln -s /srv/repo/x r; echo mine > f; ln -s f l").is_error
    );
    for (const char* name : {"s", "r", "l"}) {
        const bool shell_reads = sh(std::string("cat ") + name).facts.at("exit_code") == 0;
        const auto tool = call("read_file", boost::json::object{{"file_path", name}});
        EXPECT_EQ(shell_reads, !tool.is_error) << name << ": " << tool.text;
    }
    EXPECT_NE(sh("echo x > s").facts.at("exit_code"), 0);
    EXPECT_THAT(
        call("write_file", R"({"file_path": "s", "content": "x", "overwrite": true})").text,
        StartsWith("read_only")
    );
}

TEST_F(Execute, ACommandThatCantBePassedIsRefused) {
    const auto result = sh(std::string(200'000, 'x'));
    EXPECT_TRUE(result.is_error);
    EXPECT_THAT(result.text, HasSubstr("write_file"));
    EXPECT_TRUE(call("execute", R"({"command": "a\u0000b"})").is_error);
    EXPECT_TRUE(call("execute", R"({"command": "true", "timeout": 3601})").is_error);
}

}  // namespace
}  // namespace ars::tools
