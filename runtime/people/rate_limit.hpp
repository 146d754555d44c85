// How many requests a key may send: a bucket that fills evenly, and from which each request takes
// one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace ars::people {

struct RateLimit {
    std::uint32_t requests = 1;
    std::chrono::milliseconds per = std::chrono::minutes(1);
    std::optional<std::uint32_t> burst{};  // absent = `requests`
};

class TokenBucket {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;

    // Takes one request out. Nothing when there was one, else how long until there is. Starts full;
    // a refused request takes nothing, so one who waits as told is served.
    [[nodiscard]] std::optional<std::chrono::milliseconds> take(
        const RateLimit& limit, TimePoint now
    );

  private:
    double missing_ = 0;  // below a full bucket
    TimePoint seen_{};
};

}  // namespace ars::people
