// Pid 1 of a scope: what it does between its birth in the template and its first command.
#pragma once

#include "base/fd.hpp"
#include "sandbox/init_spec.hpp"
#include "sandbox/network_stock.hpp"
#include "sandbox/new_root.hpp"

#include <sys/types.h>

namespace ars::sandbox {

// What the template hands to a scope that it has just cloned.
struct ScopeStage {
    InitSpec spec;
    NewRoot root;        // the image's part is mounted
    base::Fd host_proc;  // /proc of the template's pid namespace, where id maps are written
    Spaces spaces;       // empty when it uses the server's network
};

// Control socket at kControlFd. Reports `ready`, or the step that failed, and serves until the
// server is gone.
[[noreturn]] void run_scope_init(ScopeStage stage);

// Writes one line to a file of /proc/self.
[[nodiscard]] base::Result<void> write_proc_self(
    const base::Fd& proc, const char* name, const std::string& text
);
// uid 1000 and gid 1000 inside are the ids given, of the namespace outside. Needs setgroups denied,
// which namespaces below the template's inherit from it.
[[nodiscard]] base::Result<void> map_gem(const base::Fd& proc, uid_t outer_uid, gid_t outer_gid);

// "step\0what went wrong", as `step_failed` carries it.
[[nodiscard]] std::string step_report(const char* step, const std::string& what);

}  // namespace ars::sandbox
