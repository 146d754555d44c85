// Commands that go on by themselves: found by id, read by offset, fed, resized, limited and ended,
// on both I/O backends.
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <sys/ioctl.h>

namespace ars::sandbox::testing {
namespace {

class Started : public ::testing::TestWithParam<IoBackend> {
  protected:
    void SetUp() override {
        if (const auto acquired = bench.acquire(); !acquired) {
            GTEST_SKIP() << "no namespaces tier on this host: " << acquired.error().message;
        }
    }
    std::shared_ptr<Process> start(Command command) {
        auto started = bench.run(bench.scope()->start(std::move(command)));
        if (!started) {
            throw std::runtime_error(started.error().message);
        }
        return *started;
    }
    std::shared_ptr<Process> start(const std::string& text) { return start(shell(text)); }
    bool wait(const std::shared_ptr<Process>& process, base::milliseconds limit = 20s) {
        return bench.run(process->wait(base::Deadline::after(limit)));
    }
    // Output may lag behind what caused it: looks until it is there.
    std::string output_with(const std::shared_ptr<Process>& process, const std::string& wanted) {
        std::string seen;
        for (int i = 0; i < 500 && seen.find(wanted) == std::string::npos; ++i) {
            bench.run_void(base::sleep_until(base::Deadline::after(20ms)));
            seen = process->read(0, 100'000).bytes;
        }
        return seen;
    }
    base::Result<void> write(const std::shared_ptr<Process>& process, std::string bytes) {
        return bench.run(process->write(std::move(bytes), base::Deadline::after(10s)));
    }
    static Command with_input(const std::string& text) {
        Command command = shell(text);
        command.stdin_open = true;
        return command;
    }
    static Command with_terminal(const std::string& text) {
        Command command = shell(text);
        command.terminal = TerminalSize{30, 100};
        return command;
    }

    Bench bench{GetParam()};
};

TEST_P(Started, C21_GoesOnPastASoftWaitAndIsPolledByOffset) {
    const auto process = start("echo one; sleep 1.5; echo ok");
    EXPECT_EQ(process->id(), "1");
    EXPECT_EQ(output_with(process, "one\n"), "one\n");
    EXPECT_FALSE(wait(process, 100ms));
    EXPECT_TRUE(process->running());
    EXPECT_EQ(process->outcome().out, "one\n");
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().status, OutcomeStatus::exited);
    EXPECT_EQ(process->outcome().exit_code, 0);
    EXPECT_EQ(process->outcome().out, "one\nok\n");
    const OutputPage page = process->read(4, 100);
    EXPECT_EQ(page.bytes, "ok\n");
    EXPECT_EQ(page.next_offset, 7U);
}

TEST_P(Started, C23_IsFoundByItsIdOnly) {
    const auto first = start("true");
    const auto second = start("sleep 60");
    EXPECT_EQ(bench.scope()->find("1"), first);
    EXPECT_EQ(bench.scope()->find("2"), second);
    for (const char* id : {"3", "0", "", "x", "01", "-1"}) {
        EXPECT_EQ(bench.scope()->find(id), nullptr) << id;
    }
    EXPECT_EQ(bench.scope()->processes().size(), 2U);
    EXPECT_TRUE(wait(first));
    EXPECT_EQ(bench.scope()->find("1"), first) << "an ended one is remembered";
}

TEST_P(Started, C10_KillReturnsWhenNothingIsAliveAndMayBeRepeated) {
    const auto process = start("trap '' TERM; sleep 600 & echo $$ $!; wait; wait");
    const std::string pids = output_with(process, "\n");
    bench.run_void(process->kill());
    EXPECT_FALSE(process->running());
    EXPECT_EQ(process->outcome().status, OutcomeStatus::cancelled);
    EXPECT_EQ(
        bench
            .sh("for p in " + pids.substr(0, pids.size() - 1) +
                "; do [ -e /proc/$p ] && echo alive; done; echo checked")
            .out,
        "checked\n"
    );
    bench.run_void(process->kill());
    EXPECT_EQ(process->outcome().status, OutcomeStatus::cancelled);
}

TEST_P(Started, KillingACommandThatIsOverEndsWhatItLeft) {
    const auto process =
        start("sleep 600 & until grep -q sleep /proc/$!/comm; do :; done; echo out");
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().background.size(), 1U);
    EXPECT_EQ(bench.run(bench.scope()->background()).size(), 1U);
    bench.run_void(process->kill());
    EXPECT_EQ(process->outcome().status, OutcomeStatus::exited) << "it had ended by itself";
    EXPECT_TRUE(bench.run(bench.scope()->background()).empty());
    EXPECT_EQ(process->read(0, 10).bytes, "out\n");
}

TEST_P(Started, HardTimeLimitEndsACommandThatNobodyWatches) {
    Command command = shell("echo begun; sleep 600");
    command.timeout = 500ms;
    const auto process = start(std::move(command));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().status, OutcomeStatus::timed_out);
    EXPECT_EQ(process->outcome().out, "begun\n");
}

