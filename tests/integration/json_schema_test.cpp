// What holds the API's answers against its document is itself held.
#include "tests/support/json_schema.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

TEST(JsonSchema, TakesWhatFitsAndRefusesWhatDoesNot) {
    struct Case {
        const char* schema;
        const char* good;
        const char* bad;
    };
    const Case cases[] = {
        {R"({"type":"string"})", R"("a")", "1"},
        {R"({"type":"integer"})", "1", "1.5"},
        {R"({"type":["string","null"]})", "null", "false"},
        {R"({"type":"string","minLength":2,"maxLength":3})", R"("äöü")", R"("a")"},
        {R"({"type":"string","maxLength":3})", R"("abc")", R"("abcd")"},
        {R"({"pattern":"^[0-9]+(ms|s)$"})", R"("10ms")", R"("ten")"},
        {R"({"type":"string","format":"date-time"})", R"("2025-01-02T03:04:05.678Z")", R"("now")"},
        {R"({"minimum":1,"maximum":3})", "3", "4"},
        {R"({"minimum":1,"maximum":3})", "1", "0"},
        {R"({"enum":["a",null]})", "null", R"("b")"},
        {R"({"const":2})", "2", "3"},
        {R"({"items":{"type":"integer"}})", "[1,2]", R"([1,"a"])"},
        {R"({"minItems":1})", "[1]", "[]"},
        {R"({"maxItems":1})", "[1]", "[1,2]"},
        {R"({"properties":{"a":{}},"required":["a"]})", R"({"a":1})", R"({"b":1})"},
        {R"({"properties":{"a":{"type":"null"}}})", R"({"a":null,"b":1})", R"({"a":1})"},
        {R"({"properties":{"a":{}},"additionalProperties":false})", R"({"a":1})", R"({"b":1})"},
        {R"({"additionalProperties":{"type":"string"}})", R"({"a":"b"})", R"({"a":1})"},
        {R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "null", "1"},
        {R"({"$ref":"#/$defs/text"})", R"("a")", "1"},
    };
    const json::value root = json::parse(R"({"$defs":{"text":{"type":"string"}}})");
    for (const Case& one : cases) {
        const json::value schema = json::parse(one.schema);
        EXPECT_TRUE(schema_faults(root, schema, json::parse(one.good)).empty()) << one.schema;
        EXPECT_FALSE(schema_faults(root, schema, json::parse(one.bad)).empty()) << one.schema;
        EXPECT_TRUE(faults_of_schema(root, schema).empty()) << one.schema;
    }
    for (const char* broken :
         {R"({"oneOf":[]})", R"({"$ref":"#/$defs/none"})", R"({"items":{"not":{}}})"}) {
        EXPECT_FALSE(faults_of_schema(root, json::parse(broken)).empty()) << broken;
    }
}

}  // namespace
}  // namespace ars::tests
