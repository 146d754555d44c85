#include "sandbox/policy.hpp"

#include <gtest/gtest.h>

namespace ars::sandbox {

TEST(Policy, SharesTheHostsNetworkOnlyWithThePermissionThatIsNamed) {
    Policy policy;
    EXPECT_TRUE(check_policy(policy));
    policy.network = Network::host;
    const auto refused = check_policy(policy);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "invalid_policy");
    policy.shared_network = SharedNetwork();
    EXPECT_TRUE(check_policy(policy));
    policy.network = Network::none;
    EXPECT_FALSE(check_policy(policy)) << "a permission that nobody uses is a mistake";
}

TEST(Policy, NamesHostsForAnAllowListOnly) {
    Policy policy;
    policy.allowed_hosts = {"example.com"};
    EXPECT_FALSE(check_policy(policy));
    policy.network = Network::allowlist;
    EXPECT_TRUE(check_policy(policy));
    policy.allowed_hosts.clear();
    EXPECT_TRUE(check_policy(policy)) << "an empty list allows nothing";
}

TEST(Policy, HasAName) {
    Policy policy;
    policy.name.clear();
    EXPECT_FALSE(check_policy(policy));
}

}  // namespace ars::sandbox
