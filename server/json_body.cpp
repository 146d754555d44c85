#include "server/json_body.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace ars::server {

namespace {

namespace json = boost::json;

// Builds the value, as Boost.JSON's own parser does, but takes no key twice: that one lets the last
// win, and whoever checked the body before us may have read the first.
struct Builder {
    static constexpr std::size_t max_object_size = json::object::max_size();
    static constexpr std::size_t max_array_size = json::array::max_size();
    static constexpr std::size_t max_key_size = json::string::max_size();
    static constexpr std::size_t max_string_size = json::string::max_size();
    using Code = json::error_code;

    json::value_stack values;
    std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
    std::string key;
    bool key_stands_twice = false;

    bool on_document_begin(Code&) { return true; }
    bool on_document_end(Code&) { return true; }
    bool on_object_begin(Code&) {
        keys.emplace_back();
        return true;
    }
    bool on_object_end(std::size_t size, Code&) {
        keys.pop_back();
        values.push_object(size);
        return true;
    }
    bool on_array_begin(Code&) { return true; }
    bool on_array_end(std::size_t size, Code&) {
        values.push_array(size);
        return true;
    }
    bool on_key_part(json::string_view part, std::size_t, Code&) {
        key += std::string_view(part);
        values.push_chars(part);
        return true;
    }
    bool on_key(json::string_view part, std::size_t, Code& code) {
        key += std::string_view(part);
        key_stands_twice = !keys.back().insert(key).second;
        if (key_stands_twice) {
            code = json::error::syntax;
            return false;
        }
        key.clear();
        values.push_key(part);
        return true;
    }
    bool on_string_part(json::string_view part, std::size_t, Code&) {
        values.push_chars(part);
        return true;
    }
    bool on_string(json::string_view part, std::size_t, Code&) {
        values.push_string(part);
        return true;
    }
    bool on_number_part(json::string_view, Code&) { return true; }
    bool on_int64(std::int64_t number, json::string_view, Code&) {
        values.push_int64(number);
        return true;
    }
    bool on_uint64(std::uint64_t number, json::string_view, Code&) {
        values.push_uint64(number);
        return true;
    }
    bool on_double(double number, json::string_view, Code&) {
        values.push_double(number);
        return true;
    }
    bool on_bool(bool is, Code&) {
        values.push_bool(is);
        return true;
    }
    bool on_null(Code&) {
        values.push_null();
        return true;
    }
    bool on_comment_part(json::string_view, Code&) { return true; }
    bool on_comment(json::string_view, Code&) { return true; }
};

JsonFault fault_at(std::string_view text, std::size_t offset, const json::error_code& ec) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    JsonFault fault;
    fault.line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t line_start = before.rfind('\n');
    fault.column =
        line_start == std::string_view::npos ? before.size() + 1 : before.size() - line_start;
    fault.reason = ec.message();
    return fault;
}

}  // namespace

std::expected<boost::json::value, JsonFault> parse_json(std::string_view text) {
    constexpr std::size_t kShownBytes = 60;
    json::parse_options options;
    options.max_depth = static_cast<std::size_t>(base::limits::kJsonDepth);
    json::basic_parser<Builder> parser(options);
    Builder& builder = parser.handler();
    builder.values.reset();
    json::error_code ec;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
    if (!ec && used < text.size()) {
        ec = json::error::extra_data;
    }
    if (!ec) {
        return builder.values.release();
    }
    JsonFault fault = fault_at(text, used, ec);
    if (builder.key_stands_twice) {
        fault.reason = fmt::format(
            "the key \"{}\" stands twice in one object", base::utf8_head(builder.key, kShownBytes)
        );
    }
    return std::unexpected(std::move(fault));
}

std::expected<boost::json::value, HttpResponse> read_json(const HttpRequest& request) {
    auto parsed = parse_json(request.body);
    if (parsed) {
        return std::move(*parsed);
    }
    const JsonFault& fault = parsed.error();
    boost::json::object more;
    more["line"] = fault.line;
    more["column"] = fault.column;
    return std::unexpected(error_response(
        400,
        "invalid_json",
        request.body.empty() ? std::string("the body is empty; send a JSON object")
                             : fmt::format(
                                   "the body is not JSON: line {}, column {}: {}",
                                   fault.line,
                                   fault.column,
                                   fault.reason
                               ),
        std::move(more)
    ));
}

}  // namespace ars::server
