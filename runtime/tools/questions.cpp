#include "runtime/tools/questions.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ars::tools {

namespace json = boost::json;

namespace {

// A person reads them all before one step of a run.
constexpr std::size_t kMaxQuestions = 20;
constexpr std::size_t kMaxOptions = 50;
// {"item": {"questions": "[...]"}}: deeper is no question any more.
constexpr int kMaxWrappers = 4;

std::unexpected<base::Error> bad_question(std::string message) {
    return base::fail(base::ErrorKind::invalid, "bad_questions", std::move(message));
}

std::string text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) {
        return {};
    }
    return std::string(base::trim(std::string_view(value->get_string())));
}

// true, "true" and "True" alike.
bool flag_of(const json::object& object, std::string_view key, bool otherwise) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr) {
        return otherwise;
    }
    if (value->is_bool()) {
        return value->get_bool();
    }
    const std::string text = text_of(object, key);
    if (text == "true" || text == "True") {
        return true;
    }
    return text == "false" || text == "False" ? false : otherwise;
}

// The list inside JSON text and wrappers of one key; nullopt when there is none. `is_item` says
// which object is an item itself and no wrapper.
std::optional<json::array> unwrap(json::value value, bool (*is_item)(const json::object&)) {
    for (int depth = 0; depth < kMaxWrappers; ++depth) {
        if (value.is_array()) {
            return std::move(value.as_array());
        }
        if (value.is_string()) {
            boost::system::error_code error;
            json::parse_options options;
            options.max_depth = base::limits::kJsonDepth;
            json::value inner = json::parse(value.get_string(), error, {}, options);
            if (error) {
                return std::nullopt;
            }
            value = std::move(inner);
            continue;
        }
        if (!value.is_object()) {
            return std::nullopt;
        }
        if (is_item(value.get_object())) {
            return json::array{std::move(value)};
        }
        if (value.get_object().size() != 1) {
            return std::nullopt;
        }
        json::value inner = std::move(value.get_object().begin()->value());
        value = std::move(inner);
    }
    return std::nullopt;
}

bool is_question(const json::object& object) { return object.contains("question"); }
bool is_option(const json::object& object) {
    return object.contains("label") || object.contains("value");
}

std::optional<QuestionOption> option_of(const json::value& value) {
    QuestionOption option;
    if (value.is_string()) {
        option.label = base::trim(std::string_view(value.get_string()));
    } else if (const json::object* object = value.if_object()) {
        option.label = text_of(*object, "label");
        option.value = text_of(*object, "value");
        option.description = text_of(*object, "description");
    }
    if (option.label.empty()) {
        option.label = option.value;
    }
    if (option.value.empty()) {
        option.value = option.label;
    }
    return option.label.empty() ? std::nullopt : std::optional(std::move(option));
}

base::Result<Question> question_of(const json::value& value) {
    const json::object* object = value.if_object();
    Question question;
    if (object == nullptr || (question.text = text_of(*object, "question")).empty()) {
        return bad_question("Each question is an object with the text in `question`.");
    }
    question.id = text_of(*object, "question_id");
    question.multi_select = flag_of(*object, "multi_select", false);
    question.allow_other = flag_of(*object, "allow_other", true);
    question.operation = text_of(*object, "operation");
    if (const json::value* given = object->if_contains("options"); given && !given->is_null()) {
        const auto options = unwrap(*given, is_option);
        if (!options || options->size() > kMaxOptions) {
            return bad_question(fmt::format(
                "`options` is a list of at most {} objects {{\"label\", \"value\"}} or texts.",
                kMaxOptions
            ));
        }
        for (const json::value& item : *options) {
            std::optional<QuestionOption> option = option_of(item);
            if (!option) {
                return bad_question("Each option has a `label`, a `value`, or is a text.");
            }
            question.options.push_back(std::move(*option));
        }
    }
    question.allow_other = question.allow_other || question.options.empty();
    return question;
}

bool has_id(const std::vector<Question>& questions, std::string_view id) {
    return std::ranges::any_of(questions, [&](const Question& q) { return q.id == id; });
}

