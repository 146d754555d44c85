#include "base/units.hpp"

#include <gtest/gtest.h>

namespace ars::base {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsEachUnit) {
    EXPECT_EQ(parse_duration("500ms").value(), 500ms);
    EXPECT_EQ(parse_duration("10s").value(), 10s);
    EXPECT_EQ(parse_duration("5m").value(), 5min);
    EXPECT_EQ(parse_duration("2h").value(), 2h);
    EXPECT_EQ(parse_duration("0s").value(), 0ms);
}

TEST(Duration, RefusesWhatIsNotOneAndShowsHowToWriteIt) {
    for (const char* bad :
         {"", "10", "s", "-1s", "+1s", "1.5s", "10 s", " 10s", "10s ", "10sec", "1d", "0x10s"}) {
        const auto result = parse_duration(bad);
        ASSERT_FALSE(result.has_value()) << bad;
        EXPECT_EQ(result.error().code, "bad_duration");
        EXPECT_EQ(result.error().kind, ErrorKind::invalid);
        EXPECT_NE(result.error().message.find("500ms"), std::string::npos);
    }
}

TEST(Duration, RefusesOverflowInsteadOfWrapping) {
    EXPECT_EQ(parse_duration("9223372036854775807ms").value().count(), INT64_MAX);
    EXPECT_FALSE(parse_duration("9223372036854775808ms").has_value());
    EXPECT_FALSE(parse_duration("9223372036854775807s").has_value());
    EXPECT_FALSE(parse_duration("99999999999999999999h").has_value());
}

TEST(Size, ReadsEachUnit) {
    EXPECT_EQ(parse_size("512").value(), 512U);
    EXPECT_EQ(parse_size("512B").value(), 512U);
    EXPECT_EQ(parse_size("64KiB").value(), 64U * 1024);
    EXPECT_EQ(parse_size("10MiB").value(), 10U * 1024 * 1024);
    EXPECT_EQ(parse_size("1GiB").value(), 1ULL << 30U);
    EXPECT_EQ(parse_size("2TiB").value(), 2ULL << 40U);
}

TEST(Size, RefusesWhatIsNotOneAndOverflow) {
    for (const char* bad :
         {"", "KiB", "-1", "64KB", "64kib", "64 KiB", "1.5GiB", "8388608TiB", "18446744073709551616"
         }) {
        const auto result = parse_size(bad);
        ASSERT_FALSE(result.has_value()) << bad;
        EXPECT_EQ(result.error().code, "bad_size");
    }
    EXPECT_EQ(parse_size("8388607TiB").value(), 8388607ULL << 40U);
}

TEST(FormatDuration, ChoosesTheUnitAPersonWould) {
    EXPECT_EQ(format_duration(0ms), "0 ms");
    EXPECT_EQ(format_duration(87ms), "87 ms");
    EXPECT_EQ(format_duration(999ms), "999 ms");
    EXPECT_EQ(format_duration(1000ms), "1.00 s");
    EXPECT_EQ(format_duration(1234ms), "1.23 s");
    EXPECT_EQ(format_duration(59'994ms), "59.99 s");
    EXPECT_EQ(format_duration(59'999ms), "1 m 0 s");
    EXPECT_EQ(format_duration(60s), "1 m 0 s");
    EXPECT_EQ(format_duration(125s), "2 m 5 s");
    EXPECT_EQ(format_duration(2h), "120 m 0 s");
}

}  // namespace
}  // namespace ars::base
