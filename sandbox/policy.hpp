// What a scope's processes may do: a value, built in one place, compared by class name.
#pragma once

#include "base/limits.hpp"

#include <cstdint>
#include <string>

namespace ars::sandbox {

enum class Network : std::uint8_t {
    none,  // own network namespace, loopback only
    host,  // the server's network: a scope of its own, and the API then demands a key everywhere
};

struct Policy {
    std::string name = "default";  // names the policy class: equal names share a scope
    Network network = Network::none;
    std::uint32_t processes = base::limits::kScopeProcesses;
    std::uint64_t file_size = 4 * base::limits::kGiB;  // RLIMIT_FSIZE
    std::uint32_t open_files = 4096;
    std::uint64_t tmp_size = 512 * base::limits::kMiB;  // /tmp, and half of it for /dev/shm
};

}  // namespace ars::sandbox
