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

TEST(ParseJson, RefusesAKeyThatStandsTwiceAndNamesTheSecond) {
    const auto parsed = parse_json("{\"a\": {\"b\": 1},\n \"c\": [{\"b\": 1}],\n \"\\u0061\": 2}");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().reason, "the key \"a\" stands twice in one object");
    EXPECT_EQ(parsed.error().line, 3U);
    EXPECT_EQ(parsed.error().column, 9U) << "where the key ends";
    EXPECT_FALSE(parse_json(R"([{"": 1, "": 1}])"));
    EXPECT_TRUE(parse_json(R"({"a": {"a": {"a": [{"a": 1}, {"a": 1}]}}})"));
}

TEST(ParseJson, GivesEveryKindOfValueAsItStands) {
    const char* text =
        R"({"o":{},"a":[],"s":"\u00e9\n","i":-1,"u":18446744073709551615,"d":1.5E0,"t":true,"n":null})";
    EXPECT_EQ(
        parse_json(text).value(),
        boost::json::value(
            {{"o", boost::json::object{}},
             {"a", boost::json::array{}},
             {"s", "\xC3\xA9\n"},
             {"i", -1},
             {"u", 18446744073709551615U},
             {"d", 1.5},
             {"t", true},
             {"n", nullptr}}
        )
    );
}

TEST(ParseJson, RefusesBytesThatAreNotUtf8) {
    EXPECT_FALSE(parse_json("\"\xFF\""));
    EXPECT_FALSE(parse_json("\"\\ud800\""));
}

}  // namespace
}  // namespace ars::server
