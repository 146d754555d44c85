#include "base/units.hpp"

#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>

namespace ars::base {

namespace {

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

constexpr Unit kDurations[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
constexpr Unit kSizes[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40}
};

template <std::size_t N>
std::optional<std::uint64_t> parse_with(std::string_view text, const Unit (&units)[N]) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) {
        return std::nullopt;
    }
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const Unit& known : units) {
        if (known.name == unit && number <= std::uint64_t{INT64_MAX} / known.factor) {
            return number * known.factor;
        }
    }
    return std::nullopt;
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
    const auto value = parse_with(text, kDurations);
    if (!value) {
        return fail(
            ErrorKind::invalid,
            "bad_duration",
            "\"" + std::string(text) + "\" is not a duration; write it like 500ms, 10s, 5m or 2h"
        );
    }
    return std::chrono::milliseconds(static_cast<std::int64_t>(*value));
}

Result<std::uint64_t> parse_size(std::string_view text) {
    const auto value = parse_with(text, kSizes);
    if (!value) {
        return fail(
            ErrorKind::invalid,
            "bad_size",
            "\"" + std::string(text) + "\" is not a size; write it like 512, 64KiB, 10MiB or 1GiB"
        );
    }
    return *value;
}

std::string format_duration(std::chrono::milliseconds duration) {
    const auto ms = duration.count();
    char out[64];
    if (ms < 1000) {
        std::snprintf(out, sizeof out, "%lld ms", static_cast<long long>(ms));
    } else if (ms < 59'995) {  // above, two digits would round to 60.00 s
        std::snprintf(out, sizeof out, "%.2f s", static_cast<double>(ms) / 1000.0);
    } else {
        std::snprintf(
            out,
            sizeof out,
            "%lld m %lld s",
            static_cast<long long>((ms + 500) / 60'000),
            static_cast<long long>((ms + 500) / 1000 % 60)
        );
    }
    return out;
}

}  // namespace ars::base
