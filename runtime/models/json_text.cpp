#include "runtime/models/json_text.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>

#include <charconv>

namespace ars::models {

namespace {

namespace json = boost::json;

json::parse_options parse_options() {
    json::parse_options options;
    options.max_depth = base::limits::kJsonDepth;
    return options;
}

// Keeps nothing but the kind of the outermost value.
struct ShapeHandler {
    static constexpr std::size_t max_object_size = SIZE_MAX;
    static constexpr std::size_t max_array_size = SIZE_MAX;
    static constexpr std::size_t max_key_size = SIZE_MAX;
    static constexpr std::size_t max_string_size = SIZE_MAX;
    using Code = json::error_code;

    JsonShape shape = JsonShape::invalid;

    bool seen(JsonShape kind) {
        if (shape == JsonShape::invalid) {
            shape = kind;
        }
        return true;
    }
    bool on_document_begin(Code&) { return true; }
    bool on_document_end(Code&) { return true; }
    bool on_object_begin(Code&) { return seen(JsonShape::object); }
    bool on_object_end(std::size_t, Code&) { return true; }
    bool on_array_begin(Code&) { return seen(JsonShape::other); }
    bool on_array_end(std::size_t, Code&) { return true; }
    bool on_key_part(json::string_view, std::size_t, Code&) { return true; }
    bool on_key(json::string_view, std::size_t, Code&) { return true; }
    bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
    bool on_string(json::string_view, std::size_t, Code&) { return seen(JsonShape::other); }
    bool on_number_part(json::string_view, Code&) { return true; }
    bool on_int64(std::int64_t, json::string_view, Code&) { return seen(JsonShape::other); }
    bool on_uint64(std::uint64_t, json::string_view, Code&) { return seen(JsonShape::other); }
    bool on_double(double, json::string_view, Code&) { return seen(JsonShape::other); }
    bool on_bool(bool, Code&) { return seen(JsonShape::other); }
    bool on_null(Code&) { return seen(JsonShape::other); }
    bool on_comment_part(json::string_view, Code&) { return true; }
    bool on_comment(json::string_view, Code&) { return true; }
};

// The code unit of the escape `\uXXXX` at `at`, -1 when there is none.
int escaped_unit(std::string_view text, std::size_t at) {
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') {
        return -1;
    }
    int unit = 0;
    const char* first = text.data() + at + 2;
    const auto [stop, error] = std::from_chars(first, first + 4, unit, 16);
    return error == std::errc{} && stop == first + 4 ? unit : -1;
}

bool is_high(int unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

JsonShape shape_of_json(std::string_view text) {
    json::basic_parser<ShapeHandler> parser(parse_options());
    json::error_code error;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
    if (error || used != text.size()) {
        return JsonShape::invalid;
    }
    return parser.handler().shape;
}

std::string mend_surrogates(std::string_view json) {
    std::string out;
    out.reserve(json.size());
    std::size_t at = 0;
    while (at < json.size()) {
        if (json[at] != '\\') {
            out += json[at++];
            continue;
        }
        const int unit = escaped_unit(json, at);
        if (is_high(unit) && is_low(escaped_unit(json, at + 6))) {
            out += json.substr(at, 12);
            at += 12;
        } else if (is_high(unit) || is_low(unit)) {
            out += "\\ufffd";
            at += 6;
        } else {
            out += json.substr(at, 2);
            at += 2;
        }
    }
    return out;
}

void append_json_string(std::string& out, std::string_view text) {
    if (!base::is_utf8(text)) {
        append_json_string(out, base::to_utf8(text).text);
        return;
    }
    constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    std::size_t plain = 0;  // what is not yet copied begins here
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        out += text.substr(plain, i - plain);
        plain = i + 1;
        out += '\\';
        switch (c) {
            case '"':
            case '\\':
                out += static_cast<char>(c);
                break;
            case '\n':
                out += 'n';
                break;
            case '\r':
                out += 'r';
                break;
            case '\t':
                out += 't';
                break;
            default:
                out += "u00";
                out += kHex[c >> 4];
                out += kHex[c & 15];
        }
    }
    out += text.substr(plain);
    out += '"';
}

std::optional<json::value> parse_json_leniently(std::string_view text, json::storage_ptr storage) {
    json::error_code error;
    json::value value = json::parse(text, error, storage, parse_options());
    if (!error) {
        return value;
    }
    const std::string mended = mend_surrogates(base::to_utf8(text).text);
    value = json::parse(mended, error, storage, parse_options());
    if (error) {
        return std::nullopt;
    }
    return value;
}

}  // namespace ars::models
