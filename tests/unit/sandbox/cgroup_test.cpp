// What can be tried of cgroups on a host without delegated controllers: finding our own, refusing,
// a real group made, filled, killed and removed, and scopes that live in one. That the kernel's
// figures of a group become an outcome is shown with figures that a test writes.
#include "sandbox/cgroup.hpp"

#include "base/fd.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::sandbox {
namespace {

constexpr const char* kMounts =
    "25 1 0:22 / /proc rw - proc proc rw\n"
    "31 25 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Cgroups, OwnDirectoryIsFoundBelowTheMount) {
    EXPECT_EQ(
        cgroup_directory("0::/system.slice/ars.service\n", kMounts),
        "/sys/fs/cgroup/system.slice/ars.service"
    );
    EXPECT_EQ(cgroup_directory("4:memory:/a\n0::/\n", kMounts), "/sys/fs/cgroup");
    EXPECT_EQ(cgroup_directory("4:memory:/a\n", kMounts), "") << "no v2 at all";
    EXPECT_EQ(cgroup_directory("0::/../sibling\n", kMounts), "") << "outside our namespace";
    const std::string inner = "31 25 0:27 /pod/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    EXPECT_EQ(cgroup_directory("0::/pod/c1/x\n", inner), "/sys/fs/cgroup/x");
    EXPECT_EQ(cgroup_directory("0::/pod/c12\n", inner), "");
}

// A directory that looks like a cgroup, where every write succeeds.
class FakeCgroup : public ::testing::Test {
  protected:
    FakeCgroup() {
        char name[] = "/tmp/ars-cgroup-test-XXXXXX";
        directory_ = ::mkdtemp(name);
    }
    ~FakeCgroup() override {
        for (const char* name : {"cgroup.controllers", "cgroup.procs", "cgroup.subtree_control"}) {
            (void)::unlink((directory_ + "/" + name).c_str());
        }
        (void)::rmdir((directory_ + "/ars-server").c_str());
        (void)::rmdir(directory_.c_str());
    }
    void put(const std::string& name, const std::string& text) const {
        std::ofstream(directory_ + "/" + name) << text;
    }
    [[nodiscard]] std::string get(const std::string& name) const {
        return base::read_file(directory_ + "/" + name, 4096).value_or("absent");
    }
    [[nodiscard]] bool exists(const std::string& name) const {
        struct stat info{};
        return ::stat((directory_ + "/" + name).c_str(), &info) == 0;
    }
    std::string directory_;
};

TEST_F(FakeCgroup, WithoutTheControllersNothingIsTouched) {
    put("cgroup.controllers", "cpu io pids\n");
    put("cgroup.procs", "1\n");
    const auto tree = CgroupTree::prepare_in(directory_);
    ASSERT_FALSE(tree);
    EXPECT_EQ(tree.error().code, "no_cgroup");
    EXPECT_FALSE(exists("ars-server"));
}

TEST_F(FakeCgroup, WhatAKilledServersScopesLeftIsRemoved) {
    put("cgroup.controllers", "memory pids\n");
    put("cgroup.procs", "");
    put("cgroup.subtree_control", "");
    ASSERT_EQ(::mkdir((directory_ + "/ars-scope-12-3").c_str(), 0755), 0);
    ASSERT_TRUE(CgroupTree::prepare_in(directory_));
    EXPECT_FALSE(exists("ars-scope-12-3"));
}

TEST_F(FakeCgroup, ControllersAreEnabledBesideALeafForTheServer) {
    put("cgroup.controllers", "cpu memory pids\n");
    put("cgroup.procs", "");
    put("cgroup.subtree_control", "");
    const auto tree = CgroupTree::prepare_in(directory_);
    ASSERT_TRUE(tree) << tree.error().message;
    EXPECT_TRUE(exists("ars-server"));
    EXPECT_EQ(get("cgroup.subtree_control"), "+memory +pids");
    // Its next server starts in the leaf.
    put("cgroup.subtree_control", "memory pids\n");
    const auto again = CgroupTree::prepare_in(directory_ + "/ars-server");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->directory(), directory_);
}

TEST_F(FakeCgroup, ProcessesThatCanNotBeMovedUndoIt) {
    put("cgroup.controllers", "memory pids\n");
    put("cgroup.procs", "1\n");
    const auto tree = CgroupTree::prepare_in(directory_);  // the leaf has no cgroup.procs here
    ASSERT_FALSE(tree);
    EXPECT_FALSE(exists("ars-server"));
}

TEST_F(FakeCgroup, GroupThatCanNotBeBoundedIsRemoved) {
    put("cgroup.controllers", "memory pids\n");
    put("cgroup.procs", "");
    put("cgroup.subtree_control", "");
    const auto tree = CgroupTree::prepare_in(directory_);
    ASSERT_TRUE(tree);
    EXPECT_FALSE(tree->make("ars-scope-1", 1 << 28, 512)) << "a plain directory has no memory.max";
    EXPECT_FALSE(exists("ars-scope-1"));
}

// A new group of the hierarchy that this test is in; empty where that can't be written.
std::string make_real_group(const std::string& name) {
    const auto own = base::read_file("/proc/self/cgroup", 65536);
    const auto mounts = base::read_file("/proc/self/mountinfo", 1 << 20);
    const std::string parent = own && mounts ? cgroup_directory(*own, *mounts) : std::string();
    std::string directory = parent + "/ars-test-" + std::to_string(::getpid()) + "-" + name;
    const bool made = !parent.empty() && ::mkdir(directory.c_str(), 0755) == 0;
    return made ? directory : std::string();
}

