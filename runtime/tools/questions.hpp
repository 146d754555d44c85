// Questions an agent asks a person, and the answers: what of a model's arguments is a question, and
// what of a caller's JSON is an answer to it. Pure: the same arguments always give the same
// questions, ids included, so nothing but the call has to be stored.
#pragma once

#include "base/result.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace ars::tools {

inline constexpr std::string_view kAskUserQuestion = "ask_user_question";

struct QuestionOption {
    std::string label;  // what a person reads
    std::string value;  // what the agent gets
    std::string description;
};

struct Question {
    std::string id;  // unique in its call
    std::string text;
    std::vector<QuestionOption> options;
    bool multi_select = false;
    bool allow_other = true;  // an answer may be none of the options; true when there are none
    std::string operation;    // free text of the agent, handed through
};

// Models write questions in many ways: as a list or as JSON text, wrapped in {"item": [...]},
// options as plain strings, "true" for true, without ids. All of these are read. Errors: "invalid"
// with a sentence for the model.
[[nodiscard]] base::Result<std::vector<Question>> parse_questions(
    const boost::json::object& arguments
);

[[nodiscard]] boost::json::array questions_to_json(const std::vector<Question>& questions);

// `answers` has one entry for each question, by id: a text, a list of texts where several may be
// chosen, or {"text": ...} for one that is none of the options. Errors: "bad_answers" with a
// sentence for the caller.
[[nodiscard]] base::Result<void> check_answers(
    const std::vector<Question>& questions, const boost::json::object& answers
);

}  // namespace ars::tools
