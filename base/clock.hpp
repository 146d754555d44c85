// Wall-clock time as it is stored and shown: milliseconds since the epoch, and ISO 8601 in UTC.
#pragma once

#include <cstdint>
#include <string>

namespace ars::base {

[[nodiscard]] std::int64_t now_ms();
// 1700000000123 -> "2023-11-14T22:13:20.123Z"
[[nodiscard]] std::string iso8601(std::int64_t ms);

}  // namespace ars::base
