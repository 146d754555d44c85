#include "fsmount/mount_plan.hpp"

#include "fsmount/host_tables.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include <sys/socket.h>
#include <sys/un.h>

namespace ars::fsmount {
namespace {

class MountPlanTest : public WorkspaceTest {
  protected:
    MountPlan plan(const PlanOptions& options = {}) const {
        auto made = make_mount_plan(*workspace_, options);
        EXPECT_TRUE(made) << made.error().message;
        return std::move(*made);
    }
    // In the order in which they are made.
    static std::vector<Mount> all(const MountPlan& plan) {
        std::vector<Mount> mounts = *plan.image;
        mounts.insert(mounts.end(), plan.mounts.begin(), plan.mounts.end());
        return mounts;
    }
    // The last entry for `guest` is what a process sees there.
    static const Mount* at(const MountPlan& plan, const std::string& guest) {
        for (const auto* list : {&plan.mounts, plan.image.get()}) {
            for (auto it = list->rbegin(); it != list->rend(); ++it) {
                if (it->guest == guest) {
                    return &*it;
                }
            }
        }
        return nullptr;
    }
};

TEST_F(MountPlanTest, ShowsTheImageReadOnlyAndTheWorkspaceWritable) {
    const MountPlan made = plan();
    ASSERT_NE(at(made, "/usr"), nullptr);
    EXPECT_EQ(at(made, "/usr")->kind, MountKind::bind);
    EXPECT_TRUE(at(made, "/usr")->read_only);
    const Mount* user_data = at(made, "/home/gem/user-data");
    ASSERT_NE(user_data, nullptr);
    EXPECT_FALSE(user_data->read_only);
    EXPECT_EQ(user_data->source, workspace_->user_data_source());
    const Mount* projection = at(made, "/home/gem/skills");
    ASSERT_NE(projection, nullptr);
    EXPECT_EQ(projection->kind, MountKind::bind);
    EXPECT_TRUE(projection->read_only);
    EXPECT_EQ(at(made, "/proc")->kind, MountKind::proc);
    EXPECT_FALSE(made.idmapped);
}

TEST_F(MountPlanTest, OnlyUserDataAndOwnFileSystemsAreWritable) {
    for (const Mount& mount : all(plan())) {
        if (!mount.read_only && mount.kind == MountKind::bind) {
            EXPECT_EQ(mount.guest, "/home/gem/user-data");
        }
        if (mount.kind == MountKind::tmpfs) {
            EXPECT_GT(mount.size_bytes, 0U) << mount.guest;
            EXPECT_GT(mount.inodes, 0U) << mount.guest;
        }
    }
}

TEST_F(MountPlanTest, BindsNothingOfTheHostButTheImageAndTheWorkspace) {
    const std::set<std::string> image = {
        "bin", "sbin", "usr", "etc", "opt", "var", "srv", "nix", "app"
    };
    for (const Mount& mount : all(plan())) {
        if (mount.kind != MountKind::bind || mount.guest.starts_with("/home/gem/")) {
            continue;
        }
        const std::string name = mount.guest.substr(1);
        EXPECT_TRUE(image.contains(name) || name.starts_with("lib")) << mount.guest;
        EXPECT_EQ(mount.source, mount.guest);
    }
    for (const char* hidden : {"/mnt", "/media", "/boot", "/lost+found", "/work", "/data"}) {
        EXPECT_EQ(at(plan(), hidden), nullptr) << hidden;
    }
    EXPECT_EQ(at(plan(), "/root")->kind, MountKind::directory);
    EXPECT_EQ(at(plan(), "/run")->kind, MountKind::directory);
}

TEST_F(MountPlanTest, ExtraTopLevelNamesAreShownWhenAsked) {
    PlanOptions options;
    options.extra_visible = {"media"};
    const MountPlan made = plan(options);
    if (!exists("/media")) {
        GTEST_SKIP() << "this host has no /media";
    }
    ASSERT_NE(at(made, "/media"), nullptr);
    EXPECT_EQ(at(made, "/media")->kind, MountKind::bind);
}

TEST_F(MountPlanTest, HidesDataConfigurationAndKeyFilesInsideTheImage) {
    PlanOptions options;
    options.data_dir = "/usr/share";
    options.users_dir = "/usr/share/doc";
    options.hidden = {"/etc/passwd", "/etc/does-not-exist"};
    const MountPlan made = plan(options);
    ASSERT_NE(at(made, "/usr/share"), nullptr);
    EXPECT_EQ(at(made, "/usr/share")->kind, MountKind::hide_directory);
    EXPECT_EQ(at(made, "/usr/share/doc"), nullptr) << "already covered";
    ASSERT_NE(at(made, "/etc/passwd"), nullptr);
    EXPECT_EQ(at(made, "/etc/passwd")->kind, MountKind::hide_file);
    EXPECT_EQ(at(made, "/etc/does-not-exist"), nullptr);
    if (exists("/etc/shadow")) {
        EXPECT_EQ(at(made, "/etc/shadow")->kind, MountKind::hide_file);
    }
}

TEST_F(MountPlanTest, ATopLevelDirectoryThatIsTheDataIsNotShownAtAll) {
    PlanOptions options;
    options.data_dir = "/srv";
    if (!exists("/srv")) {
        GTEST_SKIP() << "this host has no /srv";
    }
    EXPECT_EQ(at(plan(options), "/srv"), nullptr);
    EXPECT_NE(at(plan(), "/srv"), nullptr);
}

TEST_F(MountPlanTest, C68CoversUnixSocketsThatLieInTheImage) {
    const std::string path = "/var/lib/ars-test-" + std::to_string(::getpid()) + ".sock";
    const base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        GTEST_SKIP() << "may not make a socket in /var/lib";
    }
    const MountPlan made = plan();
    ::unlink(path.c_str());
    ASSERT_NE(at(made, path), nullptr);
    EXPECT_EQ(at(made, path)->kind, MountKind::hide_file);
}

TEST_F(MountPlanTest, EveryMountPointExistsBeforeItIsMountedOn) {
    std::set<std::string> directories = {"/"};
    std::vector<std::string> bound;
    for (const Mount& mount : all(plan())) {
        const std::string parent =
            mount.guest.substr(0, std::max<std::size_t>(mount.guest.rfind('/'), 1));
        const auto holds = [&](const std::string& directory) {
            return is_within(mount.guest, directory);
        };
        const bool in_bind = std::ranges::any_of(bound, holds);
        switch (mount.kind) {
            case MountKind::directory:
                EXPECT_TRUE(directories.contains(parent)) << mount.guest;
                directories.insert(mount.guest);
                break;
            case MountKind::symlink:
            case MountKind::device:
                EXPECT_TRUE(directories.contains(parent)) << mount.guest;
                break;
            default:
                EXPECT_TRUE(directories.contains(mount.guest) || in_bind) << mount.guest;
        }
        if (mount.kind == MountKind::bind) {
            bound.push_back(mount.guest);
        }
    }
}

TEST_F(MountPlanTest, WithoutSkillsTheGuestSeesAnEmptyReadOnlyDirectory) {
    auto opened = open_external_workspace(workspace_->user_data_source(), false);
    ASSERT_TRUE(opened) << opened.error().message;
    const auto made = make_mount_plan(**opened, {});
    ASSERT_TRUE(made);
    EXPECT_EQ(at(*made, "/home/gem/skills")->kind, MountKind::hide_directory);
}

TEST_F(MountPlanTest, WhatToolsMayWriteIsPartOfOneBoundedFileSystem) {
    const MountPlan made = plan();
    const auto own = [](const Mount& mount) { return mount.kind == MountKind::tmpfs; };
    EXPECT_EQ(std::ranges::count_if(all(made), own), 1);
    for (const char* place : {"/tmp", "/dev/shm", "/home/gem"}) {
        ASSERT_NE(at(made, place), nullptr) << place;
        EXPECT_EQ(at(made, place)->kind, MountKind::alias) << place;
        EXPECT_TRUE(at(made, place)->source.starts_with("/tmp/")) << place;
    }
}

}  // namespace
}  // namespace ars::fsmount
