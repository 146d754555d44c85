// Files in HTTP's words: what an entry of a tree looks like, which status a refused path has, and
// names as headers and URLs carry them.
#pragma once

#include "base/fields.hpp"
#include "fsmount/paths.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace ars::server {

// `path` of a request as bytes below a thread's directory, "/" being that directory: "" or "a/b",
// kept "a/b/" where it can only be a directory. A path may be given raw or quoted as $'...', as a
// tree shows it. Errors: forbidden "path_escape" for "..", and for guest paths such as
// /home/gem/user-data.
[[nodiscard]] base::Result<std::string> scope_path(std::string_view path);

// POST .../directory.
struct DirectoryBody {
    std::string thread_id;
    std::string parent_path;
    std::string name;
};
[[nodiscard]] const base::Fields<DirectoryBody>& directory_fields();

// 404 where something is missing or a file stands in for a directory, 403 where a path leads out,
// 400 for what is no regular file, 507 when no space is left.
[[nodiscard]] HttpResponse file_error_response(const base::Error& error);

// {path, name, is_dir, kind, size, modified_at, artifact_url}; `scope_path` without slash before
// it, `thread_id` empty for a file of the whole workspace.
[[nodiscard]] boost::json::object entry_to_json(
    const std::string& thread_id, const std::string& scope_path, const fsmount::FileInfo& info
);

// `attachment` with the last part of `path`, safe in a header whatever its bytes.
[[nodiscard]] std::string content_disposition(std::string_view path);
[[nodiscard]] std::string percent_encode(std::string_view bytes);

}  // namespace ars::server
