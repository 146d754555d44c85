// Which system calls a scope's processes may not make. Default-allow: agents run every kind of
// tool.
//
// ENOSYS where programs have a fall-back, EPERM elsewhere, never a kill: harmless probes of
// runtimes must not end them. i386 and x32 calls, and calls newer than this list, are ENOSYS.
#pragma once

#include "sandbox/policy.hpp"

#include <string>

namespace ars::sandbox {

struct FilterOptions {
    // Without own namespaces more must be refused: sockets, and calls that reach other processes.
    Tier tier = Tier::namespaces;
    Network network = Network::none;
    // ptrace, process_vm_* and process_madvise within the scope. Everything else stays refused.
    bool debug = false;
    // The workspace shows files of another owner (idmapped): a set-id file made there would be
    // set-id for them.
    bool refuse_set_id = false;
    auto operator<=>(const FilterOptions&) const = default;
};
[[nodiscard]] FilterOptions filter_options(const Policy& policy, Tier tier);

// The program as an array of sock_filter. The same options always give the same bytes.
[[nodiscard]] std::string build_seccomp_filter(const FilterOptions& options);

// "unshare" for its number on this architecture, "system call 999" for one that nobody knows. Not
// for a scope's init: it carries libseccomp's tables.
[[nodiscard]] std::string syscall_name(int number);

}  // namespace ars::sandbox
