// The parts of the field tables that do not depend on a type: reading single values, saying what is
// wrong with them, and guessing what was meant.
#include "base/fields.hpp"

#include "base/text.hpp"
#include "base/units.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <cmath>

namespace ars::base {

namespace {

constexpr auto kNoMin = std::numeric_limits<std::int64_t>::min();
constexpr auto kNoMax = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kShownBytes = 60;
// Of one input: a few MiB can hold a million wrong keys, and nobody reads past the first hundred.
constexpr std::size_t kFaults = 100;

bool has_enough(const FieldPlace& place) { return place.faults.size() > kFaults; }

// "the number 5", "the text \"abc\"": what stood there instead.
std::string found(const json::value& value) {
    switch (value.kind()) {
        case json::kind::null:
            return "nothing (null)";
        case json::kind::bool_:
            return value.get_bool() ? "true" : "false";
        case json::kind::string: {
            const std::string_view text = value.get_string();
            const std::string_view head = utf8_head(text, kShownBytes);
            return fmt::format("the text \"{}{}\"", head, head.size() < text.size() ? "..." : "");
        }
        case json::kind::array:
            return "a list";
        case json::kind::object:
            return "an object";
        case json::kind::double_:
            return fmt::format("the number {}", value.get_double());
        default:
            return "the number " + json::serialize(value);
    }
}

void expected(std::string_view what, const json::value& value, const FieldPlace& place) {
    place.fault(fmt::format("must be {}, found {}", what, found(value)));
}

// Any number kind that holds a whole number of 64 bits: what json::value(std::uint32_t) makes is
// uint64.
std::optional<std::int64_t> whole(const json::value& in) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: up to here a double is one integer
    if (in.is_int64()) {
        return in.get_int64();
    }
    if (in.is_uint64() && in.get_uint64() <= static_cast<std::uint64_t>(kNoMax)) {
        return static_cast<std::int64_t>(in.get_uint64());
    }
    if (in.is_double() && std::trunc(in.get_double()) == in.get_double() &&
        std::abs(in.get_double()) <= kExact) {
        return static_cast<std::int64_t>(in.get_double());
    }
    return std::nullopt;
}

// Says which bound `value` breaks; `unit` as in " bytes". True when it breaks none.
bool within(std::int64_t value, const Rule& rule, std::string_view unit, const FieldPlace& place) {
    if (value >= rule.min && value <= rule.max) {
        return true;
    }
    if (rule.min != kNoMin && rule.max != kNoMax) {
        place.fault(
            fmt::format("must be between {} and {}{}, found {}", rule.min, rule.max, unit, value)
        );
    } else if (value < rule.min) {
        place.fault(fmt::format("must be at least {}{}, found {}", rule.min, unit, value));
    } else {
        place.fault(fmt::format("must be at most {}{}, found {}", rule.max, unit, value));
    }
    return false;
}

bool has_fitting_size(std::size_t items, const Rule& rule, const FieldPlace& place) {
    if (items == 0 && rule.min >= 1) {
        place.fault("must not be empty");
        return false;
    }
    return within(static_cast<std::int64_t>(items), rule, " entries", place);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

// A pointer for people: "/api_keys/0/uid" -> "api_keys[0].uid".
std::string dotted(std::string_view pointer) {
    std::string out;
    while (!pointer.empty()) {
        pointer.remove_prefix(1);
        std::string_view step = pointer.substr(0, pointer.find('/'));
        pointer.remove_prefix(step.size());
        if (!step.empty() && step.find_first_not_of("0123456789") == std::string_view::npos) {
            out += fmt::format("[{}]", step);
            continue;
        }
        out += out.empty() ? "" : ".";
        for (std::size_t i = 0; i < step.size(); ++i) {
            const bool escaped = step[i] == '~' && i + 1 < step.size();
            out += !escaped ? step[i] : step[++i] == '1' ? '/' : '~';
        }
    }
    return out;
}

}  // namespace

void FieldPlace::fault(std::string message, std::string remedy_text) const {
    if (has_enough(*this)) {
        return;
    }
    if (faults.size() == kFaults) {
        faults.push_back(Fault{{}, "there are more faults; these are the first", {}});
        return;
    }
    if (remedy_text.empty()) {
        remedy_text = remedy;
    }
    faults.push_back(Fault{path, std::move(message), std::move(remedy_text)});
}

FieldPlace FieldPlace::at(std::string_view key) const {
    return FieldPlace{join_pointer(path, key), faults, remedy};
}

FieldPlace FieldPlace::at(std::size_t index) const {
    return FieldPlace{path + "/" + std::to_string(index), faults, remedy};
}

std::string join_pointer(std::string_view pointer, std::string_view key) {
    std::string out(pointer);
    out += '/';
    for (const char c : key) {
        if (c == '~') {
            out += "~0";
        } else if (c == '/') {
            out += "~1";
        } else {
            out += c;
        }
    }
    return out;
}

std::string closest_name(std::string_view name, const std::vector<std::string>& known) {
    constexpr std::size_t kLongestName = 64;
    if (name.size() > kLongestName) {
        return {};
    }
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
    for (const std::string& candidate : known) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string list_names(const std::vector<std::string>& names) {
    if (names.empty()) {
        return "none";
    }
    std::string out = names.front();
    for (std::size_t i = 1; i < names.size(); ++i) {
        out += i + 1 == names.size() ? " and " : ", ";
        out += names[i];
    }
    return out;
}

std::string describe(const Fault& fault) {
    std::string out = fault.path.empty() ? "" : dotted(fault.path) + ": ";
    out += fault.message;
    return fault.remedy.empty() ? out : out + "; " + fault.remedy;
}

std::string check_variable_name(std::string_view name) {
    const bool fits =
        !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
            std::string_view::npos;
    return fits ? "" : "must be the name of an environment variable: letters, digits and \"_\"";
}

Error faults_error(std::string code, const std::vector<Fault>& faults) {
    Error error{ErrorKind::invalid, std::move(code), {}};
    for (const Fault& fault : faults) {
        error.message += error.message.empty() ? "" : "\n";
        error.message += describe(fault);
    }
    return error;
}

namespace field_kinds {

std::optional<std::string> text(const json::value& in, const Rule& rule, const FieldPlace& place) {
    if (!in.is_string()) {
        expected("a text", in, place);
        return std::nullopt;
    }
    const std::string_view value = in.get_string();
    if (value.empty() && rule.min >= 1) {
        place.fault("must not be empty");
        return std::nullopt;
    }
    if (!within(static_cast<std::int64_t>(value.size()), rule, " bytes long", place)) {
        return std::nullopt;
    }
    if (rule.check != nullptr) {
        if (std::string wrong = rule.check(value); !wrong.empty()) {
            place.fault(std::move(wrong));
            return std::nullopt;
        }
    }
    return std::string(value);
}

std::optional<std::int64_t> integer(
    const json::value& in, const Rule& rule, const FieldPlace& place
) {
    const auto value = whole(in);
    if (!value) {
        expected("a whole number", in, place);
        return std::nullopt;
    }
    return within(*value, rule, "", place) ? value : std::nullopt;
}

std::optional<double> number(const json::value& in, const Rule& rule, const FieldPlace& place) {
    double value = 0;
    if (in.is_double()) {
        value = in.get_double();
    } else if (in.is_int64()) {
        value = static_cast<double>(in.get_int64());
    } else if (in.is_uint64()) {
        value = static_cast<double>(in.get_uint64());
    } else {
        expected("a number", in, place);
        return std::nullopt;
    }
    const bool too_small = rule.min != kNoMin && !(value >= static_cast<double>(rule.min));
    const bool too_large = rule.max != kNoMax && !(value <= static_cast<double>(rule.max));
    if (too_small || too_large) {
        place.fault(fmt::format(
            "must be at {} {}, found {}",
            too_small ? "least" : "most",
            too_small ? rule.min : rule.max,
            value
        ));
        return std::nullopt;
    }
    return value;
}

std::optional<bool> boolean(const json::value& in, const FieldPlace& place) {
    if (!in.is_bool()) {
        expected("true or false", in, place);
        return std::nullopt;
    }
    return in.get_bool();
}

std::optional<std::chrono::milliseconds> duration(
    const json::value& in, const Rule& rule, const FieldPlace& place
) {
    if (!in.is_string()) {
        place.fault(
            "must be a duration, found " + found(in),
            "write it with a unit, like 500ms, 10s, 5m or 2h"
        );
        return std::nullopt;
    }
    const auto value = parse_duration(std::string_view(in.get_string()));
    if (!value) {
        place.fault(value.error().message);
        return std::nullopt;
    }
    const auto ms = value->count();
    if (ms < rule.min || ms > rule.max) {
        const bool too_short = ms < rule.min;
        const std::chrono::milliseconds bound(too_short ? rule.min : rule.max);
        place.fault(fmt::format(
            "must be at {} {}, found {}",
            too_short ? "least" : "most",
            write_duration(bound),
            write_duration(*value)
        ));
        return std::nullopt;
    }
    return *value;
}

std::optional<std::int64_t> size(const json::value& in, const Rule& rule, const FieldPlace& place) {
    std::optional<std::int64_t> value = whole(in);
    if (value) {
        return within(*value, rule, " bytes", place) ? value : std::nullopt;
    }
    if (in.is_string()) {
        const auto parsed = parse_size(std::string_view(in.get_string()));
        if (!parsed) {
            place.fault(parsed.error().message);
            return std::nullopt;
        }
        value = static_cast<std::int64_t>(*parsed);
    } else {
        place.fault(
            "must be a size, found " + found(in), "write it like 512, 64KiB, 10MiB or 1GiB"
        );
        return std::nullopt;
    }
    return within(*value, rule, " bytes", place) ? value : std::nullopt;
}

std::optional<std::size_t> choice(
    const json::value& in, const Names& names, const FieldPlace& place
) {
    if (!in.is_string()) {
        expected("one of " + list_names(names), in, place);
        return std::nullopt;
    }
    const std::string_view value = in.get_string();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == value) {
            return i;
        }
    }
    const std::string meant = closest_name(value, names);
    place.fault(
        fmt::format(
            "must be one of {}, found \"{}\"", list_names(names), utf8_head(value, kShownBytes)
        ),
        meant.empty() ? "" : "did you mean \"" + meant + "\"?"
    );
    return std::nullopt;
}

std::optional<std::vector<std::string>> texts(
    const json::value& in, const Rule& rule, const FieldPlace& place
) {
    const json::array* items = array(in, rule, place);
    if (items == nullptr) {
        return std::nullopt;
    }
    Rule item_rule;
    item_rule.check = rule.check;
    std::vector<std::string> out;
    for (std::size_t i = 0; i < items->size() && !has_enough(place); ++i) {
        // A faulty item keeps its place, so that later checks report the right index.
        out.push_back(text((*items)[i], item_rule, place.at(i)).value_or(""));
    }
    return out;
}

std::optional<std::map<std::string, std::string>> variables(
    const json::value& in, const Rule& rule, const FieldPlace& place
) {
    constexpr std::int64_t kValueBytes = 32 * 1024;  // far from what the kernel takes of one string
    const json::object* entries = object(in, place);
    if (entries == nullptr || !has_fitting_size(entries->size(), rule, place)) {
        return std::nullopt;
    }
    Rule value_rule;
    value_rule.max = kValueBytes;
    value_rule.check = [](std::string_view value) {
        return std::string(value.find('\0') == std::string_view::npos ? "" : "has a NUL");
    };
    std::map<std::string, std::string> out;
    for (const auto& entry : *entries) {
        const FieldPlace at = place.at(entry.key());
        if (std::string wrong = check_variable_name(entry.key()); !wrong.empty()) {
            at.fault(std::move(wrong));
        } else if (auto value = text(entry.value(), value_rule, at)) {
            out[std::string(entry.key())] = std::move(*value);
        }
    }
    return out;
}

const json::object* object(const json::value& in, const FieldPlace& place) {
    if (!in.is_object()) {
        expected("an object", in, place);
        return nullptr;
    }
    return &in.get_object();
}

const json::array* array(const json::value& in, const Rule& rule, const FieldPlace& place) {
    if (!in.is_array()) {
        expected("a list", in, place);
        return nullptr;
    }
    return has_fitting_size(in.get_array().size(), rule, place) ? &in.get_array() : nullptr;
}

void count(std::size_t items, const Rule& rule, const FieldPlace& place) {
    static_cast<void>(has_fitting_size(items, rule, place));
}

void unknown_keys(const json::object& in, const Names& known, const FieldPlace& place) {
    for (const auto& entry : in) {
        const std::string key(entry.key());
        if (has_enough(place) || std::find(known.begin(), known.end(), key) != known.end()) {
            continue;
        }
        const std::string meant = closest_name(key, known);
        place.at(key).fault(
            "unknown key",
            meant.empty() ? "known keys: " + list_names(known) : "did you mean \"" + meant + "\"?"
        );
    }
}

std::string write_duration(std::chrono::milliseconds value) {
    const auto ms = value.count();
    for (const auto& [factor, unit] : {std::pair{3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}) {
        if (ms != 0 && ms % factor == 0) {
            return std::to_string(ms / factor) + unit;
        }
    }
    return std::to_string(ms) + "ms";
}

json::object text_schema(const Rule& rule) {
    json::object out{{"type", "string"}};
    if (rule.min > 0) {
        out["minLength"] = 1;  // the rule counts bytes, the schema characters
    }
    if (rule.max != kNoMax) {
        out["maxLength"] = rule.max;
    }
    return out;
}

json::object integer_schema(const Rule& rule) {
    json::object out{{"type", "integer"}};
    if (rule.min != kNoMin) {
        out["minimum"] = rule.min;
    }
    if (rule.max != kNoMax) {
        out["maximum"] = rule.max;
    }
    return out;
}

json::object duration_schema() { return {{"type", "string"}, {"pattern", "^[0-9]+(ms|s|m|h)$"}}; }

json::object size_schema() {
    return {{"type", {"integer", "string"}}, {"pattern", "^[0-9]+(B|KiB|MiB|GiB|TiB)?$"}};
}

json::object choice_schema(const Names& names) {
    return {{"type", "string"}, {"enum", json::array(names.begin(), names.end())}};
}

json::object list_schema(json::object items, const Rule& rule) {
    json::object out{{"type", "array"}, {"items", std::move(items)}};
    if (rule.min > 0) {
        out["minItems"] = rule.min;
    }
    if (rule.max != kNoMax) {
        out["maxItems"] = rule.max;
    }
    return out;
}

json::object map_schema(json::object values) {
    return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

}  // namespace field_kinds
}  // namespace ars::base
