// One command from its start to the proof that nothing of it is left, on both I/O backends.
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <fstream>
#include <sstream>

#include <sys/stat.h>

namespace ars::sandbox::testing {
namespace {

class CommandRun : public ::testing::TestWithParam<IoBackend> {
  protected:
    void SetUp() override {
        if (const auto acquired = bench.acquire(); !acquired) {
            GTEST_SKIP() << "no namespaces tier on this host: " << acquired.error().message;
        }
    }
    // Processes in the scope besides its init, the keeper and shell that count, and what they start
    // to do so.
    int others() {
        const Outcome outcome = bench.sh(
            "n=0; for s in /proc/[0-9]*/stat; do read -r p c st pp rest < $s; "
            "[ \"$c\" = '(ars-init)' ] || [ $p = $$ ] || [ \"$st\" = Z ] || n=$((n+1)); done; "
            "echo $n"
        );
        return std::atoi(outcome.out.c_str());
    }

    Bench bench{GetParam()};
};

TEST_P(CommandRun, ReportsExitCodesAndKeepsTheStreamsApart) {
    const Outcome outcome = bench.sh("echo out; echo err >&2; exit 7");
    EXPECT_EQ(outcome.status, OutcomeStatus::exited);
    EXPECT_EQ(outcome.exit_code, 7);
    EXPECT_EQ(outcome.shell_code(), 7);
    EXPECT_EQ(outcome.out, "out\n");
    EXPECT_EQ(outcome.err, "err\n");
    EXPECT_EQ(outcome.merged.size(), 8U);
    EXPECT_TRUE(outcome.background.empty());
}

TEST_P(CommandRun, C01_BackgroundChildDoesNotHoldTheCallAndIsListed) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome =
        bench.sh("sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done; echo done");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    EXPECT_EQ(outcome.out, "done\n");
    EXPECT_EQ(outcome.shell_code(), 0);
    ASSERT_EQ(outcome.background.size(), 1U);
    EXPECT_EQ(outcome.background[0].command, "sleep 1000");
    // The pid is the one that the next command sees and may end.
    const std::string pid = std::to_string(outcome.background[0].pid);
    EXPECT_EQ(
        bench
            .sh("cat /proc/" + pid + "/comm; kill " + pid + "; while [ -e /proc/" + pid +
                " ]; do sleep 0.01; done")
            .out,
        "sleep\n"
    );
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, BackgroundServerSurvivesWritingAfterItsCommandEnded) {
    bench.sh("(while :; do echo line; echo line >&2; sleep 0.02; done) & echo $! > /tmp/pid");
    EXPECT_EQ(bench.sh("sleep 0.5; kill -0 $(cat /tmp/pid) && echo alive").out, "alive\n");
}

TEST_P(CommandRun, C03_TimeoutEndsTheWholeTree) {
    const Outcome outcome =
        bench.sh("mkfifo /tmp/p; (while :; do echo c; sleep 0.2; done) >/tmp/p & cat /tmp/p", 1s);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_EQ(outcome.shell_code(), 124);
    EXPECT_TRUE(outcome.out.starts_with("c\n")) << outcome.out;
    EXPECT_TRUE(outcome.background.empty());
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, C04_TreeThatIgnoresTermIsKilled) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = bench.sh(
        "trap '' TERM HUP INT; (setsid bash -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; "
        "while :; do sleep 1; done",
        500ms
    );
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_EQ(outcome.detail, "");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, C05_ServerOfATimedOutCommandGivesItsPortBack) {
    const Outcome served =
        bench.sh("command -v python3 >/dev/null && python3 -m http.server 8123 & wait", 3s);
    if (served.status != OutcomeStatus::timed_out) {
        GTEST_SKIP() << "no python3 in the image";
    }
    EXPECT_EQ(
        bench.sh("(exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && echo open || echo closed").out,
        "closed\n"
    );
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, C06_DaemonThatHoldsStdoutDoesNotHoldTheCall) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = bench.sh(
        "setsid bash -c 'sleep 300 & until grep -q sleep /proc/$!/comm; do :; done' ; echo x"
    );
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    EXPECT_EQ(outcome.out, "x\n");
    ASSERT_EQ(outcome.background.size(), 1U);
    EXPECT_EQ(outcome.background[0].command, "sleep 300");
}

TEST_P(CommandRun, C07_OrphansAreReaped) {
    const Outcome outcome = bench.sh(
        "for i in $(seq 200); do (sleep 0.05 &) ; done; sleep 1; cat /proc/[0-9]*/stat | grep -c "
        "') Z'"
    );
    EXPECT_EQ(outcome.out, "0\n");
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, C10_C49_KillingPidOneOrTheServerFromInsideDoesNothing) {
    const std::string server = std::to_string(::getpid());
    const Outcome outcome =
        bench.sh("kill -9 1; kill -9 " + server + "; kill -STOP " + server + "; echo on");
    EXPECT_EQ(outcome.out, "on\n");
    EXPECT_EQ(bench.sh("echo $PPID").shell_code(), 0);
    EXPECT_TRUE(bench.scope()->alive());
}

