#include "base/fields.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::base {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Colour : std::uint8_t { red, green };

struct Inner {
    std::string name;
    std::uint32_t weight = 7;
    friend bool operator==(const Inner&, const Inner&) = default;
};

struct Outer {
    std::string query;
    std::optional<std::string> thread;
    std::uint32_t steps = 300;
    double ratio = 0.5;
    bool stream = true;
    std::chrono::milliseconds wait = 10s;
    std::uint64_t room = 65536;
    Colour colour = Colour::green;
    std::vector<std::string> tags;
    std::optional<std::vector<std::string>> tools;
    Inner inner;
    std::vector<Inner> many;
    std::map<std::string, Inner> named;
    json::object extra;
    std::optional<json::value> resume;
};

std::string lower_only(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; })
               ? ""
               : "must be lower-case letters";
}

const Fields<Inner>& inner_fields() {
    static const Fields<Inner> fields =
        Fields<Inner>{}
            .text("name", &Inner::name, {.required = true, .min = 1, .check = lower_only})
            .integer("weight", &Inner::weight, {.min = 1, .max = 100});
    return fields;
}

const Fields<Outer>& outer_fields() {
    static const Fields<Outer> fields =
        Fields<Outer>{}
            .text("query", &Outer::query, {.required = true, .max = 20, .doc = "What to do."})
            .text("thread", &Outer::thread)
            .integer("steps", &Outer::steps, {.min = 1, .doc = "Model calls."})
            .number("ratio", &Outer::ratio, {.min = 0, .max = 1})
            .boolean("stream", &Outer::stream)
            .duration("wait", &Outer::wait, {.max = 60'000})
            .size("room", &Outer::room)
            .choice("colour", &Outer::colour, {{"red", Colour::red}, {"green", Colour::green}})
            .texts("tags", &Outer::tags, {.check = lower_only})
            .texts("tools", &Outer::tools)
            .object("inner", &Outer::inner, inner_fields())
            .objects("many", &Outer::many, inner_fields(), {.max = 2})
            .map("named", &Outer::named, inner_fields(), {.check = lower_only})
            .raw("extra", &Outer::extra)
            .any("resume", &Outer::resume);
    return fields;
}

std::vector<std::string> faults_of(std::string_view text) {
    Outer out;
    std::vector<std::string> described;
    for (const Fault& fault : outer_fields().decode(json::parse(text), out)) {
        described.push_back(describe(fault));
    }
    return described;
}

TEST(Fields, AFullObjectFillsEveryMember) {
    Outer out;
    const auto faults = outer_fields().decode(
        json::parse(
            R"({"query": "go", "thread": "t1", "steps": 5, "ratio": 1, "stream": false, "wait": "1m",
            "room": "64KiB", "colour": "red", "tags": ["a", "b"], "tools": [], "inner": {"name": "x"},
            "many": [{"name": "y", "weight": 3}], "named": {"k": {"name": "z"}}, "extra": {"any": 1},
            "resume": null})"
        )
            .as_object(),
        out,
        "/body"
    );
    EXPECT_TRUE(faults.empty()) << describe(faults.front());
    EXPECT_EQ(out.query, "go");
    EXPECT_EQ(out.thread, "t1");
    EXPECT_EQ(out.steps, 5U);
    EXPECT_EQ(out.ratio, 1.0);
    EXPECT_FALSE(out.stream);
    EXPECT_EQ(out.wait, 1min);
    EXPECT_EQ(out.room, 65536U);
    EXPECT_EQ(out.colour, Colour::red);
    EXPECT_THAT(out.tags, ElementsAre("a", "b"));
    ASSERT_TRUE(out.tools.has_value());
    EXPECT_TRUE(out.tools->empty());
    EXPECT_EQ(out.inner, (Inner{"x", 7}));
    EXPECT_THAT(out.many, ElementsAre(Inner{"y", 3}));
    EXPECT_EQ(out.named.at("k"), (Inner{"z", 7}));
    EXPECT_EQ(json::serialize(out.extra), R"({"any":1})");
    ASSERT_TRUE(out.resume.has_value());
    EXPECT_TRUE(out.resume->is_null());
}

TEST(Fields, MissingKeysKeepTheDefaultsAndNullMeansAbsentOnlyForOptionals) {
    Outer out;
    EXPECT_TRUE(outer_fields().decode(json::parse(R"({"query": "q", "thread": null})"), out).empty()
    );
    EXPECT_FALSE(out.thread.has_value());
    EXPECT_FALSE(out.tools.has_value());
    EXPECT_FALSE(out.resume.has_value());
    EXPECT_EQ(out.steps, 300U);
    EXPECT_THAT(
        faults_of(R"({"query": null})"), ElementsAre("query: must be a text, found nothing (null)")
    );
}

