// A file's bytes as an answer.
#pragma once

#include "server/api.hpp"
#include "server/http_message.hpp"

#include <string>

namespace ars::server {

// As a download, whatever the file holds; 413 over kDownloadBytes. `guest` is a path as `paths`
// takes it.
base::Task<HttpResponse> file_response(Api& api, fsmount::Paths paths, std::string guest);

[[nodiscard]] HttpResponse file_too_large();

}  // namespace ars::server
