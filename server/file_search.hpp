// What people who look for a file mean: which names match, what nobody looks for, and which of the
// matches come first.
#pragma once

#include "fsmount/name_search.hpp"
#include "server/file_scope.hpp"

#include <boost/json/array.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

inline constexpr std::size_t kSearchText = 256;  // bytes
inline constexpr std::size_t kThreadResults = 100;
inline constexpr std::size_t kWorkspaceResults = 500;
inline constexpr std::size_t kMentionResults = 50;
inline constexpr std::size_t kMentionCandidates = 500;

// Directories "projects/<uuid>" that threads without a project have, unless one of `linked`, the
// workdirs of the user's projects, is such a directory or lies below it.
[[nodiscard]] bool is_unbound_project(
    std::string_view workspace_path, const std::vector<std::string>& linked
);

struct FileQuery {
    std::string text;             // whatever the case of ASCII letters
    bool include_hidden = false;  // enter directories whose names begin with "."
    bool include_unbound = false;
    std::vector<std::string> linked;
};

// Files whose name holds the text; one with a slash is looked for in the path. For the threads that
// may block, as the next one.
[[nodiscard]] base::Result<fsmount::NameSearch> search_files(
    const FileScope& scope, const FileQuery& query, std::size_t results
);

// Files to mention in a message: those of the thread's directory, if there is one, before those of
// the workspace, and the best matches of each first. [{name, path, is_dir, source}] with paths as
// tools know them.
[[nodiscard]] boost::json::array search_mentions(
    const FileScope* thread, const FileScope& workspace, const FileQuery& query
);

}  // namespace ars::server
