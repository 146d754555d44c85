// One table per type says which keys a JSON (or YAML) object may have: name, kind, rule and a
// sentence of text. The same table decodes into the C++ struct, reports every fault with its place,
// writes the struct back, and produces JSON Schema. The defaults are those of the struct's member
// initializers.
//
//     const Fields<SubmitRun>& submit_run_fields() {
//         static const Fields<SubmitRun> fields =
//             Fields<SubmitRun>{}
//                 .text("query", &SubmitRun::query, {.required = true, .doc = "The message."})
//                 .boolean("stream", &SubmitRun::stream, {.doc = "Follow the events."});
//         return fields;
//     }
//
// A member of type std::optional<M> is absent when its key is missing or null.
#pragma once

#include "base/document.hpp"
#include "base/result.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ars::base {

namespace json = boost::json;

// What a value must fulfil. `min` and `max` count bytes of a text, items of a list or map,
// milliseconds of a duration, bytes of a size, and the number itself of an integer.
struct Rule {
    bool required = false;
    std::int64_t min = std::numeric_limits<std::int64_t>::min();
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
    // Texts, items of a list of texts, keys of a map: returns what is wrong with it, "" when
    // nothing is.
    std::string (*check)(std::string_view text) = nullptr;
    // Added to every fault of this field, and a sentence for the schema. Literals: the table keeps
    // a view.
    std::string_view remedy = {};
    std::string_view doc = {};
};

// Where a value stands while it is read, and where its faults go.
struct FieldPlace {
    std::string path;  // JSON pointer
    std::vector<Fault>& faults;
    std::string_view remedy;

    void fault(std::string message, std::string remedy_text = {}) const;
    [[nodiscard]] FieldPlace at(std::string_view key) const;
    [[nodiscard]] FieldPlace at(std::size_t index) const;
};

// "/a" and "b/c" -> "/a/b~1c".
[[nodiscard]] std::string join_pointer(std::string_view pointer, std::string_view key);
// The known name that `name` was probably meant to be, or "".
[[nodiscard]] std::string closest_name(
    std::string_view name, const std::vector<std::string>& known
);
// "a, b and c"; "none" for an empty list.
[[nodiscard]] std::string list_names(const std::vector<std::string>& names);
// "config_json.context.modle: unknown key; did you mean \"model\"?": for places without file and
// line.
[[nodiscard]] std::string describe(const Fault& fault);
// A check for rules: "" for the name of an environment variable, else what is wrong.
[[nodiscard]] std::string check_variable_name(std::string_view name);
// All faults as one `invalid` error, one sentence each, for an HTTP body or a tool's arguments.
[[nodiscard]] Error faults_error(std::string code, const std::vector<Fault>& faults);

namespace field_kinds {

using Names = std::vector<std::string>;

// Readers of single values: nothing and a fault when the value does not fit.
std::optional<std::string> text(const json::value&, const Rule&, const FieldPlace&);
std::optional<std::int64_t> integer(const json::value&, const Rule&, const FieldPlace&);
std::optional<double> number(const json::value&, const Rule&, const FieldPlace&);
std::optional<bool> boolean(const json::value&, const FieldPlace&);
std::optional<std::chrono::milliseconds>
duration(const json::value&, const Rule&, const FieldPlace&);
std::optional<std::int64_t> size(const json::value&, const Rule&, const FieldPlace&);
std::optional<std::size_t> choice(const json::value&, const Names&, const FieldPlace&);
std::optional<std::vector<std::string>> texts(const json::value&, const Rule&, const FieldPlace&);
std::optional<std::map<std::string, std::string>>
variables(const json::value&, const Rule&, const FieldPlace&);
const json::object* object(const json::value&, const FieldPlace&);
const json::array* array(const json::value&, const Rule&, const FieldPlace&);
void count(std::size_t items, const Rule&, const FieldPlace&);
void unknown_keys(const json::object&, const Names& known, const FieldPlace&);
std::string write_duration(std::chrono::milliseconds);

json::object text_schema(const Rule&);
json::object integer_schema(const Rule&);
json::object duration_schema();
json::object size_schema();
json::object choice_schema(const Names&);
json::object list_schema(json::object items, const Rule&);
json::object map_schema(json::object values);

template <class M>
struct Unwrap {
    using Value = M;
    static constexpr bool kOptional = false;
};
template <class M>
struct Unwrap<std::optional<M>> {
    using Value = M;
    static constexpr bool kOptional = true;
};

}  // namespace field_kinds

