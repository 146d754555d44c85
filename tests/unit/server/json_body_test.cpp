#include "server/json_body.hpp"

#include <gtest/gtest.h>

namespace ars::server {
namespace {

TEST(ParseJson, NamesLineAndColumnOfAFault) {
    const auto parsed = parse_json("{\n  \"a\": 1,\n  \"b\": x\n}");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().line, 3U);
    EXPECT_EQ(parsed.error().column, 8U);
}

TEST(ParseJson, NamesTheFirstColumnOfTheFirstLine) {
    const auto parsed = parse_json("x");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().line, 1U);
    EXPECT_EQ(parsed.error().column, 1U);
}

TEST(ParseJson, RefusesTextAfterTheValue) {
    const auto parsed = parse_json("{} {}");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().column, 4U);
}

TEST(ParseJson, RefusesWhatEndsTooEarly) {
    EXPECT_FALSE(parse_json(""));
    const auto parsed = parse_json("{\"a\": ");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().column, 7U);
}

TEST(ParseJson, RefusesMoreThanTheDepthLimit) {
    const auto depth = static_cast<std::size_t>(base::limits::kJsonDepth);
    EXPECT_TRUE(parse_json(std::string(depth - 1, '[') + std::string(depth - 1, ']')));
    EXPECT_FALSE(parse_json(std::string(depth + 1, '[') + std::string(depth + 1, ']')));
}

TEST(ParseJson, RefusesBytesThatAreNotUtf8) {
    EXPECT_FALSE(parse_json("\"\xFF\""));
    EXPECT_FALSE(parse_json("\"\\ud800\""));
}

}  // namespace
}  // namespace ars::server
