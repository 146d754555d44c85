#include "tests/support/strict_request.hpp"

#include "base/text.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

namespace ars::tests {

namespace {

namespace json = boost::json;

struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const std::string& what) { throw Refused(what); }

std::string text_of(const json::object& object, std::string_view key, const std::string& where) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_string() || value->get_string().empty()) {
        refuse(where + "." + std::string(key) + " is not a non-empty string");
    }
    return std::string(value->get_string());
}

bool is_name(std::string_view text, std::size_t longest) {
    return !text.empty() && text.size() <= longest &&
           std::ranges::all_of(text, [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '_' || c == '-';
           });
}

const json::object& object_at(const json::value& value, const std::string& where) {
    if (!value.is_object()) {
        refuse(where + " is not an object");
    }
    return value.get_object();
}

class HistoryCheck {
  public:
    void take(const json::value& value, std::size_t index) {
        where_ = "messages[" + std::to_string(index) + "]";
        const json::object& message = object_at(value, where_);
        const std::string role = text_of(message, "role", where_);
        if (role == "tool") {
            take_result(message);
        } else {
            if (!open_.empty()) {
                refuse(
                    where_ + ": the tool call " + *open_.begin() + " has no result right behind it"
                );
            }
            answerable_ = false;
            if (role == "assistant") {
                take_assistant(message);
            } else if (role == "user" || (role == "system" && index == 0)) {
                text_of(message, "content", where_);
            } else if (role == "system") {
                refuse(where_ + ": a system message stands only at the start");
            } else {
                refuse(where_ + ": unknown role " + role);
            }
        }
        last_role_ = role;
    }

    void end() {
        if (!open_.empty()) {
            refuse("the tool call " + *open_.begin() + " has no result at the end of the messages");
        }
        if (last_role_ != "user" && last_role_ != "tool") {
            refuse("the last message is of role " + last_role_);
        }
    }

  private:
    void take_result(const json::object& message) {
        const std::string id = text_of(message, "tool_call_id", where_);
        text_of(message, "content", where_);
        if (!answerable_ || open_.erase(id) == 0) {
            refuse(
                where_ + ": tool_call_id " + id +
                " names no open call of the assistant message before it"
            );
        }
    }

    void take_assistant(const json::object& message) {
        const json::value* content = message.if_contains("content");
        const json::value* calls = message.if_contains("tool_calls");
        const bool says =
            content != nullptr && content->is_string() && !content->get_string().empty();
        if (content != nullptr && !content->is_string() && !content->is_null()) {
            refuse(where_ + ".content is neither a string nor null");
        }
        if (calls == nullptr) {
            if (!says) {
                refuse(where_ + " is empty: it has neither content nor tool_calls");
            }
            return;
        }
        if (!calls->is_array() || calls->get_array().empty()) {
            refuse(where_ + ".tool_calls is not a non-empty array");
        }
        for (const json::value& value : calls->get_array()) {
            take_call(object_at(value, where_ + ".tool_calls[]"));
        }
        answerable_ = true;
    }

    void take_call(const json::object& call) {
        const std::string where = where_ + ".tool_calls[]";
        const std::string id = text_of(call, "id", where);
        if (!is_name(id, 40)) {
            refuse(where + ".id \"" + id + "\" is not 1 to 40 of [A-Za-z0-9_-]");
        }
        if (!seen_.insert(id).second) {
            refuse(where + ".id \"" + id + "\" was used before");
        }
        open_.insert(id);
        if (text_of(call, "type", where) != "function" || call.if_contains("function") == nullptr) {
            refuse(where + " is not a function call");
        }
        const json::object& function = object_at(call.at("function"), where + ".function");
        if (!is_name(text_of(function, "name", where), 64)) {
            refuse(where + ".function.name is not 1 to 64 of [A-Za-z0-9_-]");
        }
        json::error_code error;
        const json::value arguments = json::parse(text_of(function, "arguments", where), error);
        if (error || !arguments.is_object()) {
            refuse(where + ".function.arguments is not the text of a JSON object");
        }
    }

    std::string where_;
    std::string last_role_;
    std::set<std::string> open_;
    std::set<std::string> seen_;
    bool answerable_ = false;  // the last message that was not a result had calls
};

// `is_map`: the keys are names of properties, not keywords.
void check_schema(const json::value& value, const std::string& where, bool is_map) {
    if (const json::array* list = value.if_array()) {
        for (const json::value& one : *list) {
            check_schema(one, where, false);
        }
    }
    const json::object* object = value.if_object();
    if (object == nullptr) {
        return;
    }
    if (!is_map) {
        for (const std::string_view keyword : {"$schema", "uniqueItems"}) {
            if (object->contains(keyword)) {
                refuse(where + ": the keyword " + std::string(keyword) + " is not supported");
            }
        }
        const json::value* type = object->if_contains("type");
        if (type != nullptr && *type == "object" && !object->contains("properties")) {
            refuse(where + ": object schema missing properties");
        }
        if (type != nullptr && *type == "array" && !object->contains("items")) {
            refuse(where + ": array schema missing items");
        }
    }
    for (const auto& [key, inner] : *object) {
        const bool data =
            !is_map && (key == "enum" || key == "default" || key == "examples" || key == "const");
        if (!data) {
            check_schema(inner, where, !is_map && (key == "properties" || key == "$defs"));
        }
    }
}

void check_tools(const json::value& tools) {
    if (!tools.is_array() || tools.get_array().empty()) {
        refuse("tools is not a non-empty array");
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < tools.get_array().size(); ++i) {
        const std::string where = "tools[" + std::to_string(i) + "].function";
        const json::object& tool = object_at(tools.get_array()[i], where);
        if (!tool.contains("function") || text_of(tool, "type", where) != "function") {
            refuse(where + " is missing");
        }
        const json::object& function = object_at(tool.at("function"), where);
        const std::string name = text_of(function, "name", where);
        if (!is_name(name, 64) || !names.insert(name).second) {
            refuse(where + ".name \"" + name + "\" is malformed or not unique");
        }
        const json::value* parameters = function.if_contains("parameters");
        if (parameters == nullptr || !parameters->is_object() ||
            text_of(parameters->get_object(), "type", where + ".parameters") != "object") {
            refuse(where + ".parameters is not a schema of type object");
        }
        check_schema(*parameters, where + ".parameters", false);
    }
}

void check(std::string_view body) {
    if (!base::is_utf8(body)) {
        refuse("the body is not valid UTF-8");
    }
    json::error_code error;
    const json::value value = json::parse(body, error);
    if (error) {
        refuse("the body is not valid JSON: " + error.message());
    }
    const json::object& request = object_at(value, "the body");
    text_of(request, "model", "the body");
    const json::value* stream = request.if_contains("stream");
    if (stream == nullptr || *stream != true) {
        refuse("stream is not true");
    }
    const json::value* messages = request.if_contains("messages");
    if (messages == nullptr || !messages->is_array() || messages->get_array().empty()) {
        refuse("messages is not a non-empty array");
    }
    HistoryCheck history;
    for (std::size_t i = 0; i < messages->get_array().size(); ++i) {
        history.take(messages->get_array()[i], i);
    }
    history.end();
    if (const json::value* tools = request.if_contains("tools")) {
        check_tools(*tools);
    }
}

}  // namespace

std::optional<std::string> find_request_fault(std::string_view body) {
    try {
        check(body);
    } catch (const Refused& refused) {
        return refused.what();
    }
    return std::nullopt;
}

}  // namespace ars::tests
