// Refused system calls are named in the outcome of the command that made them, and answering them
// holds nobody up.
#include "sandbox/violation.hpp"

#include "tests/unit/sandbox/program_fixture.hpp"

#include <algorithm>

#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace ars::sandbox::testing {
namespace {

using Names = std::vector<std::string>;

TEST(DeniedCallNames, SayTheFamilyOfASocketAndTheRequestOfATerminal) {
    EXPECT_EQ(denied_call_name(SYS_ptrace, 0), "ptrace");
    EXPECT_EQ(denied_call_name(SYS_socket, AF_VSOCK), "socket(AF_VSOCK)");
    EXPECT_EQ(denied_call_name(SYS_socket, 4096), "socket(4096)");
    EXPECT_EQ(denied_call_name(SYS_ioctl, TIOCSTI), "ioctl(TIOCSTI)");
}

TEST(DeniedCallNames, EachRemedyIsGivenOnce) {
    EXPECT_EQ(
        denied_call_advice({"ptrace", "process_vm_readv"}),
        "debuggers and strace need the policy `debug`"
    );
    EXPECT_NE(denied_call_advice({"clone", "mount"}).find("--no-sandbox"), std::string::npos);
    EXPECT_EQ(denied_call_advice({"kexec_load"}), "");
}

class Violations : public ProgramTest {
  protected:
    void SetUp() override {
        ProgramTest::SetUp();
        if (!IsSkipped() && program("raw_call", std::to_string(SYS_ptrace) + "; exit 1").status !=
                                OutcomeStatus::violation) {
            GTEST_SKIP(
            ) << "this kernel gives no seccomp listener: refused calls are an errno only";
        }
    }
};

TEST_F(Violations, C45_FailedCommandNamesTheRefusedCallAndWhatHelps) {
    const Outcome outcome = bench.sh("unshare -Ur id");
    EXPECT_EQ(outcome.status, OutcomeStatus::violation);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.denied, Names{"unshare"});
    EXPECT_NE(outcome.detail.find("unshare denied by the sandbox (EPERM)"), std::string::npos);
    EXPECT_NE(outcome.detail.find("--no-sandbox"), std::string::npos) << outcome.detail;
    EXPECT_GE(bench.sandbox().counters().denied_calls.at("unshare"), 1U);
}

TEST_F(Violations, CommandThatWentOnWithoutTheCallKeepsItsCode) {
    const Outcome outcome = program("raw_call", std::to_string(SYS_keyctl) + "; true");
    EXPECT_EQ(outcome.status, OutcomeStatus::exited);
    EXPECT_EQ(outcome.denied, Names{"keyctl"});
    EXPECT_EQ(bench.sh("exit 3").denied, Names{}) << "another command has its own list";
}

TEST_F(Violations, EachCallIsNamedOnceWithItsFamilies) {
    const std::string call = path("raw_call") + " ";
    std::string text;
    for (const int family : {AF_VSOCK, AF_VSOCK, AF_PACKET}) {
        text += call + std::to_string(SYS_socket) + " " + std::to_string(family) + " 1 0; ";
    }
    const Outcome outcome = bench.sh(text + "exit 9");
    EXPECT_EQ(outcome.denied, (Names{"socket(AF_VSOCK)", "socket(AF_PACKET)"}));
    EXPECT_EQ(outcome.exit_code, 9);
}

TEST_F(Violations, DaemonsInSessionsOfTheirOwnBelongToTheirCommand) {
    const Outcome outcome = program(
        "raw_call",
        std::to_string(SYS_ptrace) + " >/dev/null; setsid setsid bash -c '" + path("raw_call") +
            " " + std::to_string(SYS_keyctl) + "; sleep 0'; exit 1"
    );
    EXPECT_EQ(outcome.denied, (Names{"ptrace", "keyctl"}));
}

TEST_F(Violations, ManyRefusedFamiliesAreBounded) {
    const Outcome outcome = bench.sh(
        "for f in $(seq 100 160); do " + path("raw_call") + " " + std::to_string(SYS_socket) +
        " $f 1 0 >/dev/null; done; exit 1"
    );
    EXPECT_EQ(outcome.denied.size(), 16U);
}

TEST_F(Violations, C13_PipelinesAndInterruptedCallsDoNotHang) {
    const Outcome lines =
        bench.sh("dash -c 'i=0; while [ $i -lt 100 ]; do seq 10|cat|wc -l; i=$((i+1)); done'");
    EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 100) << lines.err;
    EXPECT_EQ(lines.err, "");
    const Outcome flood = program("denied_flood", "4 1");
    EXPECT_EQ(flood.out, "0\n") << flood.err;
    EXPECT_EQ(flood.denied, Names{"keyctl"});
}

TEST_F(Violations, FloodFromFiftyThreadsHoldsUpNobodyAndCanBeKilled) {
    const std::uint64_t before = bench.scope()->generation();
    const std::string flood = path("denied_flood") + " 50 60";
    const std::vector<Outcome> outcomes = together(
        {shell(flood, 4s), shell("sleep 1; for i in $(seq 50); do /bin/true; done; echo done")}
    );
    const Outcome& flooded = outcomes[0];
    const Outcome& other = outcomes[1];
    EXPECT_EQ(flooded.status, OutcomeStatus::timed_out);
    EXPECT_EQ(other.out, "done\n");
    EXPECT_EQ(other.denied, Names{});
    EXPECT_EQ(bench.sh("pgrep -c denied_flood").out, "0\n");
    EXPECT_EQ(bench.scope()->generation(), before) << "the flood's tree could be ended alone";
}

TEST_F(Violations, ListenerIsNotInherited) {
    EXPECT_EQ(bench.sh("ls -l /proc/$$/fd /proc/self/fd | grep -c -i seccomp").out, "0\n");
}

TEST_F(Violations, CallersThatAreKilledWhileTheyWaitLeaveNothingBehind) {
    const Outcome outcome = bench.sh(
        "for i in $(seq 30); do " + path("denied_flood") +
            " 8 60 & p=$!; sleep 0.0$((RANDOM % 9)); kill -9 $p; wait $p; done 2>/dev/null; echo "
            "over",
        60s
    );
    EXPECT_EQ(outcome.out, "over\n");
    EXPECT_EQ(program("raw_call", std::to_string(SYS_ptrace)).out, "-1\n");
}

TEST_F(Violations, C46_ProgramsThatNeedMorePrivilegesFailAtOnce) {
    const Outcome outcome = bench.sh("command -v sudo >/dev/null || exit 99; sudo -n id");
    if (outcome.exit_code == 99) {
        GTEST_SKIP() << "no sudo in the image";
    }
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_LT(outcome.duration, 10s);
}

}  // namespace
}  // namespace ars::sandbox::testing
