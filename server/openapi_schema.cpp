#include "server/openapi_schema.hpp"

#include <boost/json/array.hpp>

namespace ars::server::openapi {

namespace json = boost::json;

namespace {

json::array strings(std::initializer_list<std::string_view> values) {
    json::array out;
    for (const std::string_view value : values) {
        out.emplace_back(value);
    }
    return out;
}

Schema typed(std::string_view type, std::string_view doc = {}) {
    return documented({{"type", type}}, doc);
}

json::object content(std::string_view type, Schema schema) {
    json::object media{{"schema", std::move(schema)}};
    return {{type, std::move(media)}};
}

std::string_view usual_text(int status) {
    switch (status) {
        case 201:
            return "Made.";
        case 202:
            return "Accepted: it is on disk.";
        default:
            return "Done.";
    }
}

}  // namespace

Schema documented(Schema schema, std::string_view doc) {
    if (!doc.empty()) {
        schema["description"] = doc;
    }
    return schema;
}

Schema text(std::string_view doc) { return typed("string", doc); }
Schema time() { return {{"type", "string"}, {"format", "date-time"}}; }
Schema whole(std::string_view doc) {
    return documented({{"type", "integer"}, {"minimum", 0}}, doc);
}
Schema whole_to(std::uint64_t most) {
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", most}};
}
Schema boolean() { return typed("boolean"); }
Schema choice(std::initializer_list<std::string_view> values) {
    return {{"type", "string"}, {"enum", strings(values)}};
}
Schema constant(std::string_view value) { return {{"const", value}}; }
Schema list(Schema items) { return {{"type", "array"}, {"items", std::move(items)}}; }
Schema map(Schema values) {
    return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}
Schema anything(std::string_view doc) { return documented({}, doc); }
Schema open_object(std::string_view doc) { return typed("object", doc); }

Schema nullable(Schema schema) {
    json::value* const type = schema.if_contains("type");
    if (type == nullptr) {
        return any_of({std::move(schema), typed("null")});
    }
    *type = json::array{*type, "null"};
    if (json::value* const values = schema.if_contains("enum")) {
        values->as_array().emplace_back(nullptr);
    }
    return schema;
}

Schema ref(std::string_view component) {
    return {{"$ref", "#/components/schemas/" + std::string(component)}};
}

Schema any_of(std::initializer_list<Schema> schemas) {
    json::array list;
    for (const Schema& schema : schemas) {
        list.emplace_back(schema);
    }
    return {{"anyOf", std::move(list)}};
}

Schema object(const std::vector<Member>& members) {
    json::object properties;
    json::array required;
    for (const Member& member : members) {
        std::string_view name = member.name;
        if (name.ends_with('?')) {
            name.remove_suffix(1);
        } else {
            required.emplace_back(name);
        }
        properties[name] = member.schema;
    }
    Schema out{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) {
        out["required"] = std::move(required);
    }
    out["additionalProperties"] = false;
    return out;
}

Operation::Operation(Method method, std::string path, std::string_view id, std::string_view doc)
    : method_(method),
      path_(std::move(path)),
      out_{{"operationId", id}, {"summary", doc}, {"responses", json::object()}} {}

void Operation::parameter(
    std::string_view in, std::string_view name, Schema schema, std::string_view doc, bool required
) {
    json::value& list = out_["parameters"];
    if (!list.is_array()) {
        list = json::array();
    }
    json::object parameter{{"name", name}, {"in", in}, {"description", doc}};
    if (required) {
        parameter["required"] = true;
    }
    parameter["schema"] = std::move(schema);
    list.get_array().push_back(std::move(parameter));
}

Operation&& Operation::path(std::string_view name, std::string_view doc) && {
    parameter("path", name, text(), doc, true);
    return std::move(*this);
}

Operation&& Operation::query(std::string_view name, Schema schema, std::string_view doc) && {
    parameter("query", name, std::move(schema), doc, false);
    return std::move(*this);
}

Operation&& Operation::required_query(
    std::string_view name, Schema schema, std::string_view doc
) && {
    parameter("query", name, std::move(schema), doc, true);
    return std::move(*this);
}

Operation&& Operation::header(std::string_view name, std::string_view doc) && {
    parameter("header", name, text(), doc, false);
    return std::move(*this);
}

Operation&& Operation::body(Schema schema) && {
    return std::move(*this)
        .body_of("application/json", std::move(schema))
        .fails({400, 413, 415, 422});
}

Operation&& Operation::body_of(std::string_view content_type, Schema schema) && {
    out_["requestBody"] = {
        {"required", true}, {"content", content(content_type, std::move(schema))}
    };
    return std::move(*this);
}

Operation&& Operation::empty_body() && {
    Operation&& out = std::move(*this).body(object({}));
    out.out_["requestBody"].as_object()["required"] = false;
    return std::move(out);
}

void Operation::answer(int status, std::string_view doc, json::object content) {
    out_["responses"].as_object()[std::to_string(status)] = {
        {"description", doc.empty() ? usual_text(status) : doc}, {"content", std::move(content)}
    };
}

Operation&& Operation::answers(int status, Schema schema, std::string_view doc) && {
    answer(status, doc, content("application/json", std::move(schema)));
    return std::move(*this);
}

Operation&& Operation::answers_bytes(
    int status, std::string_view content_type, std::string_view doc
) && {
    answer(status, doc, content(content_type, {}));
    return std::move(*this);
}

Operation&& Operation::answers_events(std::string_view component) && {
    json::object media = content("text/event-stream", text());
    media["text/event-stream"].as_object()["x-event-data"] = ref(component);
    answer(200, "Events until the last one, each with one line of JSON.", std::move(media));
    return std::move(*this);
}

Operation&& Operation::answers_lines(std::string_view component) && {
    json::object media = content("application/x-ndjson", text());
    media["application/x-ndjson"].as_object()["x-line-data"] = ref(component);
    answer(200, "One line of JSON for each.", std::move(media));
    return std::move(*this);
}

Operation&& Operation::fails(std::initializer_list<int> statuses) && {
    for (const int status : statuses) {
        out_["responses"].as_object()[std::to_string(status)] = failure_ref(status);
    }
    return std::move(*this);
}

}  // namespace ars::server::openapi
