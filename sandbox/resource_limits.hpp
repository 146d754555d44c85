// What one command may use of the machine, below what its scope may. Part of the start message.
#pragma once

#include <cstdint>

namespace ars::sandbox {

// 0 = what the scope allows. The kernel applies each to every process of the command by itself, but
// `processes`: that many may there be in the whole scope when this command makes another one.
struct ResourceLimits {
    std::uint64_t cpu_seconds = 0;  // SIGXCPU, and SIGKILL one second later
    std::uint64_t file_size = 0;    // bytes of any file written: SIGXFSZ, EFBIG
    std::uint64_t open_files = 0;
    std::uint64_t processes = 0;
};

}  // namespace ars::sandbox
