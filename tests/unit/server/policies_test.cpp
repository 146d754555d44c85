#include "server/policies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Policies, TheBuiltInOnesAreThereWithoutAConfiguration) {
    const Policies policies;
    EXPECT_THAT(policies.names(), ElementsAre("build", "debug", "default", "host"));
    const auto plain = policies.find("default");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->name, "default");
    EXPECT_EQ(plain->network, sandbox::Network::none);
    EXPECT_FALSE(plain->debug);
    EXPECT_FALSE(plain->shared_network);
    EXPECT_TRUE(policies.find("debug")->debug);
    EXPECT_EQ(policies.find("debug")->network, sandbox::Network::none);
    for (const char* name : {"build", "host"}) {
        EXPECT_EQ(policies.find(name)->network, sandbox::Network::host);
        EXPECT_TRUE(policies.find(name)->shared_network);
        EXPECT_FALSE(policies.find(name)->debug);
    }
}

TEST(Policies, EachOneIsAClassOfItsOwnAndSound) {
    PolicyConfig web;
    web.network = sandbox::Network::allowlist;
    web.allowed_hosts = {{"example.com"}};
    const Policies policies({{"web", web}});
    for (const std::string& name : policies.names()) {
        EXPECT_EQ(policies.find(name)->name, name);
        EXPECT_TRUE(sandbox::check_policy(*policies.find(name))) << name;
    }
}

TEST(Policies, AnOwnPolicyTakesTheWholePlaceOfABuiltInOne) {
    PolicyConfig build;
    build.memory = 512 * base::limits::kMiB;
    build.cpu = 1500ms;
    const Policies policies({{"build", build}});
    const auto found = policies.find("build");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->network, sandbox::Network::none) << "nothing of the built-in one is left";
    EXPECT_FALSE(found->shared_network);
    EXPECT_EQ(found->memory, 512 * base::limits::kMiB);
    EXPECT_EQ(found->cpu_seconds, 2U) << "the kernel counts whole seconds";
}

TEST(Policies, AnUnknownNameIsAnErrorThatSaysWhatWasMeant) {
    const auto found = Policies().find("biuld");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, "unknown_policy");
    EXPECT_THAT(found.error().message, HasSubstr("did you mean \"build\"?"));
    EXPECT_THAT(found.error().message, HasSubstr("build, debug, default and host"));
}

}  // namespace
}  // namespace ars::server
