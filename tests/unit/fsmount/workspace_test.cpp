#include "fsmount/workspace.hpp"

#include "fsmount/layout.hpp"
#include "fsmount/mount_plan.hpp"
#include "fsmount/paths.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <gmock/gmock.h>

#include <sys/wait.h>

namespace ars::fsmount {
namespace {

using ::testing::HasSubstr;

class UserWorkspace : public WorkspaceTest {};

TEST_F(UserWorkspace, IsMadeForGemAloneAndOpenedAgain) {
    for (const std::string& host :
         {user_data(""), skills(""), directory_.path() + "/users/alice"}) {
        EXPECT_EQ(mode_of(host), 0700U) << host;
        struct stat status{};
        ASSERT_EQ(::stat(host.c_str(), &status), 0);
        EXPECT_EQ(status.st_uid, ::geteuid() == 0 ? kGemUid : ::geteuid());
    }
    put(user_data("f"), "kept");
    ASSERT_TRUE(
        open_user_workspace(directory_.path() + "/users", directory_.path() + "/skills", "alice")
    );
    EXPECT_EQ(get(user_data("f")), "kept");
}

TEST_F(UserWorkspace, K131AnOddUidStaysInsideUsers) {
    const auto odd =
        open_user_workspace(directory_.path() + "/users", directory_.path() + "/skills", "../../x");
    ASSERT_TRUE(odd);
    EXPECT_THAT((*odd)->user_data_source(), HasSubstr("/users/uid-"));
    EXPECT_FALSE(exists(directory_.path() + "/x"));
}

TEST_F(UserWorkspace, K132ALinkInTheIdentityPathPreventsCreation) {
    const std::string users = directory_.path() + "/users";
    ASSERT_EQ(::symlink("alice", (users + "/mallory").c_str()), 0);
    const auto opened = open_user_workspace(users, directory_.path() + "/skills", "mallory");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, "link_in_path");
}

TEST_F(UserWorkspace, K147WorkdirsAreMade0700WithoutFollowingLinks) {
    const mode_t old = ::umask(0);
    ASSERT_TRUE(workspace_->make_workdir("projects/p1"));
    ::umask(old);
    EXPECT_EQ(mode_of(user_data("projects")), 0700U);
    EXPECT_EQ(mode_of(user_data("projects/p1")), 0700U);
    EXPECT_TRUE(workspace_->make_workdir("projects/p1"));
    EXPECT_TRUE(workspace_->make_workdir(""));
    link("projects", "l");
    EXPECT_EQ(workspace_->make_workdir("l/p2").error().code, "link_in_path");
    put(user_data("file"), "");
    EXPECT_EQ(workspace_->make_workdir("file/x").error().code, "not_a_directory");
    EXPECT_EQ(workspace_->make_workdir("../x").error().code, "invalid_workdir");
}

class ExternalWorkspace : public WorkspaceTest {
  protected:
    ExternalWorkspace() : place_(directory_.path() + "/external") { ::mkdir(place_.c_str(), 0755); }

    // Runs `work` as gem in a process of its own; its result is the exit code.
    template <class Work>
    static int as_gem(Work work) {
        const pid_t child = ::fork();
        if (child == 0) {
            const bool dropped = ::setresgid(kGemGid, kGemGid, kGemGid) == 0 &&
                                 ::setresuid(kGemUid, kGemUid, kGemUid) == 0;
            ::_exit(dropped ? work() : 99);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::string place_;
};

TEST_F(ExternalWorkspace, ADirectoryOfOurOwnIsUsedAsItIs) {
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(place_.c_str(), kGemUid, kGemGid), 0);
    }
    const auto opened = open_external_workspace(place_, false);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ((*opened)->user_data_source(), place_);
    EXPECT_FALSE((*opened)->idmapped());
    EXPECT_EQ(
        open_external_workspace(place_ + "/missing", false).error().code, "workspace_unavailable"
    );
}

TEST_F(ExternalWorkspace, ADirectoryOfRootIsRefusedWithBothRemedies) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "needs root to own the directory";
    }
    const auto opened = open_external_workspace(place_, false);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, "workspace_owner");
    EXPECT_THAT(opened.error().message, HasSubstr("--allow-root-owner"));
    EXPECT_THAT(opened.error().message, HasSubstr("chown -R 1000:1000 " + place_));
}

TEST_F(ExternalWorkspace, AForeignOwnerIsMappedToGemAndKeepsItsFilesOnDisk) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "needs root for an id-mapped mount";
    }
    for (const uid_t owner : {0U, 1234U}) {
        ASSERT_EQ(::chown(place_.c_str(), owner, owner), 0);
        const auto opened = open_external_workspace(place_, true);
        if (!opened && owner != 0) {
            GTEST_SKIP() << "no id-mapped mounts here: " << opened.error().message;
        }
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_TRUE((*opened)->idmapped());
        EXPECT_TRUE((*opened)->user_data_source().empty());
        const std::string name = "by-gem-" + std::to_string(owner);
        EXPECT_EQ(
            as_gem([&] {
                const Paths paths(*opened, std::string(kUserData));
                return paths.write_file(name, "x", {}) ? 0 : 1;
            }),
            0
        );
        struct stat status{};
        ASSERT_EQ(::stat((place_ + "/" + name).c_str(), &status), 0);
        EXPECT_EQ(status.st_uid, owner);
        EXPECT_EQ(status.st_gid, owner);
    }
}

TEST_F(ExternalWorkspace, EachPlanTakesAMountOfItsOwnUntilNoneIsLeft) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "needs root for detached mounts";
    }
    const auto opened = open_external_workspace(place_, true);
    if (!opened) {
        GTEST_SKIP() << opened.error().message;
    }
    int plans = 0;
    int raw = -1;
    for (; plans < 100; ++plans) {
        const auto plan = make_mount_plan(**opened, {});
        if (!plan) {
            EXPECT_EQ(plan.error().code, "no_spare_mount");
            break;
        }
        EXPECT_TRUE(plan->idmapped);
        for (const Mount& mount : plan->mounts) {
            if (mount.guest == kUserData && mount.kind == MountKind::bind) {
                ASSERT_NE(mount.fd, nullptr);
                EXPECT_NE(mount.fd->get(), (*opened)->user_data());
                raw = mount.fd->get();
            }
        }
    }
    EXPECT_GE(raw, 0);
    EXPECT_GT(plans, 1);
    EXPECT_LT(plans, 100);
}

TEST_F(ExternalWorkspace, AGemDirectoryBehindAClosedOneIsReachedThroughAMount) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "needs root";
    }
    const std::string closed = directory_.path() + "/closed";
    ASSERT_EQ(::mkdir(closed.c_str(), 0700), 0);
    ASSERT_EQ(::rename(place_.c_str(), (closed + "/w").c_str()), 0);
    ASSERT_EQ(::chown((closed + "/w").c_str(), kGemUid, kGemGid), 0);
    const auto opened = open_external_workspace(closed + "/w", false);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE((*opened)->user_data_source().empty());
    EXPECT_FALSE((*opened)->idmapped());
    EXPECT_EQ(
        as_gem([&] {
            const Paths paths(*opened, std::string(kUserData));
            return paths.write_file("f", "x", {}) ? 0 : 1;
        }),
        0
    );
    EXPECT_EQ(get(closed + "/w/f"), "x");
}

}  // namespace
}  // namespace ars::fsmount
