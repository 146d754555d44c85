// The directories a server needs, made and owned as the design says: gem's own, 0700, below parents
// that stay whose they are.
#pragma once

#include "base/result.hpp"

#include <string>

namespace ars::server {

// Makes `path` (parents 0755 as they come) or accepts an existing one that gem, or we when we are
// not root, owns. As root an empty root-owned directory is handed to gem; one with content is
// refused with the chown that helps.
[[nodiscard]] base::Result<void> make_own_directory(const std::string& path);

// After privileges are dropped: fails with the parent that closes the way.
[[nodiscard]] base::Result<void> check_reachable(const std::string& path);

// Where `ars run` keeps its state: $XDG_STATE_HOME/ars, else ~/.local/state/ars; for root
// /var/lib/ars/local, because root's home is closed to gem.
[[nodiscard]] std::string state_directory();

}  // namespace ars::server
