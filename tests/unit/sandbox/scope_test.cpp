// The life of scopes: made once, found again, replaced when dead, released when idle, gone with the
// server.
#include "sandbox/scope.hpp"

#include "base/fd.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace ars::sandbox::testing {
namespace {

class ScopeLife : public ::testing::TestWithParam<IoBackend> {};

// Inits of scopes. The template that they are cloned from lives as long as the sandbox.
std::vector<pid_t> own_children() {
    std::vector<pid_t> children;
    const std::string self = std::to_string(::getpid());
    std::ifstream file("/proc/self/task/" + self + "/children");
    for (pid_t pid = 0; file >> pid;) {
        std::string name;
        std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
        if (name != "ars-template") {
            children.push_back(pid);
        }
    }
    return children;
}

base::Task<void> acquire_into(
    Sandbox* sandbox, std::string workspace, std::vector<std::uint64_t>* generations
) {
    auto spec = [workspace]() -> base::Result<ScopeSpec> {
        return small_spec({}, Tier::namespaces, workspace);
    };
    auto scope = co_await sandbox->acquire({"bob", "root", "default"}, spec);
    generations->push_back(scope ? (*scope)->generation() : 0);
}

base::Task<void> acquire_eight(
    Sandbox* sandbox, std::string workspace, std::vector<std::uint64_t>* out
) {
    base::TaskGroup group(co_await asio::this_coro::executor);
    for (int i = 0; i < 8; ++i) {
        group.spawn(acquire_into(sandbox, workspace, out));
    }
    co_await group.join();
}

TEST_P(ScopeLife, ConcurrentAcquiresOfOneKeyMakeOneScope) {
    Bench bench(GetParam());
    ARS_NEEDS_SCOPES(bench);
    std::vector<std::uint64_t> generations;
    bench.run_void(acquire_eight(&bench.sandbox(), bench.workspace(), &generations));
    ASSERT_EQ(generations.size(), 8U);
    EXPECT_EQ(std::set(generations.begin(), generations.end()).size(), 1U);
    EXPECT_NE(generations.front(), 0U);
    EXPECT_EQ(bench.sandbox().size(), 2U);  // alice's and bob's
}

TEST_P(ScopeLife, StateStaysBetweenCommandsOfOneScopeAndIsNotSharedWithAnother) {
    Bench bench(GetParam());
    ARS_NEEDS_SCOPES(bench);
    EXPECT_EQ(
        bench.command(shell("echo private > /tmp/a; echo shm > /dev/shm/a"), "one").shell_code(), 0
    );
    EXPECT_EQ(bench.command(shell("cat /tmp/a /dev/shm/a"), "one").out, "private\nshm\n");
    EXPECT_EQ(
        bench.command(shell("ls -A /tmp /dev/shm"), "two").out, "/dev/shm:\n\n/tmp:\n"
    );  // C67
}

TEST_P(ScopeLife, DeadScopeIsToldToItsCommandAndReplacedByTheNextAcquire) {
    Bench bench(GetParam());
    ARS_NEEDS_SCOPES(bench);
    const auto before = bench.scope();
    const auto children = own_children();
    ASSERT_EQ(children.size(), 1U);
    // The command asks for it: when its marker appears, its init is killed from outside.
    Command command = shell("echo up; sleep 60");
    command.on_output = [&](int, std::string_view) {
        return ::kill(children.front(), SIGKILL) == 0;
    };
    const Outcome outcome = bench.run(before->run(std::move(command)));
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled);
    EXPECT_EQ(outcome.detail, "the sandbox ended while the command ran");
    EXPECT_FALSE(before->alive());
    const auto after = bench.scope();
    EXPECT_GT(after->generation(), before->generation());
    EXPECT_EQ(bench.sh("echo again").out, "again\n");
}

base::Task<bool> gone_within(Sandbox* sandbox, base::milliseconds limit) {
    const auto deadline = base::Deadline::after(limit);
    while (sandbox->size() > 0 && !deadline.passed()) {
        co_await base::sleep_until(base::Deadline::after(20ms));
    }
    co_return sandbox->size() == 0;
}

TEST_P(ScopeLife, C23_IdleScopeIsReleasedButNeverWhileACommandRuns) {
    SandboxOptions options;
    options.idle_release = 1s;
    Bench bench(GetParam(), options);
    ARS_NEEDS_SCOPES(bench);
    const auto scope = bench.scope();
    const Outcome outcome = bench.run(scope->run(shell("sleep 2.5; echo still here")));
    EXPECT_EQ(outcome.out, "still here\n");
    EXPECT_TRUE(bench.run(gone_within(&bench.sandbox(), 30s)));
    EXPECT_EQ(bench.run(scope->run(shell("true"))).detail, "the sandbox is gone");
}

