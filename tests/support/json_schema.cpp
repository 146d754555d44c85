#include "tests/support/json_schema.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

#include <regex.h>

namespace ars::tests {

namespace json = boost::json;

namespace {

using Faults = std::vector<std::string>;

const std::set<std::string, std::less<>> kKeywords{
    "$ref",       "additionalProperties",
    "anyOf",      "const",
    "default",    "description",
    "enum",       "format",
    "items",      "maxItems",
    "maxLength",  "maximum",
    "minItems",   "minLength",
    "minimum",    "pattern",
    "properties", "required",
    "type",
};

bool matches(const std::string& pattern, const std::string& text) {
    regex_t compiled;
    if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
        throw std::runtime_error("not a pattern: " + pattern);
    }
    const bool found = ::regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    ::regfree(&compiled);
    return found;
}

bool has_type(const json::value& value, std::string_view type) {
    switch (value.kind()) {
        case json::kind::null:
            return type == "null";
        case json::kind::bool_:
            return type == "boolean";
        case json::kind::int64:
        case json::kind::uint64:
            return type == "integer" || type == "number";
        case json::kind::double_:
            return type == "number";
        case json::kind::string:
            return type == "string";
        case json::kind::array:
            return type == "array";
        case json::kind::object:
            return type == "object";
    }
    return false;
}

std::string shown(const json::value& value) { return json::serialize(value).substr(0, 300); }

class Validator {
  public:
    explicit Validator(const json::value& root) : root_(root) {}

    Faults check(const json::value& schema, const json::value& value, const std::string& at) const {
        Faults out;
        const auto fault = [&](const std::string& what) {
            out.push_back((at.empty() ? "/" : at) + ": " + what + ": " + shown(value));
        };
        const auto add = [&out](Faults more) { out.insert(out.end(), more.begin(), more.end()); };
        if (schema.is_bool()) {
            if (!schema.get_bool()) {
                fault("nothing may be here");
            }
            return out;
        }
        const json::object& rules = schema.as_object();
        for (const auto& entry : rules) {
            if (!kKeywords.contains(entry.key())) {
                fault("the schema has the unknown keyword " + std::string(entry.key()));
            }
        }
        if (const auto* ref = rules.if_contains("$ref")) {
            const json::value* target = resolve(root_, std::string(ref->as_string()));
            if (target == nullptr) {
                fault("nothing at " + shown(*ref));
            } else {
                add(check(*target, value, at));
            }
        }
        if (const auto* choices = rules.if_contains("anyOf")) {
            add(check_any(choices->as_array(), value, at));
        }
        if (const auto* wanted = rules.if_contains("const"); wanted && *wanted != value) {
            fault("is not " + shown(*wanted));
        }
        if (const auto* values = rules.if_contains("enum")) {
            if (std::ranges::find(values->as_array(), value) == values->as_array().end()) {
                fault("is none of " + shown(*values));
            }
        }
        if (const auto* type = rules.if_contains("type"); type && !is_of(*type, value)) {
            fault("is not of type " + shown(*type));
        }
        if (value.is_object()) {
            add(check_object(rules, value.get_object(), at));
        } else if (value.is_array()) {
            add(check_array(rules, value.get_array(), at));
        } else if (value.is_string()) {
            check_text(rules, std::string(value.get_string()), fault);
        } else if (value.is_number()) {
            const auto number = value.to_number<double>();
            if (const auto* least = rules.if_contains("minimum");
                least && number < least->to_number<double>()) {
                fault("is too small");
            }
            if (const auto* most = rules.if_contains("maximum");
                most && number > most->to_number<double>()) {
                fault("is too large");
            }
        }
        return out;
    }

  private:
    static bool is_of(const json::value& type, const json::value& value) {
        if (type.is_string()) {
            return has_type(value, type.get_string());
        }
        return std::ranges::any_of(type.as_array(), [&](const json::value& one) {
            return has_type(value, one.as_string());
        });
    }

    // The faults of the choice that fits best.
    Faults check_any(const json::array& choices, const json::value& value, const std::string& at)
        const {
        Faults best;
        bool first = true;
        for (const json::value& choice : choices) {
            Faults faults = check(choice, value, at);
            if (faults.empty()) {
                return {};
            }
            if (first || faults.size() < best.size()) {
                best = std::move(faults);
                first = false;
            }
        }
        best.insert(best.begin(), at + ": fits none of anyOf; the nearest:");
        return best;
    }

