// What a command that failed should be told of the walls around it. A refused path and a reached
// limit are errnos that nobody reports to us: here what the command said about them is read, and
// what follows is a hint, not evidence.
#pragma once

#include "sandbox/outcome.hpp"
#include "sandbox/policy.hpp"

#include <cstdint>
#include <string>

namespace ars::sandbox {

struct ScopeFacts {
    std::string policy;
    std::uint32_t processes = 0;
    Tier tier = Tier::namespaces;
    std::string private_tmp = {};  // of the landlock tier
};

// Empty for a command that did not fail, and when nothing it said points at a wall.
[[nodiscard]] std::string failure_hint(const Outcome& outcome, const ScopeFacts& facts);

}  // namespace ars::sandbox
