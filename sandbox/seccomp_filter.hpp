// The list of system calls that a scope's processes may not make. Default-allow: agents run every
// kind of tool.
#pragma once

#include "base/result.hpp"

#include <string>

namespace ars::sandbox {

struct FilterOptions {
    // The workspace shows files of another owner (idmapped): a set-id file made there would be
    // set-id for them.
    bool refuse_set_id = false;
};

// The program as an array of sock_filter. ENOSYS where programs have a fall-back, EPERM elsewhere,
// never a kill: harmless probes of runtimes must not end them. Only the low 32 bits of arguments
// are compared, as the kernel does.
[[nodiscard]] base::Result<std::string> build_seccomp_filter(const FilterOptions& options);

}  // namespace ars::sandbox
