// A project in HTTP's words.
#pragma once

#include "runtime/runs/projects.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <expected>

namespace ars::server {

[[nodiscard]] boost::json::object new_project_schema();
// POST /api/projects. The workdir path is one of scope_path(), without a slash at its end.
[[nodiscard]] std::expected<runs::Project, HttpResponse> read_new_project(const HttpRequest& request
);
[[nodiscard]] boost::json::object project_to_json(const runs::Project& project);

}  // namespace ars::server