// Unique by its place where the model gave none, or one twice.
std::string fresh_id(const std::vector<Question>& questions) {
    std::size_t n = questions.size() + 1;
    while (has_id(questions, fmt::format("q{}", n))) {
        ++n;
    }
    return fmt::format("q{}", n);
}

// What is wrong with the answer to `question`, "" when nothing is.
std::string fault_of_choice(const Question& question, std::string_view answer) {
    const bool known = std::ranges::any_of(question.options, [&](const QuestionOption& option) {
        return option.value == answer;
    });
    if (base::trim(answer).empty()) {
        return "must not be empty";
    }
    return known || question.allow_other
               ? ""
               : "must be the value of one of the options: this question takes no other answer";
}

std::string fault_of_answer(const Question& question, const json::value& answer) {
    if (answer.is_string()) {
        return fault_of_choice(question, answer.get_string());
    }
    if (const json::array* list = answer.if_array()) {
        if (!question.multi_select || list->empty()) {
            return question.multi_select ? "must not be empty" : "must be one text, not a list";
        }
        for (const json::value& item : *list) {
            if (!item.is_string()) {
                return "must be a list of texts";
            }
            if (std::string fault = fault_of_choice(question, item.get_string()); !fault.empty()) {
                return fault;
            }
        }
        return {};
    }
    const json::object* object = answer.if_object();
    if (object == nullptr || text_of(*object, "text").empty()) {
        return "must be a text, a list of texts or {\"text\": ...}";
    }
    return question.allow_other ? "" : "must be one of the options: free text is not allowed";
}

}  // namespace

base::Result<std::vector<Question>> parse_questions(const json::object& arguments) {
    const json::value* given = arguments.if_contains("questions");
    std::optional<json::array> items;
    if (given != nullptr) {
        items = unwrap(*given, is_question);
    } else if (is_question(arguments)) {
        items = json::array{arguments};
    }
    if (!items || items->empty() || items->size() > kMaxQuestions) {
        return bad_question(fmt::format(
            "`questions` must be a list of 1 to {} objects {{\"question\": text, \"options\": "
            "[{{\"label\", \"value\"}}]}}.",
            kMaxQuestions
        ));
    }
    std::vector<Question> out;
    for (const json::value& item : *items) {
        base::Result<Question> question = question_of(item);
        if (!question) {
            return std::unexpected(question.error());
        }
        if (question->id.empty() || has_id(out, question->id)) {
            question->id = fresh_id(out);
        }
        out.push_back(std::move(*question));
    }
    return out;
}

json::array questions_to_json(const std::vector<Question>& questions) {
    json::array out;
    for (const Question& question : questions) {
        json::array options;
        for (const QuestionOption& option : question.options) {
            json::object entry{{"label", option.label}, {"value", option.value}};
            if (!option.description.empty()) {
                entry["description"] = option.description;
            }
            options.push_back(std::move(entry));
        }
        json::object entry{
            {"question_id", question.id},
            {"question", question.text},
            {"options", std::move(options)},
            {"multi_select", question.multi_select},
            {"allow_other", question.allow_other},
        };
        if (!question.operation.empty()) {
            entry["operation"] = question.operation;
        }
        out.push_back(std::move(entry));
    }
    return out;
}

base::Result<void> check_answers(
    const std::vector<Question>& questions, const json::object& answers
) {
    const auto bad = [](std::string message) {
        return base::fail(base::ErrorKind::invalid, "bad_answers", std::move(message));
    };
    for (const auto& [id, answer] : answers) {
        if (!has_id(questions, id)) {
            return bad(fmt::format("answers: there is no question \"{}\"", std::string_view(id)));
        }
    }
    for (const Question& question : questions) {
        const json::value* answer = answers.if_contains(question.id);
        if (answer == nullptr) {
            return bad(fmt::format("answers: question \"{}\" has no answer", question.id));
        }
        if (std::string fault = fault_of_answer(question, *answer); !fault.empty()) {
            return bad(fmt::format("answers: \"{}\" {}", question.id, fault));
        }
    }
    return {};
}

}  // namespace ars::tools
