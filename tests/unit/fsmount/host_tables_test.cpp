#include "fsmount/host_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::fsmount {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(HostTables, MountPointsAreTheFifthFieldDecoded) {
    EXPECT_THAT(
        parse_mount_points(
            "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
            "23 27 8:1 /a\\040b /mnt/with\\040space\\134 rw shared:1 - ext4 /dev/sda rw\n"
            "broken line\n"
            "24 27 0:22 / /sys rw - sysfs sysfs rw"
        ),
        ElementsAre("/proc", "/mnt/with space\\", "/sys")
    );
    EXPECT_THAT(host_mount_points(), Contains("/"));
}

TEST(HostTables, SocketPathsAreThoseWithAName) {
    EXPECT_THAT(
        parse_socket_paths(
            "Num       RefCount Protocol Flags    Type St Inode Path\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01 21 /run/app.sock\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01 22 @abstract\n"
            "0000000000000000: 00000003 00000000 00000000 0001 03 23\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01 24 /var/lib/a b.sock\n"
        ),
        ElementsAre("/run/app.sock", "/var/lib/a b.sock")
    );
}

TEST(HostTables, WithinIsAboutPartsNotLetters) {
    EXPECT_TRUE(is_within("/usr", "/usr"));
    EXPECT_TRUE(is_within("/usr/lib", "/usr"));
    EXPECT_FALSE(is_within("/usrlocal", "/usr"));
    EXPECT_FALSE(is_within("/us", "/usr"));
    EXPECT_TRUE(is_within("/x", "/"));
}

}  // namespace
}  // namespace ars::fsmount
