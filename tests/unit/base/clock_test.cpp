#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace ars::base {
namespace {

TEST(Iso8601, WritesUtcWithMilliseconds) {
    EXPECT_EQ(iso8601(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(iso8601(1'700'000'000'123), "2023-11-14T22:13:20.123Z");
    EXPECT_EQ(iso8601(1'700'000'000'007), "2023-11-14T22:13:20.007Z");
    // The leap day of 2000, and a time past 2038.
    EXPECT_EQ(iso8601(951'782'399'999), "2000-02-28T23:59:59.999Z");
    EXPECT_EQ(iso8601(951'782'400'000), "2000-02-29T00:00:00.000Z");
    EXPECT_EQ(iso8601(4'102'444'800'000), "2100-01-01T00:00:00.000Z");
}

TEST(Now, IsTheWallClockInMilliseconds) {
    const std::int64_t before = static_cast<std::int64_t>(std::time(nullptr)) * 1000;
    const std::int64_t now = now_ms();
    // std::time may lag a tick behind; a unit mistake would be off by a factor of 1000.
    EXPECT_GE(now, before - 1000);
    EXPECT_LT(now, before + 3'600'000);
}

}  // namespace
}  // namespace ars::base
