// C80-C90: limits and what is said of them, and the environment every tool starts with.
#include "tests/cases/fixture.hpp"

#include <boost/json/serialize.hpp>

#include <filesystem>

namespace ars::tests {
namespace {

class ResourceCases : public Cases {};

TEST_P(ResourceCases, C80_C82_MemoryLimitEndsItsCommandOnlyAndIsToldAsOom) {
    ARS_NEEDS("python3");
    const TempDir config;
    options_.flags = {
        "--config", write_config(config, "small: {memory: 64MiB}"), "--policy", "small"
    };
    const std::string mark = marker();
    run("sleep " + mark + " &");
    const json::object done = python("x = bytearray(300 << 20)\nimport time\ntime.sleep(20)");
    EXPECT_TRUE(has_status(done, "oom"));
    EXPECT_FALSE(text(done, "detail").empty())
        << json::serialize(done);  // the evidence: cgroup or watch
    EXPECT_GE(number(done, "peak_bytes"), 60 << 20) << json::serialize(done);
    // What took no memory lives on, and so does the scope.
    EXPECT_EQ(processes_with(mark), 1);
    EXPECT_EQ(text(run("echo here"), "stdout"), "here\n");
}

TEST_P(ResourceCases, LimitsOfAPolicyBoundEachCommandAndItsOwnLimits) {
    const TempDir config;
    options_.flags = {
        "--config", write_config(config, "short: {cpu: 1s, open_files: 64}"), "--policy", "short"
    };
    const std::string ask = "ulimit -t; ulimit -n; ulimit -n 65 || echo refused";
    EXPECT_EQ(text(run(ask), "stdout"), "1\n64\nrefused\n");
    const json::object looser{{"cpu", "9s"}, {"open_files", 128}};
    EXPECT_EQ(text(run(ask, {{"limits", looser}}), "stdout"), "1\n64\nrefused\n");
    const json::object spun = run("while :; do :; done", {{"timeout", "20s"}});
    EXPECT_TRUE(has_status(spun, "signalled"));
    EXPECT_EQ(text(spun, "detail"), "cpu time limit");
}

TEST_P(ResourceCases, C84_CrashIsASignalAndLeavesNoCore) {
    const json::object done = run("ulimit -c; kill -SEGV $$");
    EXPECT_TRUE(has_status(done, "signalled"));
    EXPECT_EQ(number(done, "signal"), 11);
    EXPECT_EQ(text(done, "stdout"), "0\n");
    EXPECT_TRUE(std::filesystem::is_empty(workspace().path()));
}

TEST_P(ResourceCases, C88_EnvironmentOfTheServerDoesNotReachATool) {
    options_.environment = {
        {"OPENAI_API_KEY", "sk-hunter2"}, {"DB_PASS", "hunter3"}, {"TZ", "UTC+3"}
    };
    const json::object done = run("printenv");
    EXPECT_EQ(text(done, "stdout").find("hunter"), std::string::npos) << text(done, "stdout");
    for (const char* name :
         {"PATH=/usr/local/sbin:",
          landlock() ? "HOME=/tmp/" : "HOME=/home/gem",
          "LANG=C.UTF-8",
          "TZ=UTC+3"}) {
        EXPECT_TRUE(holds(done, "stdout", name)) << name;
    }
}

TEST_P(ResourceCases, C89_LocaleAndZoneAreSetWithAnEmptyEnvironment) {
    options_.wrapper = {"env", "-i"};
    EXPECT_TRUE(exited(run("date +%Z | grep ."), 0));
    EXPECT_EQ(text(run("echo $LANG"), "stdout"), "C.UTF-8\n");
    ARS_NEEDS("python3");
    EXPECT_EQ(text(python("print('\\u2603')"), "stdout"), "\xe2\x98\x83\n");
}

TEST_P(ResourceCases, C90_CachesOfToolsAreWritable) {
    const json::object done =
        run("mkdir -p $XDG_CACHE_HOME $PIP_CACHE_DIR $NPM_CONFIG_CACHE && touch "
            "$NPM_CONFIG_CACHE/x && mkdir -p ./work");
    EXPECT_TRUE(exited(done, 0));
    ARS_NEEDS("npm");
    if (landlock()) {
        GTEST_SKIP() << "npm 10 refuses to name its cache here (\"the cache option is protected\")";
    }
    const json::object npm = run("test \"$(npm config get cache)\" = \"$NPM_CONFIG_CACHE\"");
    EXPECT_TRUE(exited(npm, 0));
}

ARS_INSTANTIATE_CASES(ResourceCases);

}  // namespace
}  // namespace ars::tests
