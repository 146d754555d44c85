// The JSON of a user's environment variables.
#pragma once

#include "runtime/runs/user_env.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <expected>

namespace ars::server {

// The body of PUT /api/user/agent-env: {"env": {"NAME": "value"}}. White space around names does
// not count.
[[nodiscard]] std::expected<runs::Variables, HttpResponse> read_user_env(const HttpRequest& request
);

[[nodiscard]] boost::json::object user_env_to_json(const runs::Variables& variables);

}  // namespace ars::server
