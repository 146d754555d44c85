// A command that failed at a wall nobody reports is told which wall it probably was.
#include "sandbox/failure_hint.hpp"

#include "tests/unit/sandbox/scope_fixture.hpp"

namespace ars::sandbox::testing {
namespace {

std::string hint_for(std::string said, Tier tier = Tier::namespaces, int code = 1) {
    Outcome outcome;
    outcome.status = OutcomeStatus::exited;
    outcome.exit_code = code;
    outcome.err = std::move(said);
    return failure_hint(outcome, {"web", 512, tier, "/tmp/ars-scope-1"});
}

TEST(FailureHint, ProcessLimitIsNamedWithItsKey) {
    for (const char* said :
         {"bash: fork: retry: Resource temporarily unavailable",
          "sh: 1: Cannot fork",
          "Traceback\n  pid = os.fork()\nBlockingIOError: [Errno 11] Resource temporarily "
          "unavailable",
          "Error: spawn ls EAGAIN",
          "runtime: failed to create new OS thread (have 5 already; errno=11)",
          "java.lang.OutOfMemoryError: unable to create native thread"}) {
        const std::string hint = hint_for(said);
        EXPECT_NE(hint.find("process limit of 512 is probably"), std::string::npos) << said;
        EXPECT_NE(hint.find("sandbox.policies.web.processes"), std::string::npos) << said;
        EXPECT_EQ(hint_for(said, Tier::namespaces, 0), "") << "it did not fail";
    }
    EXPECT_EQ(hint_for("read error: Resource temporarily unavailable"), "");
}

TEST(FailureHint, RefusedPathIsNamed) {
    const std::pair<const char*, const char*> refused[] = {
        {"bash: line 1: /etc/x: Permission denied", "/etc/x: outside of"},
        {"mkdir: cannot create directory \xe2\x80\x98/opt/y\xe2\x80\x99: Read-only file system",
         "/opt/y: outside of"},
        {"/bin/sh: 1: cannot create /usr/z: Permission denied", "/usr/z: outside of"},
        {"PermissionError: [Errno 13] Permission denied: '/etc/x'", "/etc/x: outside of"},
        {"Error: EROFS: read-only file system, open '/etc/x'", "/etc/x: outside of"},
        {"touch: s: Read-only file system", "read-only file system: outside of"},
        {"cp: cannot create regular file '/home/gem/skills/a': Read-only file system",
         "/home/gem/skills/a: outside of"},
    };
    for (const auto& [said, hint] : refused) {
        EXPECT_TRUE(hint_for(said).starts_with(hint)) << said << " -> " << hint_for(said);
    }
    for (const char* own :
         {"bash: ./script: Permission denied",
          "cat: /home/gem/user-data/secret: Permission denied",
          "bash: /tmp/x: Permission denied",
          "bash: /nowhere: No such file or directory"}) {
        EXPECT_EQ(hint_for(own), "") << own;
    }
}

TEST(FailureHint, LandlockTierNamesTheClosedTmp) {
    EXPECT_TRUE(hint_for("touch: cannot touch '/tmp/x': Permission denied", Tier::landlock)
                    .starts_with("/tmp/x: outside of"));
    EXPECT_EQ(hint_for("touch: /tmp/ars-scope-1/x: Permission denied", Tier::landlock), "");
}

TEST(FailureHint, RefusedHostsAreNamedWithTheirKey) {
    Outcome outcome;
    outcome.status = OutcomeStatus::exited;
    outcome.exit_code = 56;
    outcome.denied_hosts = {"a.test", "b.test"};
    EXPECT_EQ(
        failure_hint(outcome, {"web", 512}),
        "a.test, b.test refused by sandbox.policies.web.allowed_hosts"
    );
}

class Hints : public ::testing::TestWithParam<Tier> {
  protected:
    void SetUp() override {
        bench.tier() = GetParam();
        bench.policy().processes = 24;
        bench.policy().name = "tight";
        ARS_NEEDS_SCOPES(bench);
    }
    Bench bench;
};

TEST_P(Hints, CommandThatCouldNotForkNamesTheLimit) {
    // Bash would try again for 15 seconds.
    const Outcome outcome =
        bench.sh("dash -c 'i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done'");
    EXPECT_NE(outcome.detail.find("process limit of 24 is"), std::string::npos)
        << to_string(outcome.status) << " " << outcome.detail << " " << outcome.err;
    EXPECT_NE(outcome.detail.find("sandbox.policies.tight.processes"), std::string::npos);
}

TEST_P(Hints, CommandThatWroteIntoTheImageIsToldWhereItMay) {
    const Outcome outcome = bench.sh("touch /usr/x");
    EXPECT_EQ(outcome.status, OutcomeStatus::exited);
    EXPECT_NE(outcome.detail.find("/usr/x: outside of /home/gem/user-data"), std::string::npos)
        << outcome.detail;
    EXPECT_EQ(bench.sh("touch /usr/x; true").detail, "") << "it went on without";
    EXPECT_EQ(bench.sandbox().counters().commands.at("exited"), 2U);
}

INSTANTIATE_TEST_SUITE_P(
    In,
    Hints,
    ::testing::Values(Tier::namespaces, Tier::landlock),
    [](const auto& info) { return info.param == Tier::landlock ? "landlock" : "namespaces"; }
);

}  // namespace
}  // namespace ars::sandbox::testing