TEST(Fields, EveryFaultIsReportedAtOnceWithItsPlace) {
    EXPECT_THAT(
        faults_of(R"({"steps": "many", "stream": "yes", "colour": "gren", "tags": ["ok", "Bad", 3],
                      "inner": {"name": "", "weight": 101}, "many": [{"name": "a"}, {"nmae": "b"}],
                      "named": {"Key": {"name": "n"}}, "extra": [], "qurey": "typo"})"),
        ElementsAre(
            "query: is missing",
            "steps: must be a whole number, found the text \"many\"",
            "stream: must be true or false, found the text \"yes\"",
            "colour: must be one of red and green, found \"gren\"; did you mean \"green\"?",
            "tags[1]: must be lower-case letters",
            "tags[2]: must be a text, found the number 3",
            "inner.name: must not be empty",
            "inner.weight: must be between 1 and 100, found 101",
            "many[1].name: is missing",
            "many[1].nmae: unknown key; did you mean \"name\"?",
            "named.Key: must be lower-case letters",
            "extra: must be an object, found a list",
            "qurey: unknown key; did you mean \"query\"?"
        )
    );
}

TEST(Fields, OfAMillionFaultsTheFirstHundredAreReported) {
    json::object unknown{{"query", "q"}};
    json::array wrong;
    for (int i = 0; i < 20'000; ++i) {
        unknown["key" + std::to_string(i)] = i;
        wrong.emplace_back(i);
    }
    for (const json::object& body :
         {unknown, json::object{{"query", "q"}, {"tags", std::move(wrong)}}}) {
        const auto faults = faults_of(json::serialize(body));
        ASSERT_EQ(faults.size(), 101U);
        EXPECT_EQ(faults.back(), "there are more faults; these are the first");
    }
}

TEST(Fields, BoundsAreThoseOfTheRuleAndOfTheMembersType) {
    EXPECT_THAT(
        faults_of(R"({"query": "123456789012345678901", "steps": 4294967296, "wait": "61s"})"),
        ElementsAre(
            "query: must be at most 20 bytes long, found 21",
            "steps: must be between 1 and 4294967295, found 4294967296",
            "wait: must be at most 1m, found 61s"
        )
    );
    EXPECT_THAT(
        faults_of(R"({"query": "", "steps": 1.5, "ratio": 1.01, "room": -1})"),
        ElementsAre(
            "steps: must be a whole number, found the number 1.5",
            "ratio: must be at most 1, found 1.01",
            HasSubstr("room: must be")
        )
    );
}

TEST(Fields, ADurationWithoutAUnitIsAFaultWithARemedy) {
    EXPECT_THAT(
        faults_of(R"({"query": "", "wait": 30})"),
        ElementsAre("wait: must be a duration, found the number 30; write it with a unit, like "
                    "500ms, 10s, 5m or 2h")
    );
}

TEST(Fields, AValueThatIsNoObjectIsOneFault) {
    EXPECT_THAT(faults_of("[]"), ElementsAre("must be an object, found a list"));
}

TEST(Fields, AnUnknownKeyNothingLikeAKnownOneListsTheKnownOnes) {
    Inner out;
    const auto faults = inner_fields().decode(json::parse(R"({"name": "a", "zzzzzzzz": 1})"), out);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].path, "/zzzzzzzz");
    EXPECT_EQ(faults[0].remedy, "known keys: name and weight");
}

TEST(Fields, FaultPathsAreJsonPointersWithEscapes) {
    EXPECT_EQ(join_pointer("/a", "b/c~d"), "/a/b~1c~0d");
}

TEST(Fields, EncodeThenDecodeGivesTheSameValue) {
    Outer value;
    value.query = "again";
    value.wait = 45s;
    value.named["k"] = Inner{"z", 9};
    value.inner.name = "x";
    value.tools = std::vector<std::string>{"execute"};
    const json::object written = outer_fields().encode(value);
    Outer read;
    EXPECT_TRUE(outer_fields().decode(written, read).empty());
    EXPECT_EQ(json::serialize(outer_fields().encode(read)), json::serialize(written));
    EXPECT_EQ(written.at("wait").as_string(), "45s");
    EXPECT_TRUE(written.at("thread").is_null());
}

TEST(Fields, TheSchemaNamesTypesBoundsDefaultsAndTexts) {
    const json::object schema = outer_fields().schema();
    EXPECT_EQ(json::serialize(schema.at("required")), R"(["query"])");
    EXPECT_EQ(json::serialize(schema.at("additionalProperties")), "false");
    const json::object& properties = schema.at("properties").as_object();
    EXPECT_EQ(
        json::serialize(properties.at("query")),
        R"({"type":"string","maxLength":20,"description":"What to do."})"
    );
    EXPECT_EQ(
        json::serialize(properties.at("steps")),
        R"({"type":"integer","minimum":1,"maximum":4294967295,"description":"Model calls.","default":300})"
    );
    EXPECT_EQ(
        json::serialize(properties.at("colour")),
        R"({"type":"string","enum":["red","green"],"default":"green"})"
    );
    EXPECT_EQ(properties.at("many").as_object().at("maxItems").as_int64(), 2);
    EXPECT_TRUE(properties.at("inner").as_object().at("properties").as_object().contains("weight"));
}

TEST(Fields, ManyFaultsBecomeOneInvalidError) {
    Outer out;
    const Error error =
        faults_error("bad_body", outer_fields().decode(json::parse("{\"a\": 1}"), out));
    EXPECT_EQ(error.kind, ErrorKind::invalid);
    EXPECT_EQ(error.code, "bad_body");
    EXPECT_THAT(error.message, HasSubstr("query: is missing\na: unknown key"));
}

}  // namespace
}  // namespace ars::base
