// Whose files a request is about: those of a thread's directory, or all of a user's. "/" is that
// directory, or the workspace; nothing outside it can be named or reached.
#pragma once

#include "base/result.hpp"
#include "fsmount/paths.hpp"
#include "server/api.hpp"

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

inline constexpr std::string_view kThreadFiles = "/api/viewer/filesystem";
inline constexpr std::string_view kUserFiles = "/api/workspace";

// Copied to the threads that do the work.
struct FileScope {
    std::string thread_id;  // empty: the whole workspace
    std::string workdir;
    bool is_linked = false;  // a project's directory
    std::shared_ptr<fsmount::Workspace> workspace;
    fsmount::Paths paths;

    // `path` as scope_path() gives it.
    [[nodiscard]] std::string guest(const std::string& path) const;
    // The first file of a thread makes its directory; a project's is never made, and the workspace
    // is there.
    [[nodiscard]] base::Result<void> make_top() const;
};

// The path that a request names, in its scope.
struct FileTarget {
    FileScope scope;
    std::string path;

    [[nodiscard]] std::string guest() const { return scope.guest(path); }
};

// Directories of the user's projects.
[[nodiscard]] std::vector<std::string> linked_workdirs(const Api& api, const HttpRequest& request);

// All of these refuse with 503 before the tier is settled: where files are is settled with it.
[[nodiscard]] std::expected<std::shared_ptr<fsmount::Workspace>, HttpResponse> workspace_of(
    const Api& api, const HttpRequest& request
);
[[nodiscard]] std::expected<FileScope, HttpResponse> user_scope(
    const Api& api, const HttpRequest& request
);
[[nodiscard]] std::expected<FileScope, HttpResponse> thread_scope(
    const Api& api, const HttpRequest& request, const std::string& thread_id
);
// By the request's path: kUserFiles, else the thread's.
[[nodiscard]] std::expected<FileScope, HttpResponse> scope_of(
    const Api& api, const HttpRequest& request, const std::string& thread_id
);
// What `thread_id` and `path` of the query name; without `otherwise` the path must be there.
[[nodiscard]] std::expected<FileTarget, HttpResponse> target_of(
    const Api& api, const HttpRequest& request, const char* otherwise = nullptr
);

}  // namespace ars::server
