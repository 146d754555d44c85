// The life of a scope's pid 1 after set-up: start commands, reap, kill trees on request, end with
// the server.
#pragma once

#include "base/fd.hpp"
#include "sandbox/init_spec.hpp"

namespace ars::sandbox {

// `proc` is the scope's /proc, `denied_calls` the filter's listener or nothing; of `spec` the
// limits count that are not this process's own. Never returns: exits when the server closes its end
// of the control socket, and the kernel then kills every process of the scope. Where it is not pid
// 1 of a namespace but the forker of the landlock tier, `supervisor` is the pidfd of its parent:
// whichever of parent and server ends first, it takes its whole domain with it.
[[noreturn]] void run_init_loop(
    base::Fd proc, base::Fd denied_calls, const InitSpec& spec, base::Fd supervisor = {}
);

}  // namespace ars::sandbox
