#include "runtime/models/scripted_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ars::models {
namespace {

using ::testing::HasSubstr;

const std::map<std::string, std::string> kSources = {
    {"user", "sum it up"},
    {"sums", "rows=10\nrevenue_total= 12.50 EUR\n"},
    {"start", R"({"run_id": "r-1", "items": [{"n": 3}, true], "nested": {"k": "v|w"}})"},
    {"empty", ""},
};

std::string render(std::string_view text) {
    const auto out = render_template(text, [](const std::string& source) {
        const auto found = kSources.find(source);
        return found == kSources.end() ? std::nullopt : std::optional(found->second);
    });
    return out ? *out : out.error().code + ": " + out.error().message;
}

TEST(ScriptedTemplate, PlaceholdersAreFilledFromTheirSource) {
    EXPECT_EQ(render("no placeholder }} here"), "no placeholder }} here");
    EXPECT_EQ(render("You said: {{user}}!"), "You said: sum it up!");
    EXPECT_EQ(render("{{ sums }}{{user}}"), "rows=10\nrevenue_total= 12.50 EUR\nsum it up");
    EXPECT_EQ(render("[{{empty}}]"), "[]");
}

TEST(ScriptedTemplate, FieldsOfAJsonResultAreTakenByPath) {
    EXPECT_EQ(render("{{start.json.run_id}}"), "r-1");
    EXPECT_EQ(render("{{start.json.items.0.n}} {{start.json.items.1}}"), "3 true");
    EXPECT_EQ(render("{{start.json.items.0}}"), R"({"n":3})");
    EXPECT_EQ(render("{{start.json.nested.k | sh}}"), "'v|w'");
}

TEST(ScriptedTemplate, FiltersTakeTheRestOfALineAndWordsOfIt) {
    EXPECT_EQ(render("{{sums | line \"revenue_total=\"}}"), "12.50 EUR");
    EXPECT_EQ(render("{{sums | line \"revenue_total=\" | word 1}}"), "12.50");
    EXPECT_EQ(render("{{sums|word 2}}"), "revenue_total=");
    EXPECT_EQ(render("{{sums | line \"rows=\" | trim}}"), "10");
    EXPECT_EQ(render("{{user | sh}}"), "'sum it up'");
}

TEST(ScriptedTemplate, WhatCannotBeFilledIsAnErrorThatNamesThePlaceholder) {
    EXPECT_THAT(render("{{gone}}"), HasSubstr("unresolved_placeholder: the placeholder {{gone}}"));
    EXPECT_THAT(render("{{sums.json.x}}"), HasSubstr("the result is not JSON: \"rows=10"));
    EXPECT_THAT(render("{{start.json.items.2}}"), HasSubstr("the result has no \"2\""));
    EXPECT_THAT(render("{{start.json.run_id.deep}}"), HasSubstr("the result has no \"deep\""));
    EXPECT_THAT(render("{{sums | line \"total=\"}}"), HasSubstr("nothing in the result fits"));
    EXPECT_THAT(render("{{sums | word 9}}"), HasSubstr("nothing in the result fits"));
}

TEST(ScriptedTemplate, BadPlaceholdersAreFoundWhenTheScriptIsRead) {
    for (const char* text :
         {"{{",
          "{{}}",
          "{{a b}}",
          "{{a.text}}",
          "{{user.json.x}}",
          "{{a.json.x..y}}",
          "{{a | shout}}",
          "{{a | line}}",
          "{{a | line \"\"}}",
          "{{a | word 0}}",
          "{{a | word x}}",
          "{{a | trim 1}}"}) {
        const auto parts = parse_template(text);
        ASSERT_FALSE(parts.has_value()) << text;
        EXPECT_EQ(parts.error().code, "bad_placeholder") << text;
    }
    EXPECT_TRUE(parse_template("awk '{ for (k in a) { print k }}'").has_value());
    EXPECT_TRUE(parse_template("{{a | line \"x | y\"}}").has_value()) << "a quoted bar is text";
}

}  // namespace
}  // namespace ars::models
