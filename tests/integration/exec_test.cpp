// `ars exec` as its users call it: the real binary, the real kernel walls.
#include "tests/support/process.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

Finished exec(std::vector<std::string> arguments, std::string stdin_text = {}) {
    arguments.insert(arguments.begin(), {ars_binary(), "exec"});
    return run(std::move(arguments), {}, std::move(stdin_text));
}

Finished shell(const std::string& script) { return exec({"--", "bash", "-c", script}); }

TEST(Exec, PassesOutputAndExitCodeThrough) {
    const Finished done = shell("echo out; echo err >&2; exit 7");
    EXPECT_EQ(done.exit_code, 7);
    EXPECT_EQ(done.out, "out\n");
    EXPECT_EQ(done.err, "err\n");
}

TEST(Exec, RunsAsGemWithItsOwnPidOne) {
    const Finished done =
        shell("id -u; id -g; cat /proc/self/setgroups; tr '\\0' ' ' </proc/1/cmdline");
    EXPECT_EQ(done.out.substr(0, 15), "1000\n1000\ndeny\n");
    EXPECT_NE(done.out.find("ars-scope-init"), std::string::npos) << done.out;
}

TEST(Exec, ShowsOnlyTheDesignedMounts) {
    const Finished done = shell("ls /; echo --; ls /home/gem; echo --; ls -A /run /root 2>&1");
    const std::set<std::string> designed{"app",   "bin",    "dev", "etc", "home", "lib",  "lib32",
                                         "lib64", "libx32", "nix", "opt", "proc", "root", "run",
                                         "sbin",  "srv",    "sys", "tmp", "usr",  "var"};
    std::istringstream names(done.out.substr(0, done.out.find("--\n")));
    for (std::string name; std::getline(names, name);) {
        EXPECT_TRUE(designed.contains(name)) << name << " is shown";
    }
    EXPECT_NE(done.out.find("--\nskills\nuser-data\n--\n"), std::string::npos) << done.out;
}

TEST(Exec, HasNoNetworkButLoopback) {
    const Finished done = shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '");
    EXPECT_EQ(done.out, "lo\n");
}

TEST(Exec, EndsAtItsTimeLimitAndLeavesNothingAlive) {
    const Finished done = exec({"--timeout", "1s", "--json", "--", "sleep", "6061"});
    EXPECT_EQ(done.exit_code, 124);
    EXPECT_EQ(json::parse(done.out).as_object().at("status"), "timed_out");
    EXPECT_EQ(processes_with("6061"), 0);
}

TEST(Exec, TellsMissingFromNotExecutable) {
    EXPECT_EQ(exec({"--", "no-such-program"}).exit_code, 127);
    EXPECT_EQ(exec({"--", "/etc/passwd"}).exit_code, 126);
    EXPECT_EQ(exec({"--", "/etc"}).exit_code, 126);
}

TEST(Exec, ReportsSignalsAsShellsDo) { EXPECT_EQ(shell("kill -SEGV $$").exit_code, 128 + 11); }

TEST(Exec, BatchAnswersEachLineInOrderInOneScope) {
    const Finished done = exec(
        {"--batch"},
        "{\"command\": \"echo $$ > /tmp/first; echo one\"}\n"
        "not json\n"
        "{\"command\": [\"cat\"], \"stdin\": \"given\"}\n"
        "{\"command\": \"test -s /tmp/first && echo same scope\", \"timeout\": \"5s\"}\n"
    );
    EXPECT_EQ(done.exit_code, 0);
    std::istringstream lines(done.out);
    std::vector<json::object> outcomes;
    for (std::string line; std::getline(lines, line);) {
        outcomes.push_back(json::parse(line).as_object());
    }
    ASSERT_EQ(outcomes.size(), 4U) << done.out << done.err;
    EXPECT_EQ(outcomes[0].at("stdout"), "one\n");
    EXPECT_EQ(outcomes[1].at("status"), "setup_failed");
    EXPECT_EQ(outcomes[2].at("stdout"), "given");
    EXPECT_EQ(outcomes[3].at("stdout"), "same scope\n");
}

