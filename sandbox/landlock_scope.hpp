// A scope of the landlock tier: two processes in the place of a namespace's pid 1.
//
// The supervisor, the server's child, sees the server's end and the forker's. It is the subreaper
// above all, in a Landlock domain that scopes signals and nothing else: kill(-1) there means
// everything below it, and nobody below it may signal it. It ends when no descendant is left: its
// end is the proof that the scope is gone.
//
// The forker, its child, enters the tools' domain and runs the init loop. Tools may kill it, as
// they may each other; the supervisor then ends the scope.
#pragma once

namespace ars::sandbox {

// In the process that the server started, whose first message is the spec. Reports `ready`, or the
// step that failed, on the control socket.
[[noreturn]] void run_landlock_scope();

}  // namespace ars::sandbox
