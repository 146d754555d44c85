#include "tests/support/model_script.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <stdexcept>

namespace ars::tests {

namespace {

namespace json = boost::json;

// Assistant messages behind the last user message, and one.
std::int64_t turn_of(const RecordedRequest& request) {
    std::int64_t turn = 1;
    for (const json::value& message : request.json.at("messages").as_array()) {
        const json::string& role = message.at("role").as_string();
        if (role == "user") {
            turn = 1;
        } else if (role == "assistant") {
            ++turn;
        }
    }
    return turn;
}

bool contains(const json::object& match, std::string_view key, const std::string& text) {
    const json::value* wanted = match.if_contains(key);
    return wanted == nullptr ||
           text.find(std::string_view(wanted->as_string())) != std::string::npos;
}

bool matches(const json::object& rule, const RecordedRequest& request) {
    const json::value* value = rule.if_contains("match");
    if (value == nullptr) {
        return true;
    }
    const json::object& match = value->as_object();
    const json::value* turn = match.if_contains("turn");
    return contains(match, "last_user_contains", request.last("user")) &&
           contains(match, "last_tool_contains", request.last("tool")) &&
           contains(match, "system_contains", request.last("system")) &&
           (turn == nullptr || turn->to_number<std::int64_t>() == turn_of(request));
}

}  // namespace

ModelServer::Handler handler_of_script(const std::string& json_text) {
    json::error_code error;
    json::value parsed = json::parse(json_text, error);
    if (error || !parsed.is_array()) {
        throw std::runtime_error("the script is not a JSON list of rules");
    }
    for (const json::value& rule : parsed.get_array()) {
        if (!rule.is_object() || !rule.get_object().contains("reply") ||
            !rule.at("reply").is_object()) {
            throw std::runtime_error("a rule of the script has no reply");
        }
        [[maybe_unused]] const ScriptedReply checked =
            reply_from_json(rule.at("reply").get_object(), {});
    }
    return [rules = std::move(parsed.get_array()
            )](const RecordedRequest& request, std::size_t) mutable {
        for (json::value& value : rules) {
            json::object& rule = value.get_object();
            json::value* times = rule.if_contains("times");
            if (!matches(rule, request) ||
                (times != nullptr && times->to_number<std::int64_t>() <= 0)) {
                continue;
            }
            if (times != nullptr) {
                *times = times->to_number<std::int64_t>() - 1;
            }
            return reply_from_json(
                rule.at("reply").get_object(),
                {{"last_user", request.last("user")}, {"last_tool", request.last("tool")}}
            );
        }
        return error_reply(
            400,
            R"({"error":{"message":"no rule of the script matches","type":"invalid_request_error"}})"
        );
    };
}

}  // namespace ars::tests
