// The memory limit of a scope where no cgroup holds it: the init's watch, with real processes.
#include "tests/unit/sandbox/program_fixture.hpp"

namespace ars::sandbox::testing {
namespace {

constexpr std::uint64_t kLimit = 256 * base::limits::kMiB;

class MemoryWatching : public ProgramTest {
  protected:
    void SetUp() override {
        bench.policy().name = "bounded";
        bench.policy().memory = kLimit;
        ProgramTest::SetUp();
    }
};

TEST_F(MemoryWatching, C80_TooMuchMemoryIsAnOomWithItsPeakAndTheScopeGoesOn) {
    const std::uint64_t before = bench.scope()->generation();
    const Outcome outcome = program("memory_hog", "private 1000");
    EXPECT_EQ(outcome.status, OutcomeStatus::oom);
    EXPECT_EQ(outcome.detail, "watch");
    EXPECT_GT(outcome.peak_bytes, kLimit);
    EXPECT_LT(outcome.peak_bytes, 1100 * base::limits::kMiB);
    EXPECT_EQ(outcome.limit_bytes, kLimit);
    EXPECT_NE(outcome.memory_text().find(" of 256 MiB"), std::string::npos);
    EXPECT_EQ(outcome.shell_code(), 137);
    EXPECT_EQ(bench.sh("echo on").out, "on\n");
    EXPECT_EQ(bench.scope()->generation(), before);
    EXPECT_EQ(bench.sandbox().counters().oom_kills, 1U);
}

TEST_F(MemoryWatching, C80_PythonStringIsAnOom) {
    if (bench.sh("command -v python3").exit_code != 0) {
        GTEST_SKIP() << "no python3 in the image";
    }
    const Outcome outcome = bench.sh("python3 -c \"x='a'*10**9; import time; time.sleep(5)\"");
    EXPECT_EQ(outcome.status, OutcomeStatus::oom) << outcome.err;
}

TEST_F(MemoryWatching, C82_OnlyTheTreeOfTheLargestCommandDies) {
    const std::string hog = path("memory_hog");
    const std::vector<Outcome> outcomes = together(
        {shell(
             "sleep 3; " + hog +
             " private 20 >/dev/null & for i in 1 2 3 4 5; do sleep 0.8; done; "
             "echo lived"
         ),
         shell("(" + hog + " private 900; echo not-reached); echo not-reached")}
    );
    EXPECT_EQ(outcomes[0].out, "lived\n");
    EXPECT_EQ(outcomes[0].status, OutcomeStatus::exited);
    EXPECT_EQ(outcomes[1].status, OutcomeStatus::oom);
    EXPECT_EQ(outcomes[1].out, "");
}

TEST_F(MemoryWatching, SharedMemoryCountsToo) {
    EXPECT_EQ(program("memory_hog", "shared 600").status, OutcomeStatus::oom);
}

TEST_F(MemoryWatching, MemoryThatForkedProcessesShareCountsOnce) {
    const Outcome outcome = program("memory_hog", "forked 120");
    EXPECT_EQ(outcome.status, OutcomeStatus::exited);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.detail;
}

TEST_F(MemoryWatching, MemoryLentToAChildOfVforkCountsOnce) {
    const Outcome outcome = program("memory_hog", "vforked 150");
    EXPECT_EQ(outcome.status, OutcomeStatus::exited) << outcome.memory_text();
}

TEST_F(MemoryWatching, MemoryAsLargeAsASuspendedParentsIsNotTakenForItsOwn) {
    const Outcome outcome = program("memory_twins", "120");
    EXPECT_EQ(outcome.status, OutcomeStatus::oom) << outcome.out;
}

TEST_F(MemoryWatching, ProcessWhoseFirstThreadHasEndedIsSeen) {
    EXPECT_EQ(program("headless", "600").status, OutcomeStatus::oom);
    EXPECT_EQ(program("headless", "600 churn").status, OutcomeStatus::oom);
}

TEST_F(MemoryWatching, StormOfProcessesThatAllocateIsEnded) {
    // The watch shares the cores with 512 processes in sessions of their own that never rest.
    const Outcome outcome = program("memory_hog", "storm 8", 60s);
    EXPECT_EQ(outcome.status, OutcomeStatus::oom) << outcome.detail;
    EXPECT_EQ(bench.sh("pgrep -c memory_hog").out, "0\n");
}

TEST_F(MemoryWatching, BackgroundProcessThatGrowsIsKilledAfterItsCommand) {
    const Outcome started = bench.sh(
        "(sleep 1; exec " + path("memory_hog") + " private 700) >/dev/null 2>&1 & echo started"
    );
    EXPECT_EQ(started.out, "started\n");
    const Outcome later = bench.sh(
        "sleep 1.2; for i in $(seq 100); do pgrep memory_hog >/dev/null || break; sleep 0.1; done; "
        "pgrep -c memory_hog"
    );
    EXPECT_EQ(later.out, "0\n");
    EXPECT_EQ(bench.sandbox().counters().oom_kills, 1U);
}

TEST_F(MemoryWatching, WithoutALimitNobodyLooks) {
    Bench free;
    const Outcome outcome = free.sh("head -c 300000000 /dev/zero | tail -c 1 | wc -c");
    EXPECT_EQ(outcome.status, OutcomeStatus::exited);
}

}  // namespace
}  // namespace ars::sandbox::testing