template <class T>
class Fields {
    template <class M>
    using Value = typename field_kinds::Unwrap<M>::Value;

  public:
    template <class M>  // std::string
    Fields&& text(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return field_kinds::text(in, rule, place);
        };
        auto write = [](const Value<M>& value) { return json::value(value); };
        return add(
            name, member, rule, [rule] { return field_kinds::text_schema(rule); }, read, write
        );
    }

    template <class M>  // any integer type
    Fields&& integer(std::string_view name, M T::* member, Rule rule = {}) && {
        fit_to<Value<M>>(rule);
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return convert<Value<M>>(field_kinds::integer(in, rule, place));
        };
        auto write = [](const Value<M>& value) { return json::value(value); };
        return add(
            name, member, rule, [rule] { return field_kinds::integer_schema(rule); }, read, write
        );
    }

    template <class M>  // double; min and max as whole numbers
    Fields&& number(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return field_kinds::number(in, rule, place);
        };
        auto write = [](const Value<M>& value) { return json::value(value); };
        return add(
            name, member, rule, [] { return json::object{{"type", "number"}}; }, read, write
        );
    }

    template <class M>  // bool
    Fields&& boolean(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [](const json::value& in, const FieldPlace& place) {
            return field_kinds::boolean(in, place);
        };
        auto write = [](const Value<M>& value) { return json::value(value); };
        return add(
            name, member, rule, [] { return json::object{{"type", "boolean"}}; }, read, write
        );
    }

    template <class M>  // std::chrono::milliseconds, written as "500ms", "10s", "5m", "2h"
    Fields&& duration(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return field_kinds::duration(in, rule, place);
        };
        auto write = [](const Value<M>& value) {
            return json::value(field_kinds::write_duration(value));
        };
        return add(name, member, rule, [] { return field_kinds::duration_schema(); }, read, write);
    }

    template <class M>  // any integer type, written as 512, "64KiB", "1GiB"
    Fields&& size(std::string_view name, M T::* member, Rule rule = {}) && {
        fit_to<Value<M>>(rule);
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return convert<Value<M>>(field_kinds::size(in, rule, place));
        };
        auto write = [](const Value<M>& value) { return json::value(value); };
        return add(name, member, rule, [] { return field_kinds::size_schema(); }, read, write);
    }

    template <class M>  // an enum, or any type compared by ==
    Fields&& choice(
        std::string_view name,
        M T::* member,
        std::initializer_list<std::pair<std::string_view, Value<M>>> choices,
        Rule rule = {}
    ) && {
        field_kinds::Names names;
        std::vector<Value<M>> values;
        for (const auto& [choice_name, value] : choices) {
            names.emplace_back(choice_name);
            values.push_back(value);
        }
        auto read = [names, values](const json::value& in, const FieldPlace& place) {
            const auto index = field_kinds::choice(in, names, place);
            return index ? std::optional<Value<M>>(values[*index]) : std::nullopt;
        };
        auto write = [names, values](const Value<M>& value) {
            const auto found = std::find(values.begin(), values.end(), value);
            return found == values.end()
                       ? json::value()
                       : json::value(names[static_cast<std::size_t>(found - values.begin())]);
        };
        return add(
            name, member, rule, [names] { return field_kinds::choice_schema(names); }, read, write
        );
    }

    template <class M>  // std::vector<std::string>
    Fields&& texts(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return field_kinds::texts(in, rule, place);
        };
        auto write = [](const Value<M>& value) {
            return json::value(json::array(value.begin(), value.end()));
        };
        auto schema = [rule] {
            return field_kinds::list_schema(json::object{{"type", "string"}}, rule);
        };
        return add(name, member, rule, schema, read, write);
    }

    template <class M>  // a struct with its own table, which must outlive this one (a static)
    Fields&& object(
        std::string_view name, M T::* member, const Fields<Value<M>>& fields, Rule rule = {}
    ) && {
        auto read = [&fields](const json::value& in, const FieldPlace& place) {
            return fields.read(in, place);
        };
        auto write = [&fields](const Value<M>& value) { return json::value(fields.encode(value)); };
        return add(name, member, rule, [&fields] { return fields.schema(); }, read, write);
    }

    template <class M, class Item>  // std::vector<Item>
    Fields&& objects(
        std::string_view name, M T::* member, const Fields<Item>& fields, Rule rule = {}
    ) && {
        auto read = [&fields, rule](const json::value& in, const FieldPlace& place) {
            std::optional<Value<M>> out;
            if (const json::array* items = field_kinds::array(in, rule, place)) {
                out.emplace();
                for (std::size_t i = 0; i < items->size(); ++i) {
                    if (auto item = fields.read((*items)[i], place.at(i))) {
                        out->push_back(std::move(*item));
                    }
                }
            }
            return out;
        };
        auto write = [&fields](const Value<M>& value) {
            json::array out;
            for (const Item& item : value) {
                out.push_back(fields.encode(item));
            }
            return json::value(std::move(out));
        };
        auto schema = [&fields, rule] { return field_kinds::list_schema(fields.schema(), rule); };
        return add(name, member, rule, schema, read, write);
    }

    template <class M, class Item>  // std::map<std::string, Item>
    Fields&& map(
        std::string_view name, M T::* member, const Fields<Item>& fields, Rule rule = {}
    ) && {
        auto read = [&fields, rule](const json::value& in, const FieldPlace& place) {
            std::optional<Value<M>> out;
            if (const json::object* entries = field_kinds::object(in, place)) {
                field_kinds::count(entries->size(), rule, place);
                out.emplace();
                for (const auto& entry : *entries) {
                    const FieldPlace at = place.at(entry.key());
                    if (rule.check != nullptr) {
                        if (std::string wrong = rule.check(entry.key()); !wrong.empty()) {
                            at.fault(std::move(wrong));
                        }
                    }
                    if (auto item = fields.read(entry.value(), at)) {
                        (*out)[std::string(entry.key())] = std::move(*item);
                    }
                }
            }
            return out;
        };
        auto write = [&fields](const Value<M>& value) {
            json::object out;
            for (const auto& [key, item] : value) {
                out[key] = fields.encode(item);
            }
            return json::value(std::move(out));
        };
        return add(
            name,
            member,
            rule,
            [&fields] { return field_kinds::map_schema(fields.schema()); },
            read,
            write
        );
    }

    template <class M>  // std::map<std::string, std::string>: environment variables
    Fields&& variables(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [rule](const json::value& in, const FieldPlace& place) {
            return field_kinds::variables(in, rule, place);
        };
        auto write = [](const Value<M>& value) {
            json::object out;
            for (const auto& [key, text] : value) {
                out[key] = text;
            }
            return json::value(std::move(out));
        };
        auto schema = [] { return field_kinds::map_schema(json::object{{"type", "string"}}); };
        return add(name, member, rule, schema, read, write);
    }

    template <class M>  // json::object, taken as it is
    Fields&& raw(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [](const json::value& in, const FieldPlace& place) {
            const json::object* found = field_kinds::object(in, place);
            return found != nullptr ? std::optional(*found) : std::nullopt;
        };
        auto write = [](const Value<M>& value) { return json::value(value); };
        return add(
            name, member, rule, [] { return json::object{{"type", "object"}}; }, read, write
        );
    }

    // Any JSON. With std::optional<json::value>, null is a value and only a missing key is absent.
    template <class M>
    Fields&& any(std::string_view name, M T::* member, Rule rule = {}) && {
        auto read = [](const json::value& in, const FieldPlace&) { return std::optional(in); };
        auto write = [](const Value<M>& value) { return value; };
        return add(name, member, rule, [] { return json::object{}; }, read, write);
    }

    // Reads `in` into `out`: members of faulty or missing keys keep their value. Every fault comes
    // back, in the order of the table, unknown keys last. `path` is the pointer of `in` itself.
    [[nodiscard]] std::vector<Fault> decode(const json::object& in, T& out, std::string path = {})
        const {
        std::vector<Fault> faults;
        decode_at(in, out, FieldPlace{std::move(path), faults, {}});
        return faults;
    }

    // The same for a value that may turn out to be no object at all.
    [[nodiscard]] std::vector<Fault> decode(const json::value& in, T& out) const {
        std::vector<Fault> faults;
        const FieldPlace place{{}, faults, {}};
        if (const json::object* found = field_kinds::object(in, place)) {
            decode_at(*found, out, place);
        }
        return faults;
    }

    // Every field, absent optionals as null: decode(encode(x)) gives x.
    [[nodiscard]] json::object encode(const T& value) const {
        json::object out;
        for (const Field& field : fields_) {
            out[field.name] = field.write(value);
        }
        return out;
    }

    // JSON Schema (2020-12) of the object, with defaults and texts.
    [[nodiscard]] json::object schema() const {
        json::object properties;
        json::array required;
        const json::object defaults = encode(T{});
        for (const Field& field : fields_) {
            json::object property = field.schema();
            if (!field.rule.doc.empty()) {
                property["description"] = field.rule.doc;
            }
            if (field.rule.required) {
                required.emplace_back(field.name);
            } else if (!field.optional && !property.contains("properties")) {
                property["default"] = defaults.at(field.name);
            }
            properties[field.name] = std::move(property);
        }
        json::object out{{"type", "object"}, {"properties", std::move(properties)}};
        if (!required.empty()) {
            out["required"] = std::move(required);
        }
        out["additionalProperties"] = false;
        return out;
    }

    [[nodiscard]] std::vector<std::string> names() const { return names_; }

    // For tables that contain this one. Nothing only when `in` is no object.
    [[nodiscard]] std::optional<T> read(const json::value& in, const FieldPlace& place) const {
        std::optional<T> out;
        if (const json::object* found = field_kinds::object(in, place)) {
            out.emplace();
            decode_at(*found, *out, FieldPlace{place.path, place.faults, {}});
        }
        return out;
    }

  private:
    struct Field {
        std::string name;
        Rule rule;
        bool optional = false;
        std::function<json::object()> schema;
        std::function<void(const json::value&, T&, const FieldPlace&)> read;
        std::function<json::value(const T&)> write;
    };

    template <class M, class Schema, class Read, class Write>
    Fields&& add(
        std::string_view name,
        M T::* member,
        const Rule& rule,
        Schema schema,
        Read read,
        Write write
    ) {
        constexpr bool kOptional = field_kinds::Unwrap<M>::kOptional;
        constexpr bool kTakesNull = std::is_same_v<Value<M>, json::value>;
        Field field{std::string(name), rule, kOptional, std::move(schema), {}, {}};
        field.read = [member, read](const json::value& in, T& out, const FieldPlace& place) {
            if (kOptional && !kTakesNull && in.is_null()) {
                out.*member = M{};
            } else if (auto value = read(in, place)) {
                out.*member = std::move(*value);
            }
        };
        field.write = [member, write](const T& from) -> json::value {
            if constexpr (kOptional) {
                return (from.*member) ? json::value(write(*(from.*member))) : json::value();
            } else {
                return write(from.*member);
            }
        };
        names_.emplace_back(name);
        fields_.push_back(std::move(field));
        return std::move(*this);
    }

    template <class Int>
    static void fit_to(Rule& rule) {
        constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
        rule.min = std::max(rule.min, static_cast<std::int64_t>(std::numeric_limits<Int>::min()));
        if constexpr (sizeof(Int) < sizeof(std::int64_t)) {
            rule.max =
                std::min(rule.max, static_cast<std::int64_t>(std::numeric_limits<Int>::max()));
        } else {
            rule.max = std::min(rule.max, kMax);
        }
    }
    template <class Int>
    static std::optional<Int> convert(std::optional<std::int64_t> value) {
        return value ? std::optional<Int>(static_cast<Int>(*value)) : std::nullopt;
    }

    void decode_at(const json::object& in, T& out, const FieldPlace& place) const {
        for (const Field& field : fields_) {
            FieldPlace at = place.at(field.name);
            at.remedy = field.rule.remedy;
            const json::value* value = in.if_contains(field.name);
            const bool missing = value == nullptr || (value->is_null() && field.optional);
            if (missing && field.rule.required) {
                at.fault("is missing");
            } else if (value != nullptr) {
                field.read(*value, out, at);
            }
        }
        field_kinds::unknown_keys(in, names_, place);
    }

    std::vector<Field> fields_;
    std::vector<std::string> names_;
};

}  // namespace ars::base
