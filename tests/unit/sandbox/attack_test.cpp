// Tools that attack the init and its keepers: what they break is their own command, at most their
// own scope, and it ends within the bounds.
#include "tests/unit/sandbox/program_fixture.hpp"

#include <csignal>

namespace ars::sandbox::testing {
namespace {

class Attacks : public ProgramTest {
  protected:
    // The scope answers, or a new one does; either way nothing of `program` is left.
    void expect_gone(const std::string& program) {
        EXPECT_EQ(bench.sh("pgrep -c " + program).out, "0\n");
    }
};

TEST_F(Attacks, KeeperThatIsStoppedGoesOn) {
    const Outcome outcome = program("keeper_attack", "stop; exit $?");
    EXPECT_EQ(outcome.out, "0\n") << "the keeper could be reached";
    EXPECT_EQ(outcome.status, OutcomeStatus::exited);
    EXPECT_EQ(outcome.exit_code, 7);
}

TEST_F(Attacks, KeeperThatIsKilledCostsItsCommandAndNoOther) {
    const std::uint64_t before = bench.scope()->generation();
    const std::string attack = path("keeper_attack") + " kill; sleep 50";
    const std::vector<Outcome> outcomes =
        together({shell(attack), shell("sleep 2; echo untouched")});
    EXPECT_EQ(outcomes[0].status, OutcomeStatus::signalled);
    EXPECT_LT(outcomes[0].duration, 15s);
    EXPECT_EQ(outcomes[1].out, "untouched\n");
    expect_gone("keeper_attack");
    EXPECT_EQ(bench.scope()->generation(), before);
}

TEST_F(Attacks, SignalBombDoesNotReachKeepersOrInit) {
    const std::uint64_t before = bench.scope()->generation();
    const Outcome outcome = program("keeper_attack", "bomb & wait; wait; echo after");
    EXPECT_NE(outcome.status, OutcomeStatus::setup_failed);
    // What it left running strikes later commands of this scope for a while, nothing more.
    std::string answer;
    const auto until = base::Deadline::after(30s);
    while (answer != "on\n" && !until.passed()) {
        answer = bench.sh("sleep 0.3; echo on").out;
    }
    EXPECT_EQ(answer, "on\n");
    EXPECT_EQ(bench.scope()->generation(), before) << "the scope survived";
}

TEST_F(Attacks, C08_ForkBombIsBoundedAndEndsWithItsCommand) {
    const Outcome outcome = bench.sh("bomb() { bomb | bomb & }; bomb; sleep 60", 3s);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_LT(outcome.duration, 20s);
    EXPECT_EQ(bench.sh("echo on").out, "on\n");
}

TEST_F(Attacks, C09_OneScopeAtItsLimitLeavesTheOthersTheirs) {
    const auto full = bench.run(bench.scope("full")->start(
        shell("for i in $(seq 600); do sleep 30 & done 2>/dev/null; wait", 30s)
    ));
    ASSERT_TRUE(full) << full.error().message;
    const Outcome other = bench.command(shell("sleep 1; /bin/true && echo works"), "other");
    EXPECT_EQ(other.out, "works\n") << other.err << other.detail;
    bench.run_void((*full)->kill());
}

TEST_F(Attacks, DaemonizingBombEndsAtTheLatestWithItsScope) {
    const Outcome outcome = program("daemon_bomb", "& sleep 60", 2s);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_LT(outcome.duration, 20s);
    expect_gone("daemon_bomb");
    EXPECT_EQ(bench.sh("echo on").out, "on\n");
}

TEST_F(Attacks, C83_DeletedFileThatGrowsMeetsTheLimit) {
    Bench small;
    small.policy().name = "small-files";
    small.policy().file_size = base::limits::kMiB;
    const Outcome outcome = small.sh(
        "(while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done "
        ">l) & "
        "sleep 0.1; rm l; wait $!"
    );
    EXPECT_EQ(outcome.shell_code(), 128 + SIGXFSZ);
    EXPECT_NE(outcome.detail.find("file size limit"), std::string::npos) << outcome.detail;
}

}  // namespace
}  // namespace ars::sandbox::testing
