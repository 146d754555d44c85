#include "runtime/models/scripted_template.hpp"

#include "base/text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ars::models {

namespace {

namespace json = boost::json;
constexpr std::size_t kShownBytes = 120;

std::unexpected<base::Error> bad(std::string_view placeholder, std::string_view why) {
    return base::fail(
        base::ErrorKind::invalid,
        "bad_placeholder",
        fmt::format("the placeholder {{{{{}}}}} {}", placeholder, why)
    );
}

bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    });
}

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> out;
    for (;;) {
        const std::size_t end = text.find(at);
        out.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return out;
        }
        text.remove_prefix(end + 1);
    }
}

// The parts between bars; a bar inside quotes is text.
std::vector<std::string_view> split_bars(std::string_view text) {
    std::vector<std::string_view> out;
    std::size_t start = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') {
            quoted = !quoted;
        } else if (text[i] == '|' && !quoted) {
            out.push_back(base::trim(text.substr(start, i - start)));
            start = i + 1;
        }
    }
    out.push_back(base::trim(text.substr(start)));
    return out;
}

std::optional<Filter> parse_filter(std::string_view text) {
    const std::size_t space = text.find(' ');
    const std::string_view name = text.substr(0, space);
    const std::string_view argument =
        space == std::string_view::npos ? std::string_view() : base::trim(text.substr(space));
    if (name == "line" && argument.size() >= 3 && argument.front() == '"' &&
        argument.back() == '"') {
        return Filter{Filter::Kind::line, std::string(argument.substr(1, argument.size() - 2)), 0};
    }
    if (name == "word") {
        std::size_t number = 0;
        const char* end = argument.data() + argument.size();
        const auto parsed = std::from_chars(argument.data(), end, number);
        if (parsed.ec == std::errc{} && parsed.ptr == end && number >= 1) {
            return Filter{Filter::Kind::word, {}, number};
        }
        return std::nullopt;
    }
    if (argument.empty() && (name == "trim" || name == "sh")) {
        return Filter{name == "sh" ? Filter::Kind::sh : Filter::Kind::trim, {}, 0};
    }
    return std::nullopt;
}

base::Result<Placeholder> parse_placeholder(std::string_view written) {
    Placeholder out;
    out.written = written;
    const std::vector<std::string_view> parts = split_bars(written);
    std::vector<std::string> source = split(parts.front(), '.');
    if (!is_name(source.front())) {
        return bad(written, "does not start with `user` or the id of a call");
    }
    out.source = source.front();
    if (source.size() > 1) {
        if (source[1] != "json" || out.source == "user") {
            return bad(written, "may only go on with `.json.<field>`");
        }
        out.json = true;
        out.path.assign(source.begin() + 2, source.end());
        if (std::find(out.path.begin(), out.path.end(), "") != out.path.end()) {
            return bad(written, "has an empty field name");
        }
    }
    for (std::size_t i = 1; i < parts.size(); ++i) {
        auto filter = parse_filter(parts[i]);
        if (!filter) {
            return bad(
                written,
                fmt::format(
                    "has the unknown filter `{}`; known: line \"PREFIX\", word N, trim, sh",
                    parts[i]
                )
            );
        }
        out.filters.push_back(std::move(*filter));
    }
    return out;
}

std::unexpected<base::Error> unresolved(const Placeholder& placeholder, std::string_view why) {
    return base::fail(
        base::ErrorKind::invalid,
        "unresolved_placeholder",
        fmt::format("the placeholder {{{{{}}}}} can't be filled: {}", placeholder.written, why)
    );
}

std::string shown(std::string_view text) {
    const std::string_view head = base::utf8_head(text, kShownBytes);
    return fmt::format("\"{}{}\"", head, head.size() < text.size() ? "..." : "");
}

const json::value* step_into(const json::value& value, const std::string& step) {
    if (const auto* object = value.if_object()) {
        return object->if_contains(step);
    }
    if (const auto* array = value.if_array()) {
        std::size_t index = 0;
        const auto parsed = std::from_chars(step.data(), step.data() + step.size(), index);
        const bool number = parsed.ec == std::errc{} && parsed.ptr == step.data() + step.size();
        return number && index < array->size() ? &(*array)[index] : nullptr;
    }
    return nullptr;
}

base::Result<std::string> take_json(const Placeholder& placeholder, const std::string& text) {
    boost::system::error_code error;
    const json::value root = json::parse(text, error);
    if (error) {
        return unresolved(placeholder, "the result is not JSON: " + shown(text));
    }
    const json::value* value = &root;
    for (const std::string& step : placeholder.path) {
        value = step_into(*value, step);
        if (value == nullptr) {
            return unresolved(placeholder, "the result has no \"" + step + "\": " + shown(text));
        }
    }
    return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

std::string shell_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + "'";
}

std::optional<std::string> run_filter(const Filter& filter, const std::string& text) {
    switch (filter.kind) {
        case Filter::Kind::line:
            for (const std::string& line : split(text, '\n')) {
                if (line.starts_with(filter.text)) {
                    return std::string(base::trim(std::string_view(line).substr(filter.text.size()))
                    );
                }
            }
            return std::nullopt;
        case Filter::Kind::word: {
            std::string_view rest = base::trim(text);
            for (std::size_t n = 1; !rest.empty(); ++n) {
                const std::size_t end = rest.find_first_of(" \t\r\n");
                if (n == filter.number) {
                    return std::string(rest.substr(0, end));
                }
                rest = end == std::string_view::npos ? std::string_view()
                                                     : base::trim(rest.substr(end));
            }
            return std::nullopt;
        }
        case Filter::Kind::trim:
            return std::string(base::trim(text));
        case Filter::Kind::sh:
            return shell_quoted(text);
    }
    return std::nullopt;
}

}  // namespace

base::Result<std::vector<TemplatePart>> parse_template(std::string_view text) {
    std::vector<TemplatePart> out;
    while (!text.empty()) {
        const std::size_t open = text.find("{{");
        if (open > 0) {
            out.push_back({std::string(text.substr(0, open)), {}});
        }
        if (open == std::string_view::npos) {
            break;
        }
        text.remove_prefix(open + 2);
        const std::size_t close = text.find("}}");
        if (close == std::string_view::npos) {
            return bad(base::utf8_head(text, 40), "is not closed");
        }
        auto placeholder = parse_placeholder(base::trim(text.substr(0, close)));
        if (!placeholder) {
            return std::unexpected(placeholder.error());
        }
        out.push_back({{}, std::move(*placeholder)});
        text.remove_prefix(close + 2);
    }
    return out;
}

base::Result<std::string> render_template(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string& source)>& lookup
) {
    auto parts = parse_template(text);
    if (!parts) {
        return std::unexpected(parts.error());
    }
    std::string out;
    for (const TemplatePart& part : *parts) {
        if (!part.placeholder) {
            out += part.text;
            continue;
        }
        const Placeholder& placeholder = *part.placeholder;
        std::optional<std::string> value = lookup(placeholder.source);
        if (!value) {
            return unresolved(
                placeholder, "no call with this id has a result after the last user message"
            );
        }
        if (placeholder.json) {
            auto taken = take_json(placeholder, *value);
            if (!taken) {
                return taken;
            }
            value = std::move(*taken);
        }
        for (const Filter& filter : placeholder.filters) {
            auto filtered = run_filter(filter, *value);
            if (!filtered) {
                return unresolved(placeholder, "nothing in the result fits: " + shown(*value));
            }
            value = std::move(*filtered);
        }
        out += *value;
    }
    return out;
}

}  // namespace ars::models
