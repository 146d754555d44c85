#include "runtime/people/rate_limit.hpp"

#include <algorithm>
#include <cmath>

namespace ars::people {

namespace {

constexpr double kRounding = 1e-6;  // of a request: what sums of doubles may be off

}  // namespace

std::optional<std::chrono::milliseconds> TokenBucket::take(const RateLimit& limit, TimePoint now) {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const double per_request = Milliseconds(limit.per).count() / limit.requests;
    const double burst = limit.burst.value_or(limit.requests);
    const double passed = Milliseconds(std::max(now - seen_, TimePoint::duration::zero())).count();
    // What is missing is kept, not what is there: a limit that a reload changed counts at once.
    missing_ = std::clamp(missing_ - passed / per_request, 0.0, burst);
    seen_ = std::max(seen_, now);
    const double wanted = missing_ + 1 - burst;
    if (wanted > kRounding) {
        const auto wait = static_cast<std::int64_t>(std::ceil((wanted - kRounding) * per_request));
        return std::chrono::milliseconds(std::max<std::int64_t>(wait, 1));
    }
    missing_ += 1;
    return std::nullopt;
}

}  // namespace ars::people
