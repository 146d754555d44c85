// Writing a file so that a reader, or a writer that is killed, meets the old content or the new
// one. Not synced to the disk, as little as what a shell writes. Internal to the room.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

#include <sys/types.h>

namespace ars::fsmount {

struct FileReplacement {
    int directory = -1;
    std::string name;
    unsigned mode = 0600;
    gid_t group = 0;        // of the file that is replaced
    bool replaces = false;  // false: fails with already_exists when anything has the name
};

// The content is written to a file without a name in the same directory. Where a name must be
// replaced, or the file system has no such files, it gets the name ".ars-<uuid>.tmp" first; what a
// killed writer leaves of those is removed by the next write in that directory.
[[nodiscard]] base::Result<void> replace_file(
    const FileReplacement& target, std::string_view bytes, const std::string& shown
);

}  // namespace ars::fsmount
