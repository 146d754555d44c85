// What a scope's processes will see, as pure data: an ordered list that sandbox/scope_init carries out
// from top to bottom. Making the list reads the host; carrying it out makes no decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace ars::fsmount {

enum class MountKind : std::uint8_t {
    bind,          // `source` (path, or detached mount fd when `fd` is set), with what is mounted below it
    tmpfs,         // `size_bytes`, `inodes`, `mode`
    proc,          // a fresh procfs of the scope's pid namespace
    devpts,        // own instance, mode=0620,ptmxmode=0666
    device,        // bind of one device node: source "/dev/null"
    directory,     // mkdir, `mode`
    symlink,       // target at `source`
    hide_file,     // /dev/null over it
    hide_directory,  // an empty read-only tmpfs over it
};

struct Mount {
    MountKind kind = MountKind::bind;
    std::string guest;   // absolute path in the scope
    std::string source;  // host path or symlink target
    std::shared_ptr<base::Fd> fd;  // detached mount (open_tree) to move here instead of `source`
    bool read_only = true;
    bool no_exec = false;
    std::uint64_t size_bytes = 0;
    std::uint64_t inodes = 0;
    unsigned mode = 0755;
};

struct MountPlan {
    std::vector<Mount> mounts;
};

}  // namespace ars::fsmount
