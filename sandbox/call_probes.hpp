// What single system calls can do here, each tried in a thread of its own: one that never comes
// back (a file system that does not answer) costs its deadline, and its thread stays behind.
#pragma once

#include "base/async.hpp"
#include "base/deadline.hpp"
#include "sandbox/host_probe.hpp"

#include <vector>

namespace ars::sandbox {

// landlock, seccomp_listener, io_uring, openat2, pidfd, cgroup. What has not answered by the
// deadline does not work, with ETIMEDOUT.
base::Task<std::vector<Probe>> probe_calls(base::Deadline deadline);

}  // namespace ars::sandbox
