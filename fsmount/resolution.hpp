// From a checked guest path to the file system object it names: the kernel's openat2 where it can
// answer, else our own walk. Both follow links as long as they stay in user-data and skills, and no
// rename that happens meanwhile can make either of them leave. Internal to the room: tools use
// fsmount/paths.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/guest_path.hpp"
#include "fsmount/workspace.hpp"

#include <string>

#include <sys/stat.h>

namespace ars::fsmount {

enum class Resolver : std::uint8_t {
    kernel,  // openat2 first; what it refuses (absolute links, a kernel without it) goes through
             // the walk
    walk,    // the walk only: one O_NOFOLLOW step per part
};

enum class LastLink : std::uint8_t { follow, keep };

// An existing object, held by an O_PATH descriptor.
struct Located {
    GuestRoot root = GuestRoot::user_data;  // where it really lies: its rights count
    base::Fd object;
    struct stat status{};
};

// Errors as of file_error(); "path_escape" when a link leads out.
[[nodiscard]] base::Result<Located> locate(
    const Workspace& workspace, const GuestPath& path, LastLink last, Resolver resolver
);

// Where a file is or would be: the directory it lies in, and its name there. A link as the last
// part is followed to the place it names, even when nothing is there yet, or is itself the place.
struct Place {
    GuestRoot root = GuestRoot::user_data;
    base::Fd parent;   // O_PATH directory; none when the path names a root
    std::string name;  // one part; empty when the path names a guest root, or what it is within
    bool exists = false;
    struct stat status{};
};
[[nodiscard]] base::Result<Place> locate_place(
    const Workspace& workspace, const GuestPath& path, LastLink last = LastLink::follow
);

// Makes every missing directory before the last part, 0700 whatever the umask. A link on the way is
// an error: what is made must lie where the path says. Returns the last directory (O_PATH).
[[nodiscard]] base::Result<base::Fd> make_parents(
    const Workspace& workspace, const GuestPath& path
);

// The same below any directory descriptor, for all parts of `rest`. `shown` names the directory in
// errors.
[[nodiscard]] base::Result<base::Fd> make_directories(
    int root, const std::string& rest, const std::string& shown
);

// The descriptor behind a root; "not_found" when there are no skills.
[[nodiscard]] base::Result<int> root_descriptor(const Workspace& workspace, GuestRoot root);

}  // namespace ars::fsmount
