#include "runtime/people/rate_limit.hpp"

#include <gtest/gtest.h>

#include <random>

namespace ars::people {
namespace {

using namespace std::chrono_literals;
using TimePoint = TokenBucket::TimePoint;

const TimePoint kStart = TimePoint() + 1000h;

RateLimit limit_of(
    std::uint32_t requests, std::chrono::milliseconds per, std::optional<std::uint32_t> burst
) {
    return {.requests = requests, .per = per, .burst = burst};
}

TEST(TokenBucket, GivesTheBurstAtOnceAndThenOneAtATime) {
    const RateLimit limit = limit_of(60, 1min, 3);
    TokenBucket bucket;
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(bucket.take(limit, kStart)) << i;
    }
    EXPECT_EQ(bucket.take(limit, kStart), 1000ms);
    EXPECT_EQ(bucket.take(limit, kStart + 400ms), 600ms);
    EXPECT_FALSE(bucket.take(limit, kStart + 1s));
    EXPECT_EQ(bucket.take(limit, kStart + 1s), 1000ms);
}

TEST(TokenBucket, WithoutBurstAllOfATimeMayComeAtOnce) {
    const RateLimit limit = limit_of(5, 10s, std::nullopt);
    TokenBucket bucket;
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(bucket.take(limit, kStart)) << i;
    }
    EXPECT_EQ(bucket.take(limit, kStart), 2000ms);
    EXPECT_FALSE(bucket.take(limit, kStart + 2s));
}

TEST(TokenBucket, NeverHoldsMoreThanTheBurst) {
    const RateLimit limit = limit_of(60, 1min, 2);
    TokenBucket bucket;
    EXPECT_FALSE(bucket.take(limit, kStart));
    const TimePoint later = kStart + 10h;
    EXPECT_FALSE(bucket.take(limit, later));
    EXPECT_FALSE(bucket.take(limit, later));
    EXPECT_TRUE(bucket.take(limit, later));
}

TEST(TokenBucket, RefusalsTakeNothingAndWhoWaitsAsToldIsServed) {
    const RateLimit limit = limit_of(7, 1s, 2);
    TokenBucket bucket;
    TimePoint now = kStart;
    EXPECT_FALSE(bucket.take(limit, now));
    EXPECT_FALSE(bucket.take(limit, now));
    for (int round = 0; round < 1000; ++round) {
        const auto wait = bucket.take(limit, now);
        ASSERT_TRUE(wait) << round;
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(bucket.take(limit, now));
        }
        now += *wait;
        ASSERT_FALSE(bucket.take(limit, now)) << round;
    }
}

TEST(TokenBucket, AChangedLimitCountsAtOnce) {
    TokenBucket bucket;
    EXPECT_FALSE(bucket.take(limit_of(60, 1min, 1), kStart));
    EXPECT_TRUE(bucket.take(limit_of(60, 1min, 1), kStart));
    EXPECT_FALSE(bucket.take(limit_of(60, 1min, 10), kStart));
    EXPECT_TRUE(bucket.take(limit_of(60, 1min, 1), kStart));
}

// However requests come, no window holds more than the burst and what flows in meanwhile.
TEST(TokenBucket, HoldsItsBoundOverRandomArrivals) {
    std::mt19937 random(7);  // the same every time
    for (int round = 0; round < 50; ++round) {
        const RateLimit limit =
            limit_of(1 + random() % 100, 1s * (1 + random() % 60), 1 + random() % 20);
        TokenBucket bucket;
        TimePoint now = kStart;
        double served = 0;
        for (int i = 0; i < 2000; ++i) {
            now += std::chrono::milliseconds(random() % 200);
            served += bucket.take(limit, now) ? 0 : 1;
            const double passed = std::chrono::duration<double>(now - kStart).count();
            const double per = std::chrono::duration<double>(limit.per).count();
            ASSERT_LE(served, *limit.burst + passed * limit.requests / per + 1e-6);
        }
        EXPECT_GT(served, 0);
    }
}

}  // namespace
}  // namespace ars::people
