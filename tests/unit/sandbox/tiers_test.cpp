// What both tiers promise, shown in each: the same commands, the same answers.
#include "base/fd.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <cstdlib>
#include <sstream>

#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

namespace ars::sandbox::testing {
namespace {

class BothTiers : public ::testing::TestWithParam<Tier> {
  protected:
    void SetUp() override {
        bench.tier() = GetParam();
        if (const auto acquired = bench.acquire(); !acquired) {
            GTEST_SKIP() << "no such tier on this host: " << acquired.error().message;
        }
    }
    std::string raw_call(const std::string& arguments) {
        const Outcome outcome = bench.sh(bench.install("raw_call") + " " + arguments);
        return outcome.out +
               (outcome.status == OutcomeStatus::exited ? "" : to_string(outcome.status));
    }
    static std::string text(long number) { return std::to_string(number); }

    Bench bench;
};

const std::string kPermission = "-1\n";   // EPERM
const std::string kNoSuchCall = "-38\n";  // ENOSYS
constexpr std::uint64_t kHighBit = std::uint64_t{1} << 32U;

TEST_P(BothTiers, ToolIsGemWithoutCapabilitiesOrNewPrivileges) {
    const Outcome outcome =
        bench.sh("id -u; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):' /proc/self/status");
    const std::string none = "0000000000000000\n";
    EXPECT_EQ(
        outcome.out,
        (::geteuid() == 0 || GetParam() == Tier::namespaces ? "1000" : text(::geteuid())) +
            "\nCapInh:\t" + none + "CapPrm:\t" + none + "CapEff:\t" + none + "CapAmb:\t" + none +
            "NoNewPrivs:\t1\nSeccomp:\t2\n"
    );
}

TEST_P(BothTiers, C28_TerminalInjectionIsRefusedAlsoWithHighBits) {
    const std::string tiocsti = text(SYS_ioctl) + " 0 ";
    EXPECT_EQ(raw_call(tiocsti + text(TIOCSTI)), kPermission);
    EXPECT_EQ(raw_call(tiocsti + std::to_string(TIOCSTI | kHighBit)), kPermission);
    EXPECT_EQ(raw_call(tiocsti + text(TIOCLINUX)), kPermission);
    EXPECT_EQ(raw_call(tiocsti + text(TCGETS)), "-25\n")
        << "other requests reach the kernel (ENOTTY)";
}

TEST_P(BothTiers, C37_C38_CallsWithAFallBackAreAbsent) {
    EXPECT_EQ(raw_call(text(SYS_io_uring_setup)), kNoSuchCall);
    EXPECT_EQ(raw_call(text(SYS_io_uring_enter)), kNoSuchCall);
    EXPECT_EQ(raw_call(text(SYS_clone3)), kNoSuchCall);
    EXPECT_EQ(raw_call("436 1000 1001 0"), "0\n") << "close_range works (C39)";
}

TEST_P(BothTiers, C43_C44_C45_KeysDebuggersAndNamespacesAreRefused) {
    for (const long call :
         {SYS_keyctl,
          SYS_add_key,
          SYS_request_key,
          SYS_ptrace,
          SYS_process_vm_readv,
          SYS_bpf,
          SYS_perf_event_open,
          SYS_userfaultfd,
          SYS_mount,
          SYS_umount2,
          SYS_pivot_root,
          SYS_chroot,
          SYS_open_tree,
          SYS_move_mount,
          SYS_fsopen,
          SYS_mount_setattr,
          SYS_setns,
          SYS_init_module,
          SYS_kexec_load,
          SYS_reboot,
          SYS_swapon,
          SYS_acct,
          SYS_quotactl,
          SYS_open_by_handle_at,
          SYS_name_to_handle_at,
          SYS_pidfd_getfd}) {
        EXPECT_EQ(raw_call(text(call)), kPermission) << call;
    }
    for (const long flag :
         {long{CLONE_NEWUSER}, long{CLONE_NEWNS}, long{CLONE_NEWNET}, long{CLONE_NEWTIME}}) {
        EXPECT_EQ(raw_call(text(SYS_unshare) + " " + text(flag)), kPermission) << flag;
    }
    EXPECT_EQ(
        raw_call(text(SYS_clone) + " " + std::to_string(CLONE_NEWUSER | kHighBit)), kPermission
    );
    EXPECT_EQ(raw_call(text(SYS_unshare) + " " + text(CLONE_FILES)), "0\n");
}

TEST_P(BothTiers, NoDescriptorOfOursIsInherited) {
    EXPECT_EQ(bench.sh("cd /proc/$$/fd; echo *").out, "0 1 2 3\n");  // 3 reads the directory
}

#if defined(__x86_64__)
TEST_P(BothTiers, C40_OtherCallTablesAreNotServed) {
    EXPECT_EQ(raw_call(text(0x40000000L | SYS_ptrace)), kNoSuchCall);
    EXPECT_EQ(raw_call(text(0x40000000L | SYS_getpid)), kNoSuchCall);
    const std::string answer = raw_call("i386 20");  // getpid
    EXPECT_TRUE(answer == kNoSuchCall || answer == "signalled") << answer;
}
#endif

TEST_P(BothTiers, C56_NoEnvironmentOfTheServerOrOfAnotherScopeIsReadable) {
    ::setenv("ARS_TEST_SECRET", "hunter2-in-the-server", 1);
    Bench other;
    other.tier() = GetParam();
    ASSERT_TRUE(other.acquire());
    Command sleeper = shell("sleep 1000 & echo up");
    sleeper.environment["SECRET"] = "hunter2-in-another-scope";
    ASSERT_EQ(other.command(std::move(sleeper)).out, "up\n");
    const Outcome outcome = bench.sh(
        "for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; done 2>/dev/null | grep -c "
        "'hunter2-in'"
    );
    ::unsetenv("ARS_TEST_SECRET");
    EXPECT_EQ(outcome.out, "0\n");
}

TEST_P(BothTiers, C65_C90_HomeAndTemporaryDirectoryAreThereAndPrivate) {
    if (GetParam() == Tier::namespaces) {
        GTEST_SKIP() << "the small plan of this test has no /home/gem of its own";
    }
    const Outcome outcome = bench.sh(
        "mkdir -p ~/work && touch ~/work/f && echo home; d=$(mktemp -d) && stat -c %a $d; "
        "stat -c %a \"$TMPDIR\"; mkdir -p \"$XDG_CACHE_HOME\" && echo cache; cat <<X\nheredoc\nX"
    );
    EXPECT_EQ(outcome.out, "home\n700\n700\ncache\nheredoc\n") << outcome.err;
}

TEST_P(BothTiers, C61_ACommandLeavesNothingInTheWorkspace) {
    EXPECT_EQ(bench.sh("true").shell_code(), 0);
    EXPECT_EQ(bench.sh("ls -A").out, "");
}

TEST_P(BothTiers, C25_C27_NoControllingTerminalAndNewOnesOnRequest) {
    const Outcome outcome = bench.sh("bash -c 'read x </dev/tty'");
    EXPECT_NE(outcome.err.find("No such device or address"), std::string::npos) << outcome.err;
    if (GetParam() == Tier::landlock && !terminals_for_gem()) {
        GTEST_SKIP() << "/dev/ptmx of this host is closed to gem";
    }
    if (bench.sh("command -v script").shell_code() != 0) {
        GTEST_SKIP() << "no script(1) in the image";
    }
    const Outcome terminal = bench.sh("script -qc 'stty raw -echo; stty sane; echo ok' /dev/null");
    EXPECT_EQ(terminal.out, "ok\r\n") << terminal.err;  // C26
}

TEST_P(BothTiers, C36_SharedMemoryWorks) {
    if (bench.sh("command -v python3").shell_code() != 0) {
        GTEST_SKIP() << "no python3 in the image";
    }
    const Outcome outcome = bench.sh(
        "python3 -c 'from concurrent.futures import ProcessPoolExecutor as P;"
        "print(list(P(2).map(abs,[-1])))'"
    );
    EXPECT_EQ(outcome.out, "[1]\n") << outcome.err;
}

TEST_P(BothTiers, C01_ACommandIsOverWhenItsProcessIsAndTheRestIsListed) {
    const Outcome outcome = bench.sh("sleep 1000 & echo done");
    EXPECT_EQ(outcome.out, "done\n");
    ASSERT_EQ(outcome.background.size(), 1U);
    EXPECT_EQ(outcome.background.front().command, "sleep 1000");
    // Its pid is one that the next command can use.
    const std::string pid = text(outcome.background.front().pid);
    EXPECT_EQ(bench.sh("kill " + pid + " && echo killed").out, "killed\n");
}

TEST_P(BothTiers, C04_ATreeThatIgnoresSignalsIsKilledWithItsDaemons) {
    const Outcome outcome = bench.sh(
        "trap '' TERM HUP INT; (trap '' TERM; setsid sleep 1000 & setsid sleep 1000 &); echo up; "
        "while :; do sleep 1; done",
        500ms
    );
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_EQ(outcome.out, "up\n");
    EXPECT_TRUE(outcome.background.empty());
    EXPECT_EQ(bench.sh("echo alive").out, "alive\n") << "the scope stays";
}

TEST_P(BothTiers, C08_AForkBombEndsWithItsScopeAndTheNextOneWorks) {
    bench.policy().processes = 48;
    const std::uint64_t before = bench.scope("bomb")->generation();
    const Outcome outcome =
        bench.command(shell("bomb() { bomb | bomb & }; bomb; sleep 1000", 1s), "bomb");
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out) << outcome.detail;
    bench.run_void(bench.sandbox().release({"alice", "bomb", "default"}));
    EXPECT_GT(bench.scope("bomb")->generation(), before);
    EXPECT_EQ(bench.command(shell("echo alive"), "bomb").out, "alive\n");
}

TEST_P(BothTiers, AToolThatKillsItsKeeperIsReportedAndSwept) {
    const Outcome outcome = bench.sh("sleep 1000 & kill -9 $PPID; sleep 1000");
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled) << outcome.detail;
    EXPECT_TRUE(outcome.background.empty());
}

INSTANTIATE_TEST_SUITE_P(
    In,
    BothTiers,
    ::testing::Values(Tier::namespaces, Tier::landlock),
    [](const auto& info) { return info.param == Tier::landlock ? "landlock" : "namespaces"; }
);

}  // namespace
}  // namespace ars::sandbox::testing