TEST_P(ScopeLife, ReleaseEndsEveryProcessOfTheScope) {
    Bench bench(GetParam());
    ARS_NEEDS_SCOPES(bench);
    bench.sh("sleep 1000 & setsid sleep 1000 & disown -a");
    bench.run_void(bench.sandbox().release({"alice", "root", "default"}));
    EXPECT_EQ(bench.sandbox().size(), 0U);
    EXPECT_TRUE(own_children().empty());
}

TEST_P(ScopeLife, FullTableIsATypedError) {
    SandboxOptions options;
    options.max_scopes = 1;
    Bench bench(GetParam(), options);
    ARS_NEEDS_SCOPES(bench);
    const auto second = bench.acquire("another");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, "scopes_full");
}

TEST_P(ScopeLife, FailedSetUpNamesStepAndErrnoAndLeavesNoChild) {
    Bench bench(GetParam());
    ARS_NEEDS_SCOPES(bench);
    auto spec = []() -> base::Result<ScopeSpec> {
        return small_spec({}, Tier::namespaces, "/nonexistent/workspace");
    };
    const auto made = bench.run(bench.sandbox().acquire({"alice", "broken", "default"}, spec));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "scope_setup_failed");
    EXPECT_EQ(made.error().sys_errno, ENOENT);
    EXPECT_NE(made.error().message.find("open_sources"), std::string::npos) << made.error().message;
    EXPECT_NE(made.error().message.find("/nonexistent/workspace"), std::string::npos);
    EXPECT_EQ(own_children().size(), 1U);  // alice's good scope
    EXPECT_EQ(bench.sandbox().size(), 1U);
}

// Does any process of this machine have `argument` in its command line?
bool anyone_runs(const std::string& argument) {
    bool found = false;
    DIR* const proc = ::opendir("/proc");
    while (const dirent* entry = ::readdir(proc)) {
        std::ifstream file("/proc/" + std::string(entry->d_name) + "/cmdline");
        std::stringstream text;
        text << file.rdbuf();
        found = found || text.str().find(argument) != std::string::npos;
    }
    ::closedir(proc);
    return found;
}

// Starts this program again as a "server" that holds a scope with three sleeping processes; see
// main_test.cpp.
pid_t start_server(const std::string& seconds, Tier tier, base::Fd& output) {
    auto pipe = base::make_pipe();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), 1);
    std::string program = "/proc/self/exe";
    std::string mode = "hold-a-scope";
    std::string argument = seconds;
    std::string walls = tier == Tier::landlock ? "landlock" : "namespaces";
    std::array<char*, 5> argv{program.data(), mode.data(), argument.data(), walls.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    output = std::move(pipe->read);
    return pid;
}

class ScopeAndServer : public ::testing::TestWithParam<Tier> {};

TEST_P(ScopeAndServer, NothingSurvivesAKillOfTheServer) {
    {
        Bench bench;
        bench.tier() = GetParam();
        ARS_NEEDS_SCOPES(bench);
    }
    const std::string seconds = "98765." + std::to_string(::getpid());
    base::Fd output;
    const pid_t server = start_server(seconds, GetParam(), output);
    char line[64] = {};
    ASSERT_GT(::read(output.get(), line, sizeof line - 1), 0);
    ASSERT_STREQ(line, "ready\n");
    ASSERT_TRUE(anyone_runs(seconds)) << "the processes to be missed must have been there";
    ASSERT_EQ(::kill(server, SIGKILL), 0);
    ::waitpid(server, nullptr, 0);
    bool left = true;
    const auto deadline = base::Deadline::after(5s);
    while (left && !deadline.passed()) {
        left = anyone_runs(seconds);
    }
    EXPECT_FALSE(left);
}

INSTANTIATE_TEST_SUITE_P(
    Tiers,
    ScopeAndServer,
    ::testing::Values(Tier::namespaces, Tier::landlock),
    [](const auto& info) { return info.param == Tier::landlock ? "landlock" : "namespaces"; }
);

INSTANTIATE_TEST_SUITE_P(
    Backends,
    ScopeLife,
    ::testing::Values(IoBackend::automatic, IoBackend::epoll),
    [](const auto& info) { return info.param == IoBackend::epoll ? "epoll" : "automatic"; }
);

}  // namespace
}  // namespace ars::sandbox::testing
