// Durations ("500ms", "10s", "5m", "2h") and sizes ("512", "64KiB", "10MiB", "1GiB") as people
// write them.
#pragma once

#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace ars::base {

[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
// 1234 ms -> "1.23 s"; 87 ms -> "87 ms"; 125 s -> "2 m 5 s".
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);

}  // namespace ars::base
