// What `ars exec` and `ars tool` take from a configuration, or do without: the policy by its name,
// what tools find in their environment, and what must be hidden from them.
#pragma once

#include "fsmount/mount_plan.hpp"
#include "sandbox/policy.hpp"
#include "sandbox/scope.hpp"

#include <map>
#include <optional>
#include <string>

namespace ars::server {

struct ToolSettings {
    sandbox::Policy policy;
    std::map<std::string, std::string> environment = sandbox::default_environment();
    sandbox::SandboxOptions sandbox;
    fsmount::PlanOptions plan;
};

// `config` may be empty: then there are the built-in policies. `io` wins over the configuration.
// 0, or the exit code after the reason went to stderr; `who` is "ars exec".
[[nodiscard]] int load_tool_settings(
    const char* who,
    const std::string& config,
    const std::string& policy,
    std::optional<sandbox::IoBackend> io,
    ToolSettings& out
);

}  // namespace ars::server
