// What can be tried of cgroups on a host without delegated controllers: finding our own, refusing,
// and a real group made, filled, killed and removed.
#include "sandbox/cgroup.hpp"

#include "base/fd.hpp"

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

TEST(Cgroups, C99_RealGroupHoldsAProcessKillsItAndGoes) {
    const auto own = base::read_file("/proc/self/cgroup", 65536);
    const auto mounts = base::read_file("/proc/self/mountinfo", 1 << 20);
    ASSERT_TRUE(own && mounts);
    const std::string parent = cgroup_directory(*own, *mounts);
    const std::string directory = parent + "/ars-test-" + std::to_string(::getpid());
    if (parent.empty() || ::mkdir(directory.c_str(), 0755) != 0) {
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

}  // namespace
}  // namespace ars::sandbox
