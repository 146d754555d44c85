// Mounts that hang nowhere: what `--workspace DIR` needs when tools, who are gem, could not reach
// DIR or not write to it. Made while the server is still root. Internal to the room.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>

#include <sys/types.h>

namespace ars::fsmount {

struct DiskOwner {
    uid_t uid = 0;
    gid_t gid = 0;
};

// A user namespace that maps `owner` to gem, as a descriptor for mount_setattr.
[[nodiscard]] base::Result<base::Fd> make_id_map(DiskOwner owner);

// A copy of the mount tree at `directory` that is attached to nothing, nosuid and nodev; with
// `id_map`, its files seem to belong to gem and keep their owner on disk. Errors carry the errno:
// EPERM without the right to mount, EINVAL where the file system has no id-mapped mounts.
[[nodiscard]] base::Result<base::Fd> detach_mount(int directory, const base::Fd* id_map);

}  // namespace ars::fsmount
