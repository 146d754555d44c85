// Which files of a workdir are new or changed since a moment: what `ars run` tells the person who
// asked for work.
#pragma once

#include "fsmount/workspace.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ars::server {

struct ChangedFile {
    std::string path;  // below the workdir
    std::uint64_t size = 0;
};

// Regular files, sorted by path; bounded in depth and number, links are not followed.
[[nodiscard]] std::vector<ChangedFile> changed_files(
    std::shared_ptr<const fsmount::Workspace> workspace,
    const std::string& workdir_path,
    std::int64_t since_ms
);

}  // namespace ars::server
