// Writing a file so that a reader, or a machine that dies, sees the old content or the new one.
// Internal to the room.
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

[[nodiscard]] base::Result<void> replace_file(
    const FileReplacement& target, std::string_view bytes, const std::string& shown
);

}  // namespace ars::fsmount