TEST_P(CommandRun, CommandThatKillsItsKeeperIsEndedWithAllItStarted) {
    const Outcome outcome = bench.sh("sleep 500 & kill -9 $PPID; sleep 500");
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled);
    EXPECT_EQ(outcome.signal, SIGKILL);
    EXPECT_EQ(others(), 0);
    EXPECT_EQ(bench.sh("echo still works").out, "still works\n");
}

TEST_P(CommandRun, CommandThatKillsEverythingItCanLeavesAWorkingScope) {
    const Outcome outcome = bench.sh("sleep 500 & kill -9 -1");
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled);
    EXPECT_EQ(bench.sh("echo still works").out, "still works\n");
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, StoppedTreeIsEndedByItsTimeout) {
    const Outcome outcome = bench.sh("sleep 500 & kill -STOP $! $PPID $$", 500ms);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, C11_SignalStateIsCleanAndAPipeEndsQuietly) {
    const Outcome outcome =
        bench.sh("yes | head -1; echo ${PIPESTATUS[0]}; grep -E 'SigIgn|SigBlk' /proc/self/status");
    EXPECT_EQ(outcome.out, "y\n141\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    EXPECT_EQ(outcome.err, "");
}

TEST_P(CommandRun, C15_StdinIsAtItsEndUnlessGiven) {
    EXPECT_EQ(bench.sh("cat; echo end").out, "end\n");
    Command command = shell("cat; echo end");
    command.stdin_data = "given\n";
    EXPECT_EQ(bench.command(command).out, "given\nend\n");
    command = shell("wc -c");
    command.stdin_data = std::string(3'000'000, 'x');
    EXPECT_EQ(bench.command(command).out, "3000000\n");
    command = shell("head -c 1");
    command.stdin_data = std::string(3'000'000, 'x');
    EXPECT_EQ(bench.command(command).out, "x");
}

base::Task<void> run_into(std::shared_ptr<Scope> scope, int i, std::vector<Outcome>* outcomes) {
    const std::string id = std::to_string(i);
    (*outcomes)[static_cast<std::size_t>(i)] =
        co_await scope->run(shell("sleep 0.2; echo " + id + "; exit " + id));
}

base::Task<void> run_twelve(std::shared_ptr<Scope> scope, std::vector<Outcome>* outcomes) {
    base::TaskGroup group(co_await asio::this_coro::executor);
    for (int i = 0; i < 12; ++i) {
        group.spawn(run_into(scope, i, outcomes));
    }
    co_await group.join();
}

TEST_P(CommandRun, C22_TwelveParallelCommandsKeepTheirOwnOutputsAndCodes) {
    std::vector<Outcome> outcomes(12);
    bench.run_void(run_twelve(bench.scope(), &outcomes));
    for (int i = 0; i < 12; ++i) {
        const Outcome& outcome = outcomes[static_cast<std::size_t>(i)];
        EXPECT_EQ(outcome.out, std::to_string(i) + "\n");
        EXPECT_EQ(outcome.exit_code, i);
    }
}

TEST_P(CommandRun, C25_ThereIsNoControllingTerminal) {
    const Outcome outcome =
        bench.sh("read x </dev/tty; echo $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND");
    EXPECT_NE(outcome.err.find("No such device or address"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "0 noninteractive\n");
}

TEST_P(CommandRun, C30_InvalidUtf8IsReplacedAndSaid) {
    const Outcome outcome = bench.sh("printf 'a\\xff\\xf0\\x00b\\n'");
    EXPECT_TRUE(outcome.lossy);
    EXPECT_EQ(outcome.out, std::string("a\xEF\xBF\xBD\xEF\xBF\xBD\0b\n", 10));
    EXPECT_FALSE(bench.sh("printf 'gr\\xc3\\xbc\\xc3\\x9fe'").lossy);
    EXPECT_TRUE(bench.sh("head -c 100000 /dev/urandom").lossy);
}

TEST_P(CommandRun, C32_TimeoutKeepsTheOutputSoFar) {
    const Outcome outcome = bench.sh("echo line1; echo e1 >&2; sleep 30", 1s);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_EQ(outcome.out, "line1\n");
    EXPECT_EQ(outcome.err, "e1\n");
}

TEST_P(CommandRun, C14_FloodIsBoundedToHeadAndTailAndTheLogHasAllOfIt) {
    Command command = shell("seq 200000");
    command.capture_bytes = 2000;
    const std::string path = bench.workspace() + "/log";
    command.log =
        std::make_shared<base::Fd>(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    command.log_guest_path = "/home/gem/user-data/log";
    const Outcome outcome = bench.command(std::move(command));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(outcome.out.starts_with("1\n2\n"));
    EXPECT_TRUE(outcome.out.ends_with("199999\n200000\n"));
    EXPECT_EQ(outcome.omitted_bytes, 1'288'895U - 2000U);
    EXPECT_NE(outcome.out.find("full text: /home/gem/user-data/log"), std::string::npos);
    EXPECT_EQ(outcome.log_path, "/home/gem/user-data/log");
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_size, 1'288'895);
}

TEST_P(CommandRun, OutputIsSeenWhileTheCommandRuns) {
    Command command = shell("echo one; echo two >&2");
    std::string seen;
    command.on_output = [&](int stream, std::string_view bytes) {
        seen += std::to_string(stream) + ":" + std::string(bytes);
        return true;
    };
    bench.command(std::move(command));
    EXPECT_TRUE(seen == "1:one\n2:two\n" || seen == "2:two\n1:one\n") << seen;
}

TEST_P(CommandRun, FailedExecIsTypedAndHasTheShellsCode) {
    Command command = shell("");
    command.argv = {"no-such-program"};
    Outcome outcome = bench.command(command);
    EXPECT_EQ(outcome.status, OutcomeStatus::setup_failed);
    EXPECT_EQ(outcome.detail, "exec: No such file or directory");
    EXPECT_EQ(outcome.shell_code(), 127);
    command.argv = {"/etc/passwd"};
    outcome = bench.command(command);
    EXPECT_EQ(outcome.shell_code(), 126);
    command.argv = {"true"};
    command.cwd = "/no/such/directory";
    outcome = bench.command(command);
    EXPECT_EQ(outcome.shell_code(), 125);
    EXPECT_EQ(outcome.detail, "chdir: No such file or directory");
    EXPECT_EQ(others(), 0);
}

TEST_P(CommandRun, ScriptWithoutInterpreterLineRunsInTheShell) {
    bench.sh(
        "printf 'echo script $1\\n' > /home/gem/user-data/script; chmod +x "
        "/home/gem/user-data/script"
    );
    Command command = shell("");
    command.argv = {"/home/gem/user-data/script", "argument"};
    EXPECT_EQ(bench.command(command).out, "script argument\n");
}

TEST_P(CommandRun, LongArgumentsArriveWhole) {
    Command command = shell("");
    command.argv = {"bash", "-c", "echo ${#1}", "name", std::string(120'000, 'a')};
    EXPECT_EQ(bench.command(command).out, "120000\n");
    command.argv.back() = std::string(200'000, 'a');  // over the kernel's bound for one argument
    const Outcome outcome = bench.command(command);
    EXPECT_EQ(outcome.detail, "exec: Argument list too long");
    EXPECT_EQ(outcome.shell_code(), 125);
}

TEST_P(CommandRun, C84_CrashIsASignalAndLeavesNoCore) {
    const Outcome outcome = bench.sh("ulimit -c; cd /home/gem/user-data; kill -SEGV $$");
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled);
    EXPECT_EQ(outcome.signal, SIGSEGV);
    EXPECT_EQ(outcome.shell_code(), 139);
    EXPECT_EQ(outcome.out, "0\n");
    EXPECT_EQ(bench.sh("ls /home/gem/user-data").out, "");
}

base::Task<void> run_long(std::shared_ptr<Scope> scope, bool* aborted) {
    try {
        co_await scope->run(shell("trap '' TERM; sleep 500 & sleep 500"));
    } catch (const boost::system::system_error& error) {
        *aborted = error.code() == asio::error::operation_aborted;
    }
}

base::Task<void> cancel_soon(std::shared_ptr<Scope> scope, bool* aborted) {
    base::TaskGroup group(co_await asio::this_coro::executor);
    group.spawn(run_long(scope, aborted));
    co_await base::sleep_until(base::Deadline::after(300ms));
    group.cancel_all();
    co_await group.join();
}

TEST_P(CommandRun, CancelledCallerLeavesOnlyAfterTheTreeIsGone) {
    bool aborted = false;
    bench.run_void(cancel_soon(bench.scope(), &aborted));
    EXPECT_TRUE(aborted);
    EXPECT_EQ(others(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Backends,
    CommandRun,
    ::testing::Values(IoBackend::automatic, IoBackend::epoll),
    [](const auto& info) { return info.param == IoBackend::epoll ? "epoll" : "automatic"; }
);

class ForkBomb : public ::testing::Test {};

TEST_F(ForkBomb, C08_IsBoundedSaidAndEndedByItsTimeout) {
    Bench bench;
    bench.policy().processes = 60;
    ARS_NEEDS_SCOPES(bench);
    const Outcome outcome = bench.sh("bomb() { bomb | bomb & }; bomb; sleep 60", 2s);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_NE(outcome.err.find("Resource temporarily unavailable"), std::string::npos);
    EXPECT_EQ(bench.sh("echo ok").out, "ok\n");
}

TEST_F(ForkBomb, C09_FullScopeNamesTheCauseAndDoesNotTouchAnother) {
    Bench bench;
    bench.policy().processes = 20;
    ARS_NEEDS_SCOPES(bench);
    Command filler = shell("");
    filler.argv = {
        "sh", "-c", "for i in $(seq 40); do sleep 100 & done"
    };  // sh does not try again, as bash does
    bench.command(std::move(filler));
    const Outcome full = bench.sh("true");
    EXPECT_EQ(full.status, OutcomeStatus::setup_failed);
    EXPECT_NE(full.detail.find("process limit"), std::string::npos) << full.detail;
    EXPECT_EQ(bench.command(shell("echo free"), "other").out, "free\n");
}

}  // namespace
}  // namespace ars::sandbox::testing
