#include "sandbox/policy.hpp"

#include "sandbox/egress_rules.hpp"

namespace ars::sandbox {

namespace {

std::unexpected<base::Error> contradiction(const Policy& policy, const char* what) {
    return base::fail(
        base::ErrorKind::invalid,
        "invalid_policy",
        "the policy \"" + policy.name + "\" contradicts itself: " + what
    );
}

}  // namespace

base::Result<void> check_policy(const Policy& policy) {
    if ((policy.network == Network::host) != policy.shared_network.has_value()) {
        return contradiction(policy, "the host's network goes with SharedNetwork, and only then");
    }
    if (policy.network != Network::allowlist && !policy.allowed_hosts.empty()) {
        return contradiction(policy, "allowed hosts mean something with an allow-list only");
    }
    if (auto rules = EgressRules::parse(policy.allowed_hosts); !rules) {
        return std::unexpected(rules.error());
    }
    if (policy.name.empty()) {
        return contradiction(policy, "without a name it would share scopes with others");
    }
    return {};
}

}  // namespace ars::sandbox