TEST_P(Started, InputIsWrittenPieceByPieceAndClosed) {
    const auto process = start(with_input("while read -r x; do echo \"got $x\"; done; echo end"));
    EXPECT_TRUE(write(process, "a\n"));
    EXPECT_EQ(output_with(process, "got a\n"), "got a\n");
    EXPECT_TRUE(write(process, "b\nc"));
    EXPECT_TRUE(process->running());
    process->close_input();
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "got a\ngot b\nend\n");
    const auto late = write(process, "d\n");
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, "input_closed");
}

TEST_P(Started, FirstInputMayComeWithTheStart) {
    Command command = with_input("cat");
    command.stdin_data = "first ";
    const auto process = start(std::move(command));
    EXPECT_TRUE(write(process, "second"));
    process->close_input();
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "first second");
}

TEST_P(Started, InputThatIsNotReadIsBounded) {
    const auto process = start(with_input("sleep 600"));
    EXPECT_FALSE(write(process, std::string(base::limits::kInputBytes + 1, 'x')));
    const auto soon = base::Deadline::after(200ms);
    EXPECT_TRUE(bench.run(process->write(std::string(1'000'000, 'x'), soon))) << "waits in memory";
    const auto full = bench.run(process->write("y", base::Deadline::after(200ms)));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, "input_full");
    bench.run_void(process->kill());
}

TEST_P(Started, WithoutOpenInputNothingCanBeWritten) {
    const auto process = start("cat; echo end; sleep 600");
    EXPECT_EQ(output_with(process, "end\n"), "end\n");
    const auto written = write(process, "x");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, "input_closed");
    EXPECT_FALSE(process->resize({10, 10}));
}

TEST_P(Started, InputNobodyReadsAnyMoreIsAnError) {
    const auto process = start(with_input("exec 0<&-; echo closed; sleep 600"));
    EXPECT_EQ(output_with(process, "closed\n"), "closed\n");
    EXPECT_FALSE(write(process, "x"));
}

TEST_P(Started, LongOutputIsReadFromTheEndOfWhatIsKept) {
    const auto process = start("seq 400000");  // 2.7 MB
    EXPECT_TRUE(wait(process));
    const OutputPage page = process->read(0, 10 * base::limits::kMiB);
    EXPECT_EQ(page.total, 2'688'895U);
    EXPECT_EQ(page.dropped, page.offset);
    EXPECT_GE(page.bytes.size(), base::limits::kPolledOutputBytes);
    EXPECT_LE(page.bytes.size(), 2 * base::limits::kPolledOutputBytes);
    EXPECT_TRUE(page.bytes.ends_with("\n399999\n400000\n"));
}

TEST_P(Started, C24_OutputStaysReadableAfterTheScopeIsGone) {
    const auto process = start("echo kept; sleep 600");
    EXPECT_EQ(output_with(process, "kept\n"), "kept\n");
    bench.run_void(bench.scope()->close());
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->read(0, 10).bytes, "kept\n");
    EXPECT_EQ(process->outcome().status, OutcomeStatus::signalled);
    bench.run_void(process->kill());
    EXPECT_EQ(bench.scope()->find("1"), nullptr) << "another scope, which knows nothing of it";
}

TEST_P(Started, LiveOutputCanBeHeldUpWithoutLoss) {
    std::size_t seen = 0;
    bool held = false;
    Command command = shell("head -c 3000000 /dev/zero; echo end >&2");
    command.on_output = [&](int, std::string_view bytes) {
        seen += bytes.size();
        return !std::exchange(held, seen > 100'000 && seen < 300'000);
    };
    const auto process = start(std::move(command));
    for (int i = 0; i < 2000 && !wait(process, 20ms); ++i) {
        process->resume_output();
    }
    EXPECT_FALSE(process->running());
    EXPECT_EQ(seen, 3'000'004U);
}

TEST_P(Started, HeldUpOutputDoesNotHoldUpTheTimeLimit) {
    Command command = shell("head -c 3000000 /dev/zero");
    command.timeout = 1s;
    command.on_output = [](int, std::string_view) { return false; };
    const auto process = start(std::move(command));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().status, OutcomeStatus::timed_out);
}

TEST_P(Started, ManyEndedCommandsAreNotAllRemembered) {
    for (std::size_t i = 0; i < base::limits::kRememberedCommands + 5; ++i) {
        EXPECT_TRUE(wait(start("true")));
    }
    EXPECT_LE(bench.scope()->processes().size(), base::limits::kRememberedCommands + 1);
    EXPECT_EQ(bench.scope()->find("1"), nullptr);
}