TEST(Cgroups, C99_RealGroupHoldsAProcessKillsItAndGoes) {
    const std::string directory = make_real_group("1");
    if (directory.empty()) {
        GTEST_SKIP() << "no writable cgroup v2 on this host";
    }
    ScopeCgroup group(directory);
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    ASSERT_TRUE(group.add(child));
    EXPECT_FALSE(group.remove()) << "there is a process in it";
    EXPECT_EQ(group.memory().oom_kills, 0U);
    if (!group.kill()) {
        ::kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_TRUE(group.remove());
    EXPECT_NE(::access(directory.c_str(), F_OK), 0);
}

namespace scopes {

using namespace ars::sandbox::testing;

class CgroupScopes : public ::testing::TestWithParam<Tier> {
  protected:
    // Scopes of a policy with a memory limit, in groups that `make` gives.
    std::unique_ptr<Bench> bench(MakeCgroup make) const {
        SandboxOptions options;
        options.cgroups = std::move(make);
        auto made = std::make_unique<Bench>(IoBackend::automatic, std::move(options));
        made->policy().name = "bounded";
        made->policy().memory = 64 * base::limits::kMiB;
        made->tier() = GetParam();
        return made;
    }
};

TEST_P(CgroupScopes, ScopeIsInItsGroupFromTheFirstCommandOnAndTheGroupGoesWithIt) {
    std::string group;
    std::uint64_t bytes = 0;
    std::uint32_t tasks = 0;
    auto make = [&](std::string_view name, std::uint64_t memory, std::uint32_t processes) {
        bytes = memory;
        tasks = processes;
        group = make_real_group(std::string(name));
        return group.empty() ? base::fail(base::ErrorKind::unavailable, "no_cgroup", "none")
                             : base::Result<ScopeCgroup>(ScopeCgroup(group));
    };
    const auto scopes = bench(make);
    ARS_NEEDS_SCOPES(*scopes);
    if (group.empty()) {
        GTEST_SKIP() << "no writable cgroup v2 on this host";
    }
    EXPECT_EQ(bytes, 64 * base::limits::kMiB);
    EXPECT_GT(tasks, scopes->policy().processes);
    // It sees its group from its own cgroup namespace's root, which is elsewhere.
    const std::string name = group.substr(group.rfind('/') + 1);
    const Outcome inside = scopes->sh("grep -c '^0::.*/" + name + "$' /proc/self/cgroup");
    EXPECT_EQ(inside.out, "1\n");
    EXPECT_NE(base::read_file(group + "/cgroup.procs", 4096).value_or(""), "") << "its init";
    scopes->run_void(scopes->sandbox().close());
    EXPECT_NE(::access(group.c_str(), F_OK), 0);
}

TEST_P(CgroupScopes, InitThatCanNotBeMovedHasItsWatch) {
    int asked = 0;
    auto make = [&](std::string_view, std::uint64_t, std::uint32_t) {
        ++asked;
        return base::Result<ScopeCgroup>(ScopeCgroup("/proc/no-such-group"));
    };
    const auto scopes = bench(make);
    ARS_NEEDS_SCOPES(*scopes);
    EXPECT_EQ(asked, 1);
    const std::string hog = scopes->install("memory_hog");
    const Outcome outcome = scopes->sh(hog + " private 300");
    EXPECT_EQ(outcome.status, OutcomeStatus::oom);
    EXPECT_EQ(outcome.detail, "watch");
}

// The directory is a plain one: the figures are this test's.
TEST_P(CgroupScopes, KillThatTheKernelCountedIsAnOomOfTheCommandThatItEnded) {
    char name[] = "/tmp/ars-cgroup-test-XXXXXX";
    const std::string group = ::mkdtemp(name);
    const auto put = [&group](const char* file, const std::string& text) {
        std::ofstream(group + "/" + file) << text;
    };
    put("cgroup.procs", "");
    put("memory.peak", "67108864\n");
    put("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n");
    const auto scopes = bench([&](std::string_view, std::uint64_t, std::uint32_t) {
        return base::Result<ScopeCgroup>(ScopeCgroup(group));
    });
    ARS_NEEDS_SCOPES(*scopes);
    EXPECT_EQ(scopes->sh("kill -9 $$").status, OutcomeStatus::signalled) << "not for its memory";
    const auto killed = [&](const std::string& script, int kills) {
        Command command = shell("echo; sleep 0.3; " + script);
        command.cwd = scopes->guest();
        command.on_output = [&put, kills](int, std::string_view) {
            put("memory.events", "oom_kill " + std::to_string(kills) + "\n");
            return true;
        };
        return scopes->command(std::move(command));
    };
    const Outcome outcome = killed("kill -9 $$", 1);
    EXPECT_EQ(outcome.status, OutcomeStatus::oom);
    EXPECT_EQ(outcome.detail, "cgroup");
    EXPECT_EQ(outcome.peak_bytes, 67108864U);
    EXPECT_EQ(outcome.limit_bytes, 64 * base::limits::kMiB);
    EXPECT_EQ(killed("exit 2", 2).status, OutcomeStatus::oom) << "make, whose compiler was killed";
    EXPECT_EQ(killed("exit 0", 3).status, OutcomeStatus::exited);
    EXPECT_EQ(scopes->sh("exit 1").status, OutcomeStatus::exited) << "it was the one before";
    EXPECT_EQ(scopes->sandbox().counters().oom_kills, 3U);
    for (const char* file : {"cgroup.procs", "memory.peak", "memory.events", "cgroup.kill"}) {
        (void)::unlink((group + "/" + file).c_str());
    }
    (void)::rmdir(group.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    In,
    CgroupScopes,
    ::testing::Values(Tier::namespaces, Tier::landlock),
    [](const auto& info) { return info.param == Tier::landlock ? "landlock" : "namespaces"; }
);

}  // namespace scopes

}  // namespace
}  // namespace ars::sandbox
