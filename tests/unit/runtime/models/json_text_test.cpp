#include "runtime/models/json_text.hpp"

#include <gtest/gtest.h>

namespace ars::models {
namespace {

TEST(JsonText, TellsObjectsFromOtherValuesAndFromNoise) {
    EXPECT_EQ(shape_of_json(R"( {"a":[1,"x",null,true,1.5,{"b":{}}]} )"), JsonShape::object);
    for (const char* other : {"[1]", "\"x\"", "null", "1", "-1.5e3", "true", "[{}]", "[]"}) {
        EXPECT_EQ(shape_of_json(other), JsonShape::other) << other;
    }
    for (const char* bad : {"", "{", "{\"a\":", "{} {}", "{a:1}", "nul", "{\"a\":1,}"}) {
        EXPECT_EQ(shape_of_json(bad), JsonShape::invalid) << bad;
    }
    EXPECT_EQ(shape_of_json(std::string(1000, '[')), JsonShape::invalid);
}

TEST(JsonText, S88_MendsLoneSurrogatesOnly) {
    EXPECT_EQ(
        mend_surrogates(R"("\ud83d\ude00 \u00e4 \\ud83d \n")"),
        R"("\ud83d\ude00 \u00e4 \\ud83d \n")"
    );
    EXPECT_EQ(mend_surrogates(R"("\ud83d")"), R"("\ufffd")");
    EXPECT_EQ(mend_surrogates(R"("\ude00\ud83d\ud83d\ude00")"), R"("\ufffd\ufffd\ud83d\ude00")");
    EXPECT_EQ(mend_surrogates(R"(\ud8)"), R"(\ud8)");
    EXPECT_EQ(mend_surrogates("\\"), "\\");
}

TEST(JsonText, WritesEveryTextAsAStringThatReadsTheSame) {
    std::string all;
    for (char c = 1; c < 127; ++c) {
        all += c;
    }
    all += std::string_view("\0 \u00e9 \U0001F600", 9);
    std::string out = "[";
    append_json_string(out, all);
    EXPECT_EQ(parse_json_leniently(out + "]")->as_array().at(0).as_string(), all);
    std::string broken;
    append_json_string(broken, "a\xff");
    EXPECT_EQ(broken, "\"a\uFFFD\"");
    std::string empty;
    append_json_string(empty, "");
    EXPECT_EQ(empty, "\"\"");
}

TEST(JsonText, ReadsWhatIsSlightlyBroken) {
    EXPECT_EQ(parse_json_leniently("\"a\\ud83d\xff\"")->as_string(), "a\uFFFD\uFFFD");
    EXPECT_FALSE(parse_json_leniently("{\"a\":"));
}

}  // namespace
}  // namespace ars::models