TEST_P(Started, UnknownProgramIsAnOutcome) {
    Command command = shell("");
    command.argv = {"no-such-program"};
    const auto process = start(std::move(command));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().status, OutcomeStatus::setup_failed);
    EXPECT_EQ(process->outcome().shell_code(), 127);
}

// --- terminals ----------------------------------------------------------------------------------

TEST_P(Started, C26_TerminalIsTheControllingOneAndItsModesCanBeSet) {
    const auto process = start(
        with_terminal("tty; stty size; echo $TERM; stty raw -echo && stty sane && echo modes; "
                      "echo hello > /dev/tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all")
    );
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "/dev/pts/0\r\n30 100\r\nxterm\r\nmodes\r\nhello\r\nall\r\n");
    EXPECT_EQ(process->outcome().err, "");
    EXPECT_EQ(process->outcome().exit_code, 0);
}

TEST_P(Started, TerminalTakesInputAndItsEnd) {
    const auto process = start(with_terminal("stty -echo; echo ready; cat; echo end"));
    EXPECT_EQ(output_with(process, "ready"), "ready\r\n");
    EXPECT_TRUE(write(process, "typed\n"));
    EXPECT_EQ(output_with(process, "typed"), "ready\r\ntyped\r\n");
    process->close_input();
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "ready\r\ntyped\r\nend\r\n");
}

TEST_P(Started, TerminalInterruptsItsForegroundProcess) {
    const auto process = start(with_terminal("echo ready; sleep 600"));
    EXPECT_EQ(output_with(process, "ready"), "ready\r\n");
    EXPECT_TRUE(write(process, "\x03"));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().shell_code(), 130);
}

TEST_P(Started, TerminalIsResizedAndTheCommandHearsOfIt) {
    const auto process =
        start(with_terminal("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done"
        ));
    EXPECT_EQ(output_with(process, "ready"), "ready\r\n");
    EXPECT_TRUE(process->resize({50, 132}));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "ready\r\n50 132\r\n");
}

TEST_P(Started, TerminalsEndIsNotHeldUpByABackgroundProcess) {
    const auto process = start(with_terminal("(trap '' HUP; sleep 600) & sleep 0.2; echo done"));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "done\r\n");
    EXPECT_EQ(process->outcome().exit_code, 0);
    bench.run_void(process->kill());
    EXPECT_TRUE(bench.run(bench.scope()->background()).empty());
}

TEST_P(Started, C28_NobodyTypesIntoATerminalButTheServer) {
    if (bench.sh("command -v python3").exit_code != 0) {
        GTEST_SKIP() << "no python3 in the image";
    }
    const auto process = start(with_terminal(
        "stty -echo; python3 -c '\n"
        "import fcntl, termios, ctypes, os\n"
        "try:\n"
        "    fcntl.ioctl(0, termios.TIOCSTI, b\"i\"); print(\"typed\")\n"
        "except OSError as e: print(e.errno)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "b = ctypes.create_string_buffer(b\"i\")\n"
        "for request in (termios.TIOCSTI, 0x541C):\n"
        "    r = libc.syscall(ctypes.c_long(16 if os.uname().machine == \"x86_64\" else 29), 0, "
        "ctypes.c_ulong(request | 1 << 32), b)\n"
        "    print(r, ctypes.get_errno())\n"
        "'; read -t 0.2 x; echo \"[$x]\""
    ));
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().out, "1\r\n-1 1\r\n-1 1\r\n[]\r\n");
}

// --- limits of one command ----------------------------------------------------------------------

TEST_P(Started, CpuLimitEndsACommandAndIsNamed) {
    Command command = shell("while :; do :; done", 60s);
    command.limits.cpu_seconds = 1;
    Outcome outcome = bench.command(std::move(command));
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled);
    EXPECT_EQ(outcome.signal, SIGXCPU);
    EXPECT_EQ(outcome.detail, "cpu time limit of 1 s");
    command = shell("trap '' XCPU; while :; do :; done", 60s);
    command.limits.cpu_seconds = 1;
    outcome = bench.command(std::move(command));
    EXPECT_EQ(outcome.signal, SIGKILL);
    EXPECT_EQ(outcome.detail, "cpu time limit of 1 s");
    EXPECT_EQ(bench.sh("kill -KILL $$").detail, "") << "another's kill is not blamed on it";
}

TEST_P(Started, C83_FileThatGrowsUnseenIsStoppedAndNamed) {
    Command command = shell("(while :; do echo xxxxxxxx; done >/tmp/l) & rm -f /tmp/l; wait $!");
    command.limits.file_size = base::limits::kMiB;
    const Outcome outcome = bench.command(std::move(command));
    EXPECT_EQ(outcome.shell_code(), 128 + SIGXFSZ);
    EXPECT_EQ(outcome.detail, "file size limit of 1048576 bytes");
    // Without a limit of its own, the bounded /tmp stops it; it is listed and can be ended.
    const auto process = start("while :; do echo xxxxxxxx; done >/tmp/l & sleep 0.1; rm -f /tmp/l");
    EXPECT_TRUE(wait(process));
    EXPECT_EQ(process->outcome().background.size(), 1U);
    bench.run_void(process->kill());
    EXPECT_TRUE(bench.run(bench.scope()->background()).empty());
}

