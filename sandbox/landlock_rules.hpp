// Landlock by raw system calls: what a process and all it starts may touch from now on. Debian 12's
// header knows ABI 2; what is newer is written down here.
#pragma once

#include "base/result.hpp"
#include "fsmount/access_plan.hpp"

#include <vector>

namespace ars::sandbox {

// Signals and abstract unix sockets are scoped from here on (Linux 6.12).
inline constexpr int kLandlockScopedAbi = 6;

// The Landlock ABI of this kernel, or a negative errno.
[[nodiscard]] int landlock_abi();

// From here on this process and its descendants signal nobody but each other. kill(-1) then means
// exactly them.
[[nodiscard]] base::Result<void> scope_signals();
// The same for abstract unix sockets too: where the network is the server's.
[[nodiscard]] base::Result<void> scope_signals_and_sockets();
// All walls of the landlock tier: files by `rules`, signals and abstract sockets by scope. Fails
// when any of them is not to be had; a rule that is not required may find its path gone.
[[nodiscard]] base::Result<void> enter_domain(const std::vector<fsmount::AccessRule>& rules);

}  // namespace ars::sandbox
