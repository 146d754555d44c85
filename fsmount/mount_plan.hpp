// What a scope's processes will see, as pure data: an ordered list that sandbox/scope_init carries
// out from top to bottom. Making the list reads the host; carrying it out makes no decisions.
#pragma once

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "fsmount/workspace.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ars::fsmount {

enum class MountKind : std::uint8_t {
    bind,   // `source` (path, or detached mount fd when `fd` is set), with what is mounted below it
    alias,  // what the plan has mounted at the guest path `source`, here too
    tmpfs,  // `size_bytes`, `inodes`, `mode`
    proc,   // a fresh procfs of the scope's pid namespace; where that is refused the container's
    devpts,          // own instance, mode=0620,ptmxmode=0666
    device,          // bind of one device node: source "/dev/null"
    directory,       // mkdir, `mode`
    symlink,         // target at `source`
    hide_file,       // /dev/null over it
    hide_directory,  // an empty read-only tmpfs over it
    text_file,       // a read-only file with the content `source` over a file that exists
};

struct Mount {
    MountKind kind = MountKind::bind;
    std::string guest;             // absolute path in the scope
    std::string source;            // host path or symlink target
    std::shared_ptr<base::Fd> fd;  // detached mount (open_tree) to move here instead of `source`
    bool read_only = true;
    bool no_exec = false;
    std::uint64_t size_bytes = 0;
    std::uint64_t inodes = 0;
    unsigned mode = 0755;
};

struct MountPlan {
    // Guests are relative to a root that is itself an empty tmpfs, made before the first entry and
    // made read-only after the last one. Every mount point stands in the list as `directory` before
    // it is mounted on, except those of devices and those that exist in what was bound above them.
    // `image` comes first and is the same for every workspace: it is mounted once for all scopes
    // with an equal `image`. `mounts` is one scope's own.
    std::shared_ptr<const std::vector<Mount>> image;
    std::vector<Mount> mounts;
    // user-data shows files of another owner on disk: set-id bits must then be refused.
    bool idmapped = false;
};

struct PlanOptions {
    std::uint64_t tmp_size =
        512 * base::limits::kMiB;  // of /tmp, /var/tmp, /dev/shm and /home/gem together
    std::uint64_t tmp_inodes = 262'144;
    std::string data_dir;             // hidden, when it lies where the image is shown
    std::string users_dir;            // likewise
    std::vector<std::string> hidden;  // likewise: configuration, key files
    // Top-level names to show besides those of a standard image: {"data"} shows /data, mounted or
    // not.
    std::vector<std::string> extra_visible;
};

// Plans what scopes see: the image read-only, private /tmp, /dev, /home/gem, and the workspace.
// Looking at the host (its top level, mount table, sockets, the hidden paths) costs more than the
// rest, so one look serves all plans of the next second. Use it with the identity of the tools
// (after root is dropped), or paths that tools can't reach would be planned as mount points.
class MountPlanner {
  public:
    explicit MountPlanner(PlanOptions options) : options_(std::move(options)) {}
    // Error "no_spare_mount" when a detached workspace was used up.
    [[nodiscard]] base::Result<MountPlan> plan(const Workspace& workspace, std::uint64_t tmp_size);
    [[nodiscard]] base::Result<MountPlan> plan(const Workspace& workspace) {
        return plan(workspace, options_.tmp_size);
    }

  private:
    PlanOptions options_;
    std::shared_ptr<const std::vector<Mount>> image_;
    bool shows_var_tmp_ = false;
    std::chrono::steady_clock::time_point looked_{};  // never
};

// One plan.
[[nodiscard]] base::Result<MountPlan> make_mount_plan(
    const Workspace& workspace, const PlanOptions& options
);

}  // namespace ars::fsmount
