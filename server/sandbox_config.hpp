// The `sandbox:` part of appliance.yaml: which tier must be there, which policies there are, and
// what tools find in their environment.
#pragma once

#include "base/fields.hpp"
#include "base/limits.hpp"
#include "runtime/agents/agent.hpp"
#include "sandbox/policy.hpp"
#include "sandbox/scope.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ars::server {

struct Config;

// A policy as written: complete, whatever is not said is as in the built-in `default`.
struct PolicyConfig {
    sandbox::Network network = sandbox::Network::none;
    std::optional<std::vector<std::string>> allowed_hosts;
    bool ptrace = false;
    std::uint32_t processes = sandbox::Policy{}.processes;
    std::optional<std::uint64_t> memory;  // bytes of the whole scope
    std::uint64_t file_size = sandbox::Policy{}.file_size;
    std::uint32_t open_files = sandbox::Policy{}.open_files;
    std::optional<std::chrono::milliseconds> cpu;  // of each process
    std::uint64_t tmp_size = sandbox::Policy{}.tmp_size;
};

struct ToolVariables {
    std::vector<std::string> pass;           // names of the server's own variables
    std::map<std::string, std::string> set;  // over `pass`
};

struct SandboxConfig {
    sandbox::Tier require = sandbox::Tier::namespaces;
    bool require_fresh_proc = false;
    std::chrono::milliseconds idle_release = base::limits::kScopeIdleRelease;
    agents::ApprovalMode tool_approval_mode = agents::ApprovalMode::ask;
    sandbox::IoBackend io = sandbox::IoBackend::automatic;
    std::map<std::string, PolicyConfig> policies;
    ToolVariables environment;
};

[[nodiscard]] const base::Fields<SandboxConfig>& sandbox_fields();

// What contradicts itself in it, or the rest of the configuration. `place` is that of `sandbox`.
void check_sandbox(const Config& config, const base::FieldPlace& place);

// A policy with the host's network is used or defined at `place`, and there are no API keys.
void fault_open_api(const base::FieldPlace& place);

// What each command finds: the defaults, then `pass`, then `set`.
[[nodiscard]] std::map<std::string, std::string> tool_environment(const ToolVariables& variables);

}  // namespace ars::server
