#include "base/clock.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace ars::base {

std::int64_t now_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string iso8601(std::int64_t ms) {
    const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    char date[32];
    const std::size_t n = std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    char tail[16];
    std::snprintf(tail, sizeof tail, ".%03dZ", static_cast<int>(ms % 1000));
    return std::string(date, n) + tail;
}

}  // namespace ars::base
