// Why a model call failed and what may be done about it: the one place that knows how providers
// phrase their errors. Pure functions.
#pragma once

#include "base/result.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ars::models {

struct CallFailure {
    base::Error error;  // its code is one of those in model_client.hpp
    bool retryable = false;
    std::optional<std::chrono::milliseconds> retry_after;  // what the provider asked for
};

// An HTTP answer other than 2xx. `body` may be anything: JSON of any form, HTML, nothing. `where`
// is the URL for the message, which carries the first limits::kModelErrorBodyBytes of the body.
[[nodiscard]] CallFailure failure_of_answer(
    int status,
    std::string_view body,
    std::optional<std::chrono::milliseconds> retry_after_header,
    std::string_view where
);

// `{"error": ...}` inside a 200 stream: `error` is an object, a string or an array of them.
[[nodiscard]] CallFailure failure_of_error_value(const boost::json::value& error);

// The reply can't be understood: code "model_protocol", worth another try.
[[nodiscard]] CallFailure failure_of_protocol(std::string_view what);

// The value of a Retry-After header: seconds ("1", "0.5") or an HTTP date. `now_ms` is the wall
// clock.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_retry_after(
    std::string_view value, std::int64_t now_ms
);

// "... Please try again in 1.2s." -> 1200 ms; Gemini's "retryDelay": "12s" -> 12 s.
[[nodiscard]] std::optional<std::chrono::milliseconds> retry_hint_in(std::string_view text);

}  // namespace ars::models
