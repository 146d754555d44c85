#include "server/run_dialog.hpp"

#include "base/text.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace ars::server {

namespace json = boost::json;

namespace {

// A model's text on a terminal: no escape sequence of its goes there.
std::string plain(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        c = (byte < ' ' && c != '\n') || byte == 0x7F ? ' ' : c;
    }
    return out;
}

std::string plain_at(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? plain(value->get_string()) : std::string();
}

// The value of the option that `choice` names by its number; nothing when it is no such number.
std::optional<std::string> option_value(const json::array& options, std::string_view choice) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(choice.data(), choice.data() + choice.size(), number);
    if (error != std::errc() || end != choice.data() + choice.size() || number == 0 ||
        number > options.size()) {
        return std::nullopt;
    }
    return std::string(options[number - 1].as_object().at("value").as_string());
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> out;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        if (const auto part = base::trim(text.substr(at, comma - at)); !part.empty()) {
            out.push_back(part);
        }
        at = comma + 1;
    }
    return out;
}

// What was typed as an answer to `question`; nothing when it is none.
std::optional<json::value> answer_of(const json::object& question, std::string_view typed) {
    const json::array& options = question.at("options").as_array();
    const bool many = question.at("multi_select").as_bool();
    std::vector<std::string_view> parts{base::trim(typed)};
    if (many) {
        parts = split(typed);
    }
    json::array out;
    for (const std::string_view part : parts) {
        if (part.empty()) {
            return std::nullopt;
        }
        const auto known = option_value(options, part);
        if (!known && !question.at("allow_other").as_bool()) {
            return std::nullopt;
        }
        out.emplace_back(known ? *known : std::string(part));
    }
    if (out.empty()) {
        return std::nullopt;
    }
    return many ? json::value(std::move(out)) : json::value(out.front());
}

}  // namespace

void RunDialog::print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
}

base::Task<std::optional<std::string>> RunDialog::line() {
    auto read = [this] { return lines_.next(); };
    LineReader::Line next = co_await offload_.run(read);
    if (next.end) {
        co_return std::nullopt;
    }
    co_return base::to_utf8(base::trim(next.text)).text;
}

base::Task<std::optional<json::object>> RunDialog::ask(json::array interrupts) {
    json::object out;
    for (const json::value& item : interrupts) {
        const json::object& interrupt = item.as_object();
        std::optional<json::object> decided = interrupt.contains("questions")
                                                  ? co_await answers(interrupt)
                                                  : co_await approval(interrupt);
        if (!decided) {
            co_return std::nullopt;
        }
        out[interrupt.at("id").as_string()] = std::move(*decided);
    }
    co_return out;
}

base::Task<std::optional<json::object>> RunDialog::approval(json::object interrupt) {
    print(fmt::format(
        "\n? {} wants to run with\n  {}\n  y to approve, n to reject, or say why not: ",
        plain_at(interrupt, "tool_name"),
        json::serialize(interrupt.at("arguments"))
    ));
    const std::optional<std::string> said = co_await line();
    if (!said) {
        co_return std::nullopt;
    }
    if (*said == "y" || *said == "Y" || *said == "yes") {
        co_return json::object{{"decision", "approve"}};
    }
    json::object reject{{"decision", "reject"}};
    if (!said->empty() && *said != "n" && *said != "N" && *said != "no") {
        reject["reason"] = *said;
    }
    co_return reject;
}

base::Task<std::optional<json::object>> RunDialog::answers(json::object interrupt) {
    json::object out;
    for (const json::value& item : interrupt.at("questions").as_array()) {
        const json::object& question = item.as_object();
        std::optional<json::value> given = co_await answer(question);
        if (!given) {
            co_return std::nullopt;
        }
        out[question.at("question_id").as_string()] = std::move(*given);
    }
    co_return json::object{{"answers", std::move(out)}};
}

base::Task<std::optional<json::value>> RunDialog::answer(json::object question) {
    std::string text = fmt::format("\n? {}\n", plain_at(question, "question"));
    std::size_t number = 0;
    for (const json::value& option : question.at("options").as_array()) {
        const std::string more = plain_at(option.as_object(), "description");
        text += fmt::format(
            "  {}) {}{}{}\n",
            ++number,
            plain_at(option.as_object(), "label"),
            more.empty() ? "" : ": ",
            more
        );
    }
    const bool many = question.at("multi_select").as_bool();
    const bool free = question.at("allow_other").as_bool();
    text += number == 0 ? "  answer: "
                        : fmt::format(
                              "  {}{}: ",
                              many ? "numbers, with commas between" : "a number",
                              free ? ", or another answer" : ""
                          );
    for (;;) {
        print(text);
        const std::optional<std::string> typed = co_await line();
        if (!typed) {
            co_return std::nullopt;
        }
        if (std::optional<json::value> given = answer_of(question, *typed)) {
            co_return given;
        }
    }
}

}  // namespace ars::server
