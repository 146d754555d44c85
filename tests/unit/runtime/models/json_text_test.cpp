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

TEST(JsonText, ReadsWhatIsSlightlyBroken) {
    EXPECT_EQ(parse_json_leniently("\"a\\ud83d\xff\"")->as_string(), "a\uFFFD\uFFFD");
    EXPECT_FALSE(parse_json_leniently("{\"a\":"));
}

}  // namespace
}  // namespace ars::models
