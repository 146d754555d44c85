// The JSON of artifacts, and their paths.
#pragma once

#include "base/fields.hpp"
#include "base/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ars::server {

// POST .../artifacts/save.
struct SaveBody {
    std::string path;
};
[[nodiscard]] const base::Fields<SaveBody>& save_fields();

// `path` as an agent writes it, absolute and quoted or not, for fsmount::Paths. Errors: forbidden
// "path_escape" for what is in neither root, relative paths and ".." among it.
[[nodiscard]] base::Result<std::string> artifact_path(std::string_view path);

// Where the thread's owner downloads the file of this path (any bytes).
[[nodiscard]] std::string artifact_url(std::string_view thread_id, std::string_view path);

}  // namespace ars::server