TEST(Exec, WorkspaceIsTheCurrentDirectoryAndKeepsFiles) {
    const TempDir dir;
    std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
    dir.write("in.txt", "hello");
    const Finished done =
        exec({"--workspace", dir.path(), "--", "sh", "-c", "pwd; cat in.txt; cp in.txt out.txt"});
    // A directory of root's is refused with the remedy unless it is allowed by name.
    if (done.exit_code != 0) {
        EXPECT_NE(done.err.find("--allow-root-owner"), std::string::npos) << done.err;
        const Finished allowed = exec(
            {"--allow-root-owner",
             "--workspace",
             dir.path(),
             "--",
             "sh",
             "-c",
             "pwd; cp in.txt out.txt"}
        );
        EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
    }
    EXPECT_EQ(read_text(dir.path() + "/out.txt"), "hello");
}

TEST(Exec, BadUsageIsExitTwoWithARemedy) {
    const Finished none = exec({});
    EXPECT_EQ(none.exit_code, 2);
    EXPECT_NE(none.err.find("--"), std::string::npos);
    const Finished bad = exec({"--timeout", "soon", "--", "true"});
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_NE(bad.err.find("500ms"), std::string::npos) << bad.err;
}

// Runs ars with a pipe as its stdout that stays open and that nobody reads.
std::vector<std::string> unread(const std::string& directory, const std::string& arguments) {
    return {
        "bash",
        "-c",
        "mkfifo \"$1/p\"; exec 3<>\"$1/p\"; exec \"$0\" exec " + arguments + " >&3 2>&1",
        ars_binary(),
        directory
    };
}

TEST(Exec, ReaderWhoDoesNotReadDoesNotStallTheTimeLimit) {
    const TempDir dir;
    EXPECT_EQ(run(unread(dir.path(), "--timeout 1s -- yes")).exit_code, 124);
}

TEST(Exec, ReaderWhoIsSlowGetsEverything) {
    const Finished done = run(
        {"bash", "-c", "\"$0\" exec --timeout 60s -- seq 400000 | (sleep 1; wc -c)", ars_binary()}
    );
    EXPECT_EQ(done.out, "2688895\n") << done.err;
}

TEST(Exec, BatchReaderWhoDoesNotReadDoesNotStallTheLimitsOfWhatGoesOn) {
    const TempDir dir;
    // The second answer does not fit into the pipe.
    const Process ars(
        unread(dir.path(), "--batch"),
        {},
        "{\"command\": \"sleep 6067\", \"wait\": \"0s\", \"timeout\": \"3s\"}\n"
        "{\"command\": \"seq 100000\"}\n"
    );
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (processes_with("6067") == 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(processes_with("6067"), 1) << "it never ran";
    while (processes_with("6067") != 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(processes_with("6067"), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && \
    !__has_feature(thread_sanitizer)  // those are not linked with the entry
TEST(Exec, ItsTemplateIsStartedBeforeTheProgramItself) {
    const Process ars(
        {ars_binary(), "exec", "--batch"},
        {},
        "{\"command\": \"sleep 6068\", \"timeout\": \"30s\"}\n"
    );
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (processes_with("6068") == 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
    }
    ASSERT_EQ(processes_with("6068"), 1) << "it never ran";
    // A template that was started later comes from a file which stays open here.
    for (const auto& fd :
         std::filesystem::directory_iterator("/proc/" + std::to_string(ars.pid()) + "/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(fd.path(), gone).string();
        EXPECT_EQ(target.find("ars-scope-init"), std::string::npos) << target;
    }
}
#endif

TEST(Exec, NeedsNoStandardDescriptor) {
    const Finished done = run({"bash", "-c", "\"$0\" exec -- echo there <&- 2>&-", ars_binary()});
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_EQ(done.out, "there\n");
}

}  // namespace
}  // namespace ars::tests
