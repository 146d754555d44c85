#include "fsmount/access_plan.hpp"

#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <gmock/gmock.h>

namespace ars::fsmount {
namespace {

using ::testing::Contains;
using ::testing::Not;

class AccessPlanTest : public ::testing::Test {
  protected:
    AccessPlanTest() {
        for (const char* part : {"", "/etc", "/lib", "/lib/app", "/lib/app/data", "/lib/other"}) {
            ::mkdir((image_ + part).c_str(), 0755);
        }
        std::ofstream(image_ + "/etc/plain") << "x";
        std::ofstream(image_ + "/etc/secret") << "x";
        (void)::symlink("app", (image_ + "/lib/link").c_str());
        add(MountKind::bind, image_, image_);
    }
    Mount& add(MountKind kind, std::string guest, std::string source = {}) {
        Mount& mount = mounts_.mounts.emplace_back();
        mount.kind = kind;
        mount.guest = std::move(guest);
        mount.source = std::move(source);
        return mount;
    }
    std::vector<std::string> paths(Access access) const {
        const auto made = make_access_plan(mounts_, "/tmp/own");
        EXPECT_TRUE(made) << made.error().message;
        std::vector<std::string> out;
        for (const AccessRule& rule : made->rules) {
            if (rule.access == access) {
                out.push_back(rule.path);
            }
        }
        return out;
    }

    TemporaryDirectory directory_;
    std::string image_ = directory_.path() + "/image";
    MountPlan mounts_;
};

TEST_F(AccessPlanTest, ADirectoryWithNothingHiddenIsOneRule) {
    EXPECT_THAT(paths(Access::run), ::testing::ElementsAre(image_));
}

TEST_F(AccessPlanTest, WhatStandsBesideAHiddenDirectoryIsNamedLevelByLevel) {
    add(MountKind::hide_directory, image_ + "/lib/app/data");
    EXPECT_THAT(paths(Access::run), ::testing::ElementsAre(image_ + "/etc", image_ + "/lib/other"));
}

TEST_F(AccessPlanTest, AHiddenFileLeavesItsNeighbours) {
    add(MountKind::hide_file, image_ + "/etc/secret");
    EXPECT_THAT(paths(Access::run), ::testing::ElementsAre(image_ + "/etc/plain", image_ + "/lib"));
}

TEST_F(AccessPlanTest, C60_WhatIsNotThereYetIsHiddenToo) {
    add(MountKind::hide_directory, image_ + "/lib/absent/data");
    EXPECT_THAT(
        paths(Access::run),
        ::testing::ElementsAre(image_ + "/etc", image_ + "/lib/app", image_ + "/lib/other")
    );
}

TEST_F(AccessPlanTest, APrivateFileSystemOfTheScopeClosesWhatItWouldCover) {
    add(MountKind::tmpfs, image_ + "/lib/other");
    EXPECT_THAT(paths(Access::run), Contains(image_ + "/lib/app"));
    EXPECT_THAT(paths(Access::run), Not(Contains(image_ + "/lib/other")));
}

TEST_F(AccessPlanTest, OnlyThePrivateDirectoryIsWritableWithoutAWorkspace) {
    add(MountKind::tmpfs, "/tmp");
    add(MountKind::alias, "/dev/shm");
    EXPECT_THAT(paths(Access::write), ::testing::ElementsAre("/tmp/own"));
    EXPECT_THAT(paths(Access::shared_memory), ::testing::ElementsAre("/dev/shm"));
}

TEST_F(AccessPlanTest, AWorkspaceElsewhereIsRefused) {
    add(MountKind::bind, "/home/gem/user-data", image_).read_only = false;
    const auto made = make_access_plan(mounts_, "/tmp/own");
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "workspace_not_mountable");
}

}  // namespace
}  // namespace ars::fsmount
