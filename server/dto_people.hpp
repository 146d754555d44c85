// The JSON of users and API keys.
#pragma once

#include "runtime/people/directory.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <expected>

namespace ars::server {

// Of one page of the audit log.
inline constexpr std::size_t kAuditPage = 10'000;

[[nodiscard]] boost::json::object user_to_json(const people::UserEntry& entry);
// Never the secret, nor its digest. `last_use_ms` 0 = never.
[[nodiscard]] boost::json::object key_to_json(const people::ApiKey& key, std::int64_t last_use_ms);

// POST and PUT /api/system/users.
[[nodiscard]] std::expected<people::User, HttpResponse> read_new_user(const HttpRequest& request);
[[nodiscard]] std::expected<people::UserChange, HttpResponse> read_user_change(
    const HttpRequest& request
);
// POST and PUT /api/user/apikey.
[[nodiscard]] std::expected<people::NewKey, HttpResponse> read_new_key(const HttpRequest& request);
[[nodiscard]] std::expected<people::KeyChange, HttpResponse> read_key_change(
    const HttpRequest& request
);

[[nodiscard]] boost::json::object new_user_schema();
[[nodiscard]] boost::json::object user_change_schema();
[[nodiscard]] boost::json::object new_key_schema();
[[nodiscard]] boost::json::object key_change_schema();

}  // namespace ars::server
