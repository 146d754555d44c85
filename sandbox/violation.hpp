// What a refused system call is called, and what its caller can do instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ars::sandbox {

// "ptrace", "socket(AF_VSOCK)", "ioctl(TIOCSTI)". `argument` is the one that the init thought
// telling, 0 for most calls.
[[nodiscard]] std::string denied_call_name(int number, std::uint32_t argument);

// What helps after these calls (as named above) were refused, each remedy once; empty when nothing
// is known.
[[nodiscard]] std::string denied_call_advice(const std::vector<std::string>& names);

}  // namespace ars::sandbox