    Faults check_object(const json::object& rules, const json::object& value, const std::string& at)
        const {
        Faults out;
        const auto add = [&out](Faults more) { out.insert(out.end(), more.begin(), more.end()); };
        if (const auto* required = rules.if_contains("required")) {
            for (const json::value& name : required->as_array()) {
                if (!value.contains(name.as_string())) {
                    out.push_back(at + "/" + std::string(name.as_string()) + ": is missing");
                }
            }
        }
        const auto* properties = rules.if_contains("properties");
        const auto* others = rules.if_contains("additionalProperties");
        for (const auto& member : value) {
            const std::string place = at + "/" + std::string(member.key());
            const json::value* schema =
                properties ? properties->as_object().if_contains(member.key()) : nullptr;
            if (schema != nullptr) {
                add(check(*schema, member.value(), place));
            } else if (others != nullptr) {
                add(check(*others, member.value(), place));
            }
        }
        return out;
    }

    Faults check_array(const json::object& rules, const json::array& value, const std::string& at)
        const {
        Faults out;
        if (const auto* least = rules.if_contains("minItems");
            least && value.size() < least->to_number<std::size_t>()) {
            out.push_back(at + ": has too few items");
        }
        if (const auto* most = rules.if_contains("maxItems");
            most && value.size() > most->to_number<std::size_t>()) {
            out.push_back(at + ": has too many items");
        }
        if (const auto* items = rules.if_contains("items")) {
            for (std::size_t i = 0; i < value.size(); ++i) {
                Faults more = check(*items, value[i], at + "/" + std::to_string(i));
                out.insert(out.end(), more.begin(), more.end());
            }
        }
        return out;
    }

    template <class Fault>
    static void check_text(const json::object& rules, const std::string& value, Fault fault) {
        const auto length = static_cast<std::size_t>(std::ranges::count_if(value, [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
        }));
        if (const auto* least = rules.if_contains("minLength");
            least && length < least->to_number<std::size_t>()) {
            fault("is too short");
        }
        if (const auto* most = rules.if_contains("maxLength");
            most && length > most->to_number<std::size_t>()) {
            fault("is too long");
        }
        if (const auto* pattern = rules.if_contains("pattern");
            pattern && !matches(std::string(pattern->as_string()), value)) {
            fault("does not match " + shown(*pattern));
        }
        if (const auto* format = rules.if_contains("format")) {
            static const std::string kTime =
                "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$";
            if (*format != "date-time") {
                fault("has the unknown format " + shown(*format));
            } else if (!matches(kTime, value)) {
                fault("is not a date-time");
            }
        }
    }

    const json::value& root_;
};

void walk_schema(
    const json::value& root, const json::value& schema, const std::string& at, Faults& out
) {
    if (schema.is_bool()) {
        return;
    }
    if (!schema.is_object()) {
        out.push_back(at + ": is no schema");
        return;
    }
    const json::object& rules = schema.get_object();
    for (const auto& entry : rules) {
        const std::string key(entry.key());
        const std::string place = at + "/" + key;
        const json::value& rule = entry.value();
        if (!kKeywords.contains(key)) {
            out.push_back(place + ": unknown keyword");
        } else if (key == "$ref") {
            if (resolve(root, std::string(rule.as_string())) == nullptr) {
                out.push_back(place + ": nothing at " + shown(rule));
            }
        } else if (key == "items" || key == "additionalProperties") {
            walk_schema(root, rule, place, out);
        } else if (key == "anyOf") {
            for (const json::value& choice : rule.as_array()) {
                walk_schema(root, choice, place, out);
            }
        } else if (key == "properties") {
            for (const auto& property : rule.as_object()) {
                walk_schema(root, property.value(), place + "/" + std::string(property.key()), out);
            }
        } else if (key == "required") {
            for (const json::value& name : rule.as_array()) {
                const json::value* properties = rules.if_contains("properties");
                if (properties == nullptr || !properties->as_object().contains(name.as_string())) {
                    out.push_back(place + ": no property " + shown(name));
                }
            }
        } else if (key == "pattern") {
            static_cast<void>(matches(std::string(rule.as_string()), ""));
        }
    }
}

}  // namespace

const json::value* resolve(const json::value& root, const std::string& ref) {
    boost::system::error_code error;
    return ref.starts_with("#/") ? root.find_pointer(ref.substr(1), error) : nullptr;
}

std::vector<std::string> schema_faults(
    const json::value& root, const json::value& schema, const json::value& value
) {
    return Validator(root).check(schema, value, "");
}

std::vector<std::string> faults_of_schema(const json::value& root, const json::value& schema) {
    Faults out;
    walk_schema(root, schema, "", out);
    return out;
}

}  // namespace ars::tests
