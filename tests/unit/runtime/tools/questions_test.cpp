#include "runtime/tools/questions.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace ars::tools {
namespace {

namespace json = boost::json;

base::Result<std::vector<Question>> parsed(const char* text) {
    return parse_questions(json::parse(text).as_object());
}

TEST(K166Questions, AreReadHoweverAModelWritesThem) {
    for (const char* text : {
             R"({"questions": [{"question": "Which?", "options": ["red", "blue"]}]})",
             R"({"questions": "[{\"question\": \"Which?\", \"options\": [\"red\", \"blue\"]}]"})",
             R"({"questions": {"item": [{"question": "Which?", "options": {"item": ["red", "blue"]}}]}})",
             R"({"questions": {"question": "Which?", "options": [{"label": "red"}, {"value": "blue"}]}})",
             R"({"question": "Which?", "options": ["red", "blue"]})",
         }) {
        const auto questions = parsed(text);
        ASSERT_TRUE(questions) << text << questions.error().message;
        ASSERT_EQ(questions->size(), 1U) << text;
        const Question& question = questions->front();
        EXPECT_EQ(question.id, "q1") << text;
        EXPECT_EQ(question.text, "Which?") << text;
        ASSERT_EQ(question.options.size(), 2U) << text;
        EXPECT_EQ(question.options[0].value, "red") << text;
        EXPECT_EQ(question.options[1].label, "blue") << text;
    }
}

TEST(K166Questions, FlagsMayBeTextsAndIdsAreUnique) {
    const auto questions = parsed(
        R"({"questions": [
            {"question_id": "a", "question": "1", "options": ["x"], "multi_select": "true",
             "allow_other": "false"},
            {"question_id": "a", "question": "2"},
            {"question_id": "q3", "question": "3", "allow_other": false},
            {"question": "4"}]})"
    );
    ASSERT_TRUE(questions);
    EXPECT_TRUE((*questions)[0].multi_select);
    EXPECT_FALSE((*questions)[0].allow_other);
    EXPECT_EQ((*questions)[1].id, "q2");
    EXPECT_EQ((*questions)[2].id, "q3");
    EXPECT_TRUE((*questions)[2].allow_other) << "without options every answer is another one";
    EXPECT_EQ((*questions)[3].id, "q4");
}

TEST(K166Questions, WhatIsNoneIsSaidToTheModel) {
    for (const char* text : {
             "{}",
             R"({"questions": []})",
             R"({"questions": 7})",
             R"({"questions": "not json"})",
             R"({"questions": [{"options": ["a"]}]})",
             R"({"questions": ["Which?"]})",
             R"({"questions": [{"question": "Which?", "options": [{}]}]})",
             R"({"questions": {"a": {"b": {"c": {"d": {"e": [{"question": "Which?"}]}}}}}})",
         }) {
        const auto questions = parsed(text);
        ASSERT_FALSE(questions) << text;
        EXPECT_FALSE(questions.error().message.empty());
    }
}

TEST(Answers, AreOneForEachQuestionOfItsKind) {
    const auto questions = parsed(
        R"({"questions": [
            {"question_id": "one", "question": "?", "options": ["a", "b"], "allow_other": false},
            {"question_id": "many", "question": "?", "options": ["a", "b"], "multi_select": true}
        ]})"
    );
    ASSERT_TRUE(questions);
    const auto fits = [&](const char* answers) {
        return check_answers(*questions, json::parse(answers).as_object()).has_value();
    };
    EXPECT_TRUE(fits(R"({"one": "a", "many": ["a", "b"]})"));
    EXPECT_TRUE(fits(R"({"one": "a", "many": {"text": "neither"}})"));
    EXPECT_TRUE(fits(R"({"one": "a", "many": ["a", "something else"]})"));
    EXPECT_FALSE(fits(R"({"one": "a"})")) << "one is missing";
    EXPECT_FALSE(fits(R"({"one": "a", "many": "a", "third": "a"})")) << "one too many";
    EXPECT_FALSE(fits(R"({"one": "c", "many": "a"})")) << "not an option";
    EXPECT_FALSE(fits(R"({"one": {"text": "c"}, "many": "a"})")) << "not an option either";
    EXPECT_FALSE(fits(R"({"one": ["a"], "many": "a"})")) << "only one may be chosen";
    EXPECT_FALSE(fits(R"({"one": "a", "many": []})"));
    EXPECT_FALSE(fits(R"({"one": "a", "many": ""})"));
    EXPECT_FALSE(fits(R"({"one": true, "many": "a"})"));
}

}  // namespace
}  // namespace ars::tools
