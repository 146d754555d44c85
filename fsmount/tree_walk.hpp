// Visiting a directory tree in sorted order, for glob and grep: links are not followed, and
// entries, depth and time are bounded, so that no tree a tool can build makes it run away.
#pragma once

#include "base/deadline.hpp"
#include "base/fd.hpp"
#include "fsmount/paths.hpp"

#include <functional>
#include <string>

namespace ars::fsmount {

struct WalkLimits {
    std::size_t entries = 200'000;
    std::size_t depth = 64;
    base::Deadline deadline = base::Deadline::never();
};

struct WalkEntry {
    int directory = -1;  // holds the entry; for open_entry()
    std::string name;
    std::string relative;  // to the start of the walk
    FileKind kind = FileKind::other;
};

enum class WalkStep : std::uint8_t {
    go_on,
    skip,  // don't enter this directory
    stop,
};

struct WalkReport {
    bool complete = true;  // false: a bound was met, `stopped_by` says which
    std::string stopped_by;
    std::size_t unreadable = 0;  // directories that may not be read; ones that vanished don't count
};

// `visit` sees every entry below `start`, a directory before what it holds.
WalkReport walk_tree(
    const base::Fd& start,
    const WalkLimits& limits,
    const std::function<WalkStep(const WalkEntry&)>& visit
);

}  // namespace ars::fsmount
