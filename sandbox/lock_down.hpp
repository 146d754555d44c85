// The last steps of a scope's init: what its processes may use, and what they can never get back.
#pragma once

#include "base/result.hpp"
#include "sandbox/init_spec.hpp"

#include <string>

namespace ars::sandbox {

// A server that kept root (tests) hands it down; tools never get it. Nothing to do otherwise.
[[nodiscard]] base::Result<void> drop_root();
// Those that a scope's init has too. RLIMIT_CPU would end it, and by RLIMIT_NOFILE the kernel
// bounds the descriptors in flight of a whole user: tools must not use up what the init needs.
[[nodiscard]] base::Result<void> set_limits(const InitSpec& spec);
// Bounding set, ambient and all three capability sets: empty.
[[nodiscard]] base::Result<void> drop_capabilities();
// The same without the bounding set, which takes a privilege to change: no_new_privs makes it moot.
[[nodiscard]] base::Result<void> clear_capabilities();
[[nodiscard]] base::Result<void> forbid_new_privileges();
// Where the network is the server's, abstract unix sockets and signals are walled off by Landlock
// (ABI 6); own namespaces do that otherwise. Nothing to do where the kernel lacks it.
[[nodiscard]] base::Result<void> restrict_shared_network(const InitSpec& spec);
// `program` is an array of sock_filter. Inherited by everything that is started later. Where the
// kernel allows it, what the program answers with EPERM waits on the returned listener instead (see
// denied_calls.hpp); elsewhere the answer is no descriptor, and EPERM is all that happens.
[[nodiscard]] base::Result<base::Fd> attach_filter(const std::string& program);

}  // namespace ars::sandbox
