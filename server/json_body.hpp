// A request's body as JSON and then as a value with a field table. Everything that can be wrong
// with it is answered here: 400 with line and column for text that is not JSON, 422 for JSON that
// does not fit.
#pragma once

#include "base/fields.hpp"
#include "server/http_error.hpp"
#include "server/http_message.hpp"

#include <boost/json/value.hpp>

#include <expected>
#include <optional>
#include <string_view>

namespace ars::server {

// Where a JSON text stops being one. Columns count bytes, both start at 1.
struct JsonFault {
    std::size_t line = 1;
    std::size_t column = 1;
    std::string reason;
};
// UTF-8 only, at most limits::kJsonDepth levels, no key twice in one object, nothing after the
// value.
[[nodiscard]] std::expected<boost::json::value, JsonFault> parse_json(std::string_view text);

// The body of `request`, or the response that refuses it.
[[nodiscard]] std::expected<boost::json::value, HttpResponse> read_json(const HttpRequest& request);

template <class T>
[[nodiscard]] std::expected<T, HttpResponse> read_body(
    const HttpRequest& request, const base::Fields<T>& fields
) {
    auto json = read_json(request);
    if (!json) {
        return std::unexpected(std::move(json.error()));
    }
    T value{};
    if (const auto faults = fields.decode(*json, value); !faults.empty()) {
        return std::unexpected(faults_response(faults));
    }
    return value;
}

}  // namespace ars::server
