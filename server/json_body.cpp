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

// Builds the value, as Boost.JSON's own parser does, and finds a key that stands twice: that one
// lets the last win, and whoever checked the body before us may have read the first.
struct Builder {
    static constexpr std::size_t max_object_size = json::object::max_size();
    static constexpr std::size_t max_array_size = json::array::max_size();
    static constexpr std::size_t max_key_size = json::string::max_size();
    static constexpr std::size_t max_string_size = json::string::max_size();
    using Code = json::error_code;

    json::value_stack values;
    std::size_t members = 0;  // as written; of a key that stands twice the value has one
    // Only to say which one it is: it costs more than all the rest.
    bool compares_keys = false;
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
        members += size;
        values.push_object(size);
        return true;
    }
    bool on_array_begin(Code&) { return true; }
    bool on_array_end(std::size_t size, Code&) {
        values.push_array(size);
        return true;
    }
    bool on_key_part(json::string_view part, std::size_t, Code&) {
        if (compares_keys) {
            key += std::string_view(part);
        }
        values.push_chars(part);
        return true;
    }
    bool on_key(json::string_view part, std::size_t, Code& code) {
        values.push_key(part);
        if (!compares_keys) {
            return true;
        }
        key += std::string_view(part);
        key_stands_twice = !keys.back().insert(key).second;
        if (key_stands_twice) {
            code = json::error::syntax;
            return false;
        }
        key.clear();
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

std::size_t members_of(const json::value& value) {
    std::size_t out = 0;
    if (const json::array* list = value.if_array()) {
        for (const json::value& item : *list) {
            out += members_of(item);
        }
    } else if (const json::object* object = value.if_object()) {
        out = object->size();
        for (const auto& entry : *object) {
            out += members_of(entry.value());
        }
    }
    return out;
}

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

std::expected<json::value, JsonFault> parse(std::string_view text, bool compares_keys) {
    constexpr std::size_t kShownBytes = 60;
    json::parse_options options;
    options.max_depth = static_cast<std::size_t>(base::limits::kJsonDepth);
    json::basic_parser<Builder> parser(options);
    Builder& builder = parser.handler();
    builder.compares_keys = compares_keys;
    builder.values.reset();
    json::error_code ec;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
    if (!ec && used < text.size()) {
        ec = json::error::extra_data;
    }
    if (!ec) {
        json::value value = builder.values.release();
        return members_of(value) == builder.members ? std::move(value) : parse(text, true);
    }
    JsonFault fault = fault_at(text, used, ec);
    if (builder.key_stands_twice) {
        fault.reason = fmt::format(
            "the key \"{}\" stands twice in one object", base::utf8_head(builder.key, kShownBytes)
        );
    }
    return std::unexpected(std::move(fault));
}

}  // namespace

std::expected<boost::json::value, JsonFault> parse_json(std::string_view text) {
    return parse(text, false);
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
