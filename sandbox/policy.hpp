// What a scope's processes may do: a value, built in one place (server/policies, from
// appliance.yaml), compared by class name, and checked again where a scope is made of it.
#pragma once

#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ars::sandbox {

// The walls that a scope stands behind. Each tier promises less than the one before it; nothing
// less than the last ever runs a tool.
enum class Tier : std::uint8_t {
    namespaces,  // own mounts, processes, network, ipc; all of ARCHITECTURE.md, "Sandbox"
    landlock,    // no_new_privs, seccomp, Landlock ABI 6, rlimits: where namespaces are refused
};

enum class Network : std::uint8_t {
    none,       // own network namespace, loopback only
    allowlist,  // the same, and a proxy that reaches `allowed_hosts` only
    host,       // the server's network: see SharedNetwork
};

// A permission that opens a wall has a type of its own, made only by naming it, so that a search
// for the type finds each place that grants it.
struct SharedNetwork {  // tools can reach what the server can: the API then demands a key
                        // everywhere
    explicit SharedNetwork() = default;
};
struct DebugOwnProcesses {  // ptrace and process_vm_* within the scope
    explicit DebugOwnProcesses() = default;
};

struct Policy {
    std::string name = "default";  // names the policy class: equal names share a scope
    Network network = Network::none;
    std::vector<std::string> allowed_hosts;       // of `allowlist`; empty allows none
    std::optional<SharedNetwork> shared_network;  // must be given with Network::host
    std::optional<DebugOwnProcesses> debug;
    std::uint32_t processes = base::limits::kScopeProcesses;
    std::uint64_t memory = 0;                          // bytes of the whole scope, 0 = no limit
    std::uint64_t file_size = 4 * base::limits::kGiB;  // RLIMIT_FSIZE
    std::uint32_t open_files = 4096;
    std::uint64_t cpu_seconds = 0;                      // RLIMIT_CPU of each process, 0 = no limit
    std::uint64_t tmp_size = 512 * base::limits::kMiB;  // /tmp, /dev/shm and /home/gem together
};

// What a scope is made of must not contradict itself, whoever built the policy: no host network
// without SharedNetwork, no list of hosts that nobody reads. Error "invalid_policy".
[[nodiscard]] base::Result<void> check_policy(const Policy& policy);

}  // namespace ars::sandbox
