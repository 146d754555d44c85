#include "fsmount/layout.hpp"

#include <gtest/gtest.h>

namespace ars::fsmount {
namespace {

TEST(Layout, APlainUidIsItsOwnDirectoryName) {
    EXPECT_EQ(safe_uid("alice_B-7"), "alice_B-7");
    EXPECT_EQ(safe_uid(std::string(128, 'a')), std::string(128, 'a'));
}

TEST(Layout, K131AnyOtherUidBecomesAHashThatNamesNoPath) {
    for (const std::string uid :
         {"", "../x", "a/b", "a b", "a;b", ".", "..", "/etc", "a//b", "http://x", "\xc3\xa4"}) {
        const std::string name = safe_uid(uid);
        EXPECT_TRUE(name.starts_with("uid-")) << uid;
        EXPECT_EQ(name.size(), 4U + 64U) << uid;
        EXPECT_EQ(name.find('/'), std::string::npos) << uid;
    }
    EXPECT_NE(safe_uid("a/b"), safe_uid("a/c"));
    EXPECT_TRUE(safe_uid(std::string(129, 'a')).starts_with("uid-"));
}

TEST(Layout, K131UnsafeWorkdirsAreRefused) {
    for (const std::string path :
         {"../x", "a/../b", "/abs", "a//b", "a/", "./a", "a/.", "..", ".", "a\\b", "http://x/y"}) {
        const auto checked = check_workdir(path);
        ASSERT_FALSE(checked) << path;
        EXPECT_EQ(checked.error().code, "invalid_workdir");
    }
    EXPECT_FALSE(check_workdir(std::string("a\0b", 3)));
    EXPECT_FALSE(check_workdir(std::string(256, 'x')));
}

TEST(Layout, RelativeWorkdirsAreFineAndLieInUserData) {
    for (const std::string path : {"", "projects/1", "a b/c;d", "..a/b..", "\xc3\xa4"}) {
        EXPECT_TRUE(check_workdir(path)) << path;
    }
    EXPECT_EQ(guest_workdir(""), "/home/gem/user-data");
    EXPECT_EQ(guest_workdir("projects/1"), "/home/gem/user-data/projects/1");
}

}  // namespace
}  // namespace ars::fsmount
