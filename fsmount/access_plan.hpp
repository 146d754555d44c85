// What a scope's processes may touch on a host where nothing can be mounted: paths and rights, as
// pure data made from the mount plan, so that both tiers show the same image and hide the same
// things.
//
// Landlock only allows, and a right on a directory holds for all below it. So a directory that
// holds something hidden is not allowed itself: what stands beside the hidden thing is, level by
// level. Such a directory (and "/") can't be listed.
#pragma once

#include "base/result.hpp"
#include "fsmount/mount_plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ars::fsmount {

enum class Access : std::uint8_t {
    list,           // names of directories
    read,           // files and names
    run,            // the same, and execute
    write,          // everything but device nodes
    shared_memory,  // plain files: made, read, written, removed
    device,         // read and write
    terminal,       // the same, and its ioctls
};

struct AccessRule {
    Access access = Access::read;
    std::string path;
    // Without it there is no scope. Others may be gone by the time they are opened.
    bool required = true;
};

struct AccessPlan {
    std::vector<AccessRule> rules;
    // Made before the rules are opened, 0700, for TMPDIR and HOME; removed with the scope. Must not
    // exist.
    std::string private_tmp;
};

// Reads the directories that hold something hidden; call it with the identity of the tools: what
// they can't reach anyway needs no rule. Error "workspace_not_mountable" when the workspace is not
// the real /home/gem/user-data.
[[nodiscard]] base::Result<AccessPlan> make_access_plan(
    const MountPlan& mounts, std::string private_tmp
);

}  // namespace ars::fsmount
