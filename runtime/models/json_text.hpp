// JSON as models and providers write it: looked at, or read although it is slightly broken.
#pragma once

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ars::models {

enum class JsonShape : std::uint8_t { invalid, object, other };

// What `text` is as JSON, without building it.
[[nodiscard]] JsonShape shape_of_json(std::string_view text);

// Lone surrogates (`\ud83d` without its other half) replaced by `\ufffd`. No valid text can hold
// one.
[[nodiscard]] std::string mend_surrogates(std::string_view json);

// Adds `text` to `out` as a JSON string, quotes included; what is no UTF-8 is replaced.
void append_json_string(std::string& out, std::string_view text);

// Parses; where that fails for invalid UTF-8 or lone surrogates only, parses what is left after
// their replacement. Empty when `text` is not JSON at all.
[[nodiscard]] std::optional<boost::json::value> parse_json_leniently(
    std::string_view text, boost::json::storage_ptr storage = {}
);

}  // namespace ars::models