TEST_P(Started, LimitsOfOneCommandLeaveTheNextOneAlone) {
    Command command = shell("ulimit -n; ulimit -u; ulimit -t; ulimit -f");
    const std::string before = bench.command(command).out;
    command.limits = {.cpu_seconds = 7, .file_size = 2048, .open_files = 64, .processes = 16};
    EXPECT_EQ(bench.command(command).out, "64\n16\n7\n2\n");
    command.limits = {.open_files = 1'000'000'000};
    EXPECT_EQ(bench.command(command).out, before) << "never more than the scope allows";
    command.limits = {};
    EXPECT_EQ(bench.command(command).out, before);
}

// --- who keeps whom -----------------------------------------------------------------------------

base::Task<void> start_and_leave(std::shared_ptr<Scope> scope, bool* aborted) {
    try {
        (void)co_await scope->start(shell("trap '' TERM; sleep 600"));
        *aborted = false;
    } catch (const boost::system::system_error&) {
        *aborted = true;
    }
}

base::Task<void> cancel_at_once(std::shared_ptr<Scope> scope, bool* aborted) {
    base::TaskGroup group(co_await asio::this_coro::executor);
    group.spawn(start_and_leave(scope, aborted));
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    group.cancel_all();
    co_await group.join();
}

TEST_P(Started, CallerCancelledWhileStartingLeavesNothingRunning) {
    bool aborted = false;
    const auto scope = bench.scope();
    bench.run_void(cancel_at_once(scope, &aborted));
    if (aborted) {
        EXPECT_TRUE(scope->processes().empty());
        EXPECT_EQ(bench.sh("cat /proc/[0-9]*/comm | grep -c sleep").out, "0\n");
    } else {
        EXPECT_EQ(scope->processes().size(), 1U) << "the start was faster than the cancellation";
    }
}

INSTANTIATE_TEST_SUITE_P(
    Backends,
    Started,
    ::testing::Values(IoBackend::automatic, IoBackend::epoll),
    [](const auto& info) { return info.param == IoBackend::epoll ? "epoll" : "automatic"; }
);

class IdleScope : public ::testing::Test {};

// Whoever started it went away for many times the idle time: 150 seconds of two minutes elsewhere.
TEST_F(IdleScope, C24_CommandNobodyAskedForIsReachedByIdAndReadOnFromItsOffset) {
    SandboxOptions options;
    options.idle_release = 100ms;
    Bench bench(IoBackend::automatic, options);
    ARS_NEEDS_SCOPES(bench);
    std::string id;
    {
        const auto process =
            *bench.run(bench.scope()->start(shell("echo one; until [ -e f ]; do sleep 0.1; done; "
                                                  "echo two; sleep 600")));
        id = process->id();
    }
    bench.run_void(base::sleep_until(base::Deadline::after(1500ms)));
    ASSERT_EQ(bench.sandbox().size(), 1U);
    const auto found = bench.scope()->find(id);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->running());
    EXPECT_EQ(found->read(0, 100).bytes, "one\n");
    std::ofstream(bench.workspace() + "/f") << "on";
    for (int i = 0; i < 500 && found->read(4, 100).bytes.empty(); ++i) {
        bench.run_void(base::sleep_until(base::Deadline::after(20ms)));
    }
    EXPECT_EQ(found->read(4, 100).bytes, "two\n");
    EXPECT_TRUE(found->running());
    bench.run_void(found->kill());
}

TEST_F(IdleScope, C23_IsKeptWhileACommandGoesOnButNotForALeftover) {
    SandboxOptions options;
    options.idle_release = 200ms;
    Bench bench(IoBackend::automatic, options);
    ARS_NEEDS_SCOPES(bench);
    const auto process = *bench.run(bench.scope()->start(shell("sleep 1; sleep 600 & echo done")));
    EXPECT_TRUE(bench.run(process->wait(base::Deadline::after(20s))));
    EXPECT_EQ(process->outcome().status, OutcomeStatus::exited) << "it outlived the idle time";
    EXPECT_EQ(process->outcome().background.size(), 1U);
    for (int i = 0; i < 500 && bench.sandbox().size() != 0; ++i) {
        bench.run_void(base::sleep_until(base::Deadline::after(20ms)));
    }
    EXPECT_EQ(bench.sandbox().size(), 0U);
}

}  // namespace
}  // namespace ars::sandbox::testing
