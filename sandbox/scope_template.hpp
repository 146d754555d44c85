// The template: one process per server, small and without libc's heavy start-up in a scope's path.
// It owns what all scopes share (a user namespace, the image's part of the root, a stock of empty
// networks) and clones each scope's pid 1 from itself; no program is executed between a request and
// its tool.
#pragma once

namespace ars::sandbox {

// Control socket at kControlFd. `own_network`: its scopes get networks of their own. Serves until
// the server is gone. What fails is reported on the control socket of each scope that is asked for.
[[noreturn]] void run_template(bool own_network);

}  // namespace ars::sandbox
