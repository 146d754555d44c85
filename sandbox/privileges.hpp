// Giving up root, for every command that will run tools or open sockets.
#pragma once

#include "base/result.hpp"

namespace ars::sandbox {

// Started as root: becomes gem (1000:1000, no groups, empty bounding set) for good. In any case the
// process is non-dumpable afterwards: no tool of the same uid reads its memory or environment. Call
// it after directories were made and before any socket, ring or thread.
[[nodiscard]] base::Result<void> drop_to_gem();

}  // namespace ars::sandbox
