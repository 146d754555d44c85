#include "base/document.hpp"

#include "base/limits.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace ars::base {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

json::value value_of(std::string_view yaml) {
    auto document = parse_yaml("t.yaml", yaml);
    EXPECT_TRUE(document.has_value()) << document.error().message;
    return document ? document->value : json::value();
}

std::string error_of(std::string_view yaml) {
    auto document = parse_yaml("t.yaml", yaml);
    EXPECT_FALSE(document.has_value()) << json::serialize(document->value);
    return document ? "" : document.error().message;
}

TEST(Document, PlainScalarsFollowTheCoreSchemaAndQuotedOnesStayText) {
    EXPECT_EQ(
        value_of("[null, ~, true, False, yes, 12, -3, +4, 0x1F, 0o17, 1.5, .5, 1e3, 12abc, 1.2.3, "
                 "'12', \"true\", 10s]"),
        json::parse(
            R"([null, null, true, false, "yes", 12, -3, 4, 31, 15, 1.5, 0.5, 1000.0, "12abc", "1.2.3",
                        "12", "true", "10s"])"
        )
    );
    EXPECT_EQ(value_of("a:\nb: ~\nc: ''"), json::parse(R"({"a": null, "b": null, "c": ""})"));
    EXPECT_EQ(value_of("[18446744073709551615]").at(0).as_uint64(), 18446744073709551615ULL);
    EXPECT_EQ(
        value_of("[2024-01-02, 0x, -, ., e5, 1e, -0x1, .inf]"),
        json::parse(R"(["2024-01-02", "0x", "-", ".", "e5", "1e", "-0x1", ".inf"])")
    );
    EXPECT_EQ(value_of("!!str 5"), json::value("5"));
}

TEST(Document, BlockTextsKeepTheirLines) {
    EXPECT_EQ(value_of("a: |\n  one\n  two\n").at("a").as_string(), "one\ntwo\n");
}

TEST(Document, EveryValueKnowsItsLine) {
    const auto document = parse_yaml(
        "t.yaml",
        "# comment\nserver:\n  listen: x\nkeys:\n  - name: a\n    uid: b\n  - {name: c}\n'a/b': 1\n"
    );
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(document->line_of(""), 2);
    EXPECT_EQ(document->line_of("/server"), 2);
    EXPECT_EQ(document->line_of("/server/listen"), 3);
    EXPECT_EQ(document->line_of("/keys/0"), 5);
    EXPECT_EQ(document->line_of("/keys/0/uid"), 6);
    EXPECT_EQ(document->line_of("/keys/1/name"), 7);
    EXPECT_EQ(document->line_of("/a~1b"), 8);
    EXPECT_EQ(document->line_of("/keys/1/missing"), 7) << "the nearest parent answers";
}

TEST(Document, AFaultIsDescribedWithFileLineKeyAndRemedy) {
    const auto document = parse_yaml("configs/a.yaml", "context:\n  modle: x\n");
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(
        document->describe({"/context/modle", "unknown key", "did you mean \"model\"?"}),
        "configs/a.yaml:2: context.modle: unknown key; did you mean \"model\"?"
    );
    EXPECT_EQ(document->describe({"", "is empty", ""}), "configs/a.yaml:1: is empty");
    EXPECT_EQ(Document{}.describe({"/keys/0/uid", "is missing", ""}), "keys[0].uid: is missing");
}

TEST(Document, DuplicateKeysAreRefusedWithBothLines) {
    EXPECT_EQ(
        error_of("a: 1\nb: 2\na: 3\n"),
        "t.yaml:3: not valid YAML: the key \"a\" stands twice, first on line 1"
    );
}

TEST(Document, BrokenYamlIsRefusedWithItsLine) {
    EXPECT_THAT(error_of("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("t.yaml:3: not valid YAML"));
    EXPECT_THAT(error_of("a: 1\n b: 2\n"), HasSubstr("t.yaml:2: not valid YAML"));
    EXPECT_THAT(error_of("a: \"open\nb: \"x\"\n"), HasSubstr("t.yaml:"));
    EXPECT_THAT(error_of("a: *nowhere\n"), HasSubstr("t.yaml:1: not valid YAML"));
    EXPECT_THAT(error_of(""), HasSubstr("empty"));
    EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("second document"));
    EXPECT_THAT(error_of("a: \xff\n"), HasSubstr("not UTF-8"));
    EXPECT_THAT(error_of("a: !!binary aGk=\n"), HasSubstr("is not supported"));
    EXPECT_THAT(error_of("? [a, b]\n: 1\n"), HasSubstr("a key must be a text"));
}

TEST(Document, AliasesCopyTheirValueButMayNeitherRecurseNorExplode) {
    EXPECT_EQ(value_of("a: &x {k: 1}\nb: *x\n"), json::parse(R"({"a": {"k": 1}, "b": {"k": 1}})"));
    EXPECT_THAT(error_of("a: &x [*x]\n"), HasSubstr("inside the value that it names"));
    std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string alias = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
        for (int j = 0; j < 9; ++j) {
            bomb += "," + alias;
        }
        bomb += "]\n";
    }
    EXPECT_THAT(error_of(bomb), HasSubstr("more than 100000 values"));
}

TEST(Document, AliasesOfALongTextDoNotFillTheMemory) {
    std::string bomb = "text: &t " + std::string(1'000'000, 'x') + "\nlist: [*t";
    for (int i = 0; i < 50'000; ++i) {
        bomb += ",*t";
    }
    EXPECT_THAT(error_of(bomb + "]\n"), HasSubstr("t.yaml:2: not valid YAML: more than 100000"));
}

TEST(Document, AliasesOfAliasesDoNotNestDeeperThanTheBound) {
    const auto chain = [](int links) {
        std::string text = "a0: &a0 [[1]]\n";
        for (int i = 1; i <= links; ++i) {
            text += fmt::format("a{}: &a{} [{{k: *a{}}}]\n", i, i, i - 1);
        }
        return text;
    };
    // The outermost map, two levels of the first list, and two of each link.
    EXPECT_TRUE(parse_yaml("t.yaml", chain(30)).has_value());
    EXPECT_THAT(error_of(chain(31)), HasSubstr("t.yaml:32: not valid YAML: nested deeper than 64"));
}

TEST(Document, NestingBeyondTheBoundIsRefused) {
    const auto nested = [](int levels) {
        return std::string(static_cast<std::size_t>(levels), '[') +
               std::string(static_cast<std::size_t>(levels), ']');
    };
    EXPECT_TRUE(parse_yaml("t.yaml", nested(limits::kJsonDepth)).has_value());
    EXPECT_THAT(error_of(nested(limits::kJsonDepth + 1)), HasSubstr("deeper than 64"));
    EXPECT_THAT(error_of(nested(5000)), HasSubstr("t.yaml:1"));
}

TEST(Document, AMissingFileIsAnErrorThatNamesIt) {
    const auto document = load_yaml("/nonexistent/appliance.yaml");
    ASSERT_FALSE(document.has_value());
    EXPECT_THAT(document.error().message, HasSubstr("/nonexistent/appliance.yaml"));
}

TEST(Document, AFileIsReadUnderTheNameItWasGiven) {
    const std::string path = ::testing::TempDir() + "document_test.yaml";
    std::ofstream(path) << "a: 1\n";
    const auto document = load_yaml(path);
    std::remove(path.c_str());
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(document->file, path);
}

}  // namespace
}  // namespace ars::base
