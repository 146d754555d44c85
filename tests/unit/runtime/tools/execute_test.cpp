// execute in a real scope, with the real mount plan.
#include "fsmount/mount_plan.hpp"
#include "runtime/tools/command_report.hpp"
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
    base::Task<bool> release() {
        co_await sandbox_->release({"alice", "thread", "default"});
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

TEST_F(Execute, C21ASoftWaitLeavesItRunningAndTheAnswerSaysHowToGoOn) {
    const auto started = call("execute", R"({"command": "echo one; sleep 6; echo ok", "wait": 3})");
    EXPECT_FALSE(started.is_error) << started.text;
    EXPECT_EQ(started.facts.at("status"), "running");
    const std::string id(started.facts.at("id").as_string());
    EXPECT_THAT(started.text, StartsWith("one\n[still running as command " + id));
    EXPECT_THAT(started.text, HasSubstr("execute_output {\"id\": \"" + id + "\", \"offset\": 4}"));
    const auto done =
        call("execute_output", boost::json::object{{"id", id}, {"offset", 4}, {"wait", 30}});
    EXPECT_EQ(done.text, "ok\n[exit code 0]");
    EXPECT_EQ(done.facts.at("exit_code"), 0);
    EXPECT_EQ(call("execute", R"({"command": "echo now", "wait": 30})").text, "now\n[exit code 0]");
}

TEST_F(Execute, WhatGoesOnHasItsFullTextInAFileAtOnce) {
    const auto started = call("execute", R"({"command": "echo one; sleep 60", "wait": 1})");
    const std::string path(started.facts.at("log_path").as_string());
    EXPECT_TRUE(path.ends_with("/outputs/large_tool_results/run_1_0.txt")) << path;
    std::string seen;
    for (int i = 0; i < 500 && seen.empty(); ++i) {
        call("execute_output", R"({"wait": 0})");  // lets the I/O go on
        seen = get(work("outputs/large_tool_results/run_1_0.txt"));
    }
    EXPECT_EQ(seen, "one\n");
    call("execute_kill", boost::json::object{{"id", started.facts.at("id")}});
}

TEST_F(Execute, C10KillEndsACommandAndMayBeRepeated) {
    const auto started = call("execute", R"({"command": "sleep 600 & sleep 600", "wait": 0})");
    const boost::json::object id{{"id", started.facts.at("id")}};
    EXPECT_THAT(call("execute_output", "{}").text, HasSubstr(": running, "));
    for (int i = 0; i < 2; ++i) {
        const auto killed = call("execute_kill", id);
        EXPECT_FALSE(killed.is_error);
        EXPECT_THAT(killed.text, HasSubstr("Nothing of it is running any more."));
        EXPECT_EQ(killed.facts.at("status"), "cancelled");
    }
    EXPECT_THAT(sh("cat /proc/[0-9]*/comm | grep -c sleep").text, StartsWith("0\n"));
}

TEST_F(Execute, InputIsWrittenPieceByPiece) {
    EXPECT_EQ(
        call("execute", R"({"command": "cat", "stdin": "given"})").text, "given\n[exit code 0]"
    );
    EXPECT_TRUE(call("execute", R"({"command": "cat", "stdin_open": true})").is_error);
    const auto started = call(
        "execute",
        R"({"command": "read -r x; echo \"got $x\"; cat", "wait": 0, "stdin_open": true})"
    );
    boost::json::object input{{"id", started.facts.at("id")}, {"text", "a\nb"}};
    EXPECT_EQ(call("execute_input", input).text, "3 bytes written.");
    input["close"] = true;
    EXPECT_FALSE(call("execute_input", input).is_error);
    const auto done =
        call("execute_output", boost::json::object{{"id", started.facts.at("id")}, {"wait", 30}});
    EXPECT_EQ(done.text, "got a\nba\nb\n[exit code 0]");
    const auto late = call("execute_input", input);
    EXPECT_TRUE(late.is_error);
    EXPECT_THAT(late.text, StartsWith("input_closed: "));
}

TEST_F(Execute, ATerminalIsGivenOnRequest) {
    EXPECT_THAT(sh("tty").text, HasSubstr("not a tty"));
    EXPECT_THAT(
        call("execute", R"({"command": "tty; echo $TERM", "terminal": true})").text,
        StartsWith("/dev/pts/0\r\nxterm\r\n")
    );
}

TEST_F(Execute, C23IdsOfAnotherScopeAreGoneWithItAndNeverMeanANewCommand) {
    const auto before = call("execute", R"({"command": "sleep 600", "wait": 0})");
    const boost::json::object id{{"id", before.facts.at("id")}};
    run(release());
    const auto fresh = call("execute", R"({"command": "sleep 600", "wait": 0})");
    EXPECT_THAT(fresh.text, HasSubstr("the sandbox was made anew"));
    EXPECT_NE(before.facts.at("id"), fresh.facts.at("id"));
    for (const char* name : {"execute_output", "execute_kill"}) {
        const auto gone = call(name, id);
        EXPECT_TRUE(gone.is_error);
        EXPECT_THAT(gone.text, HasSubstr("is gone with the restart or release of its sandbox"));
    }
    EXPECT_THAT(call("execute_output", "{}").text, HasSubstr(": running, "));
    const auto other = call("execute_output", R"({"id": "99"})");
    EXPECT_TRUE(other.is_error);
}

TEST_F(Execute, ListOfNothingSaysSo) {
    EXPECT_EQ(call("execute_output", "{}").text, "Nothing runs in the background.");
    sh("sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done");
    EXPECT_THAT(call("execute_output", "{}").text, HasSubstr("(sleep 1000)"));
}

TEST(CommandReport, NamesDeniedCallsWithAdvice) {
    sandbox::Outcome outcome;
    outcome.status = sandbox::OutcomeStatus::exited;
    outcome.denied = {"unshare", "bpf"};
    EXPECT_EQ(ending(outcome, 30), "[denied by the sandbox (EPERM): unshare, bpf]\n[exit code 0]");
    outcome.exit_code = 1;
    outcome.name_violation();
    EXPECT_THAT(ending(outcome, 30), StartsWith("[unshare, bpf denied by the sandbox (EPERM): "));
    EXPECT_THAT(ending(outcome, 30), HasSubstr("--no-sandbox"));
    EXPECT_TRUE(ending(outcome, 30).ends_with("]\n[exit code 1]"));
    EXPECT_FALSE(is_error(outcome));
    EXPECT_EQ(facts_of(outcome).at("denied").as_array().size(), 2U);
}

}  // namespace
}  // namespace ars::tools
