#include "tests/support/malformed_requests.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>

namespace ars::tests {

namespace json = boost::json;

namespace {

std::string upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
        return static_cast<char>(std::toupper(c));
    });
    return out;
}

std::string fill(std::string path) {
    for (std::size_t open = 0; (open = path.find('{')) != std::string::npos;) {
        path.replace(open, path.find('}') - open + 1, "none");
    }
    return path;
}

const json::object& resolved(const json::value& openapi, const json::object& schema) {
    const json::value* ref = schema.if_contains("$ref");
    return ref == nullptr
               ? schema
               : openapi.at_pointer(std::string_view(ref->as_string()).substr(1)).as_object();
}

}  // namespace

std::string request_head(const std::string& line, const std::string& fields) {
    return line + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

std::string request_with_body(
    const std::string& method, const std::string& path, const std::string& body
) {
    return request_head(
               method + " " + path,
               "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                   "\r\n"
           ) +
           body;
}

MalformedRequests::MalformedRequests(const json::value& openapi, unsigned seed) : random_(seed) {
    for (const auto& [path, methods] : openapi.at("paths").as_object()) {
        Target target{fill(path), {}};
        for (const auto& [method, operation] : methods.as_object()) {
            target.methods.push_back(upper(method));
            add_bodies(openapi, target.path, upper(method), operation);
            add_numbers(target.path, operation);
        }
        targets_.push_back(std::move(target));
    }
}

Malformed MalformedRequests::next() {
    using Make = Malformed (MalformedRequests::*)();
    static constexpr Make kKinds[] = {
        &MalformedRequests::bad_json,
        &MalformedRequests::bad_json,
        &MalformedRequests::bad_json,
        &MalformedRequests::wrong_type,
        &MalformedRequests::wrong_type,
        &MalformedRequests::wrong_type,
        &MalformedRequests::unknown_field,
        &MalformedRequests::wrong_method,
        &MalformedRequests::wrong_media,
        &MalformedRequests::bad_target,
        &MalformedRequests::bad_query,
        &MalformedRequests::bad_head,
        &MalformedRequests::bad_head,
        &MalformedRequests::head_bomb,
        &MalformedRequests::smuggling,
        &MalformedRequests::smuggling,
        &MalformedRequests::bad_chunk,
        &MalformedRequests::too_much_body,
        &MalformedRequests::cut_off,
        &MalformedRequests::noise,
        &MalformedRequests::noise_after_a_good_one,
        &MalformedRequests::bad_upload,
        &MalformedRequests::bad_field,
    };
    return (this->*pick(kKinds))();
}

void MalformedRequests::add_bodies(
    const json::value& openapi,
    const std::string& path,
    const std::string& method,
    const json::value& operation
) {
    const json::value* body = operation.as_object().if_contains("requestBody");
    const json::value* media =
        body == nullptr ? nullptr : body->at("content").as_object().if_contains("application/json");
    if (media == nullptr) {
        return;
    }
    const json::object& schema = resolved(openapi, media->at("schema").as_object());
    std::vector<const json::object*> shapes;
    if (const json::value* any = schema.if_contains("anyOf")) {
        for (const json::value& one : any->as_array()) {
            shapes.push_back(&resolved(openapi, one.as_object()));
        }
    } else {
        shapes.push_back(&schema);
    }
    bool closed = true;
    for (const json::object* shape : shapes) {
        const json::value* additional = shape->if_contains("additionalProperties");
        closed = closed && additional != nullptr && *additional == false;
    }
    bodies_.push_back({method, path, closed});
    // Of a choice of shapes, the first is the one that a lone property is held against.
    if (const json::value* properties = shapes.front()->if_contains("properties")) {
        for (const auto& [name, property] : properties->as_object()) {
            add_property(method, path, name, resolved(openapi, property.as_object()));
        }
    }
}

void MalformedRequests::add_property(
    const std::string& method,
    const std::string& path,
    std::string_view name,
    const json::object& schema
) {
    Property out{method, path, std::string(name), {}, schema.contains("enum")};
    const json::value* type = schema.if_contains("type");
    if (type == nullptr) {
        return;  // anything goes
    }
    if (type->is_string()) {
        out.types.emplace_back(type->as_string());
    } else {
        for (const json::value& one : type->as_array()) {
            out.types.emplace_back(one.as_string());
        }
    }
    properties_.push_back(std::move(out));
}

void MalformedRequests::add_numbers(const std::string& path, const json::value& operation) {
    if (const json::value* list = operation.as_object().if_contains("parameters")) {
        for (const json::value& one : list->as_array()) {
            if (one.at("in") == "query" && one.at("schema").as_object().contains("type") &&
                one.at("schema").at("type") == "integer") {
                numbers_.push_back({path, std::string(one.at("name").as_string())});
            }
        }
    }
}

std::size_t MalformedRequests::below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
}

std::string MalformedRequests::word(std::size_t size) {
    std::string out;
    for (std::size_t i = 0; i < size; ++i) {
        out += static_cast<char>('a' + below(26));
    }
    return out;
}

std::string MalformedRequests::bytes(std::size_t size) {
    std::string out;
    for (std::size_t i = 0; i < size; ++i) {
        out += static_cast<char>(below(256));
    }
    return out;
}

Malformed MalformedRequests::bad_json() {
    const Body& to = pick(bodies_);
    const std::string sound = std::string(kSoundBody);
    const std::string deep(80 + below(3000), "[{"[below(2)]);
    const std::string wrong[] = {
        sound.substr(0, 1 + below(sound.size() - 1)),
        sound + word(1),
        sound + sound,
        "'" + word(3) + "'",
        "{\"" + word(4) + "\": 1,}",
        "[1,,2]",
        "{" + word(3) + ": 1}",
        "{\"a\": NaN}",
        "{\"a\": 01}",
        "{\"a\": +1}",
        "{\"a\": .5}",
        "{\"a\": 1.}",
        "{\"a\": 1e}",
        "{\"a\" 1}",
        "{\"a\": \"\n\"}",
        "{\"a\": \"\\x\"}",
        "{\"a\": \"\\ud83d\"}",
        "{\"a\": \"" + std::string("\xC3\x28") + "\"}",
        "{\"a\": \"" + std::string("\xED\xA0\x80") + "\"}",
        "{\"\xFF\": 1}",
        "\xEF\xBB\xBF" + sound,
        std::string("{\"a\": \0}", 8),
        "/* no */ {}",
        deep,
        deep + std::string(deep.size(), ']'),
        "{\"agent_slug\": \"a\", \"agent_slug\": \"main\"}",
        "{\"a\": [{\"b\": 1, \"\\u0062\": 2}]}",
        "{\"a\": tru}",
    };
    return {"bad_json", request_with_body(to.method, to.path, pick(wrong)), 400};
}

Malformed MalformedRequests::wrong_type() {
    const Property& one = pick(properties_);
    const std::pair<const char*, json::value> values[] = {
        {"string", one.listed ? json::value() : json::value(word(5) + " " + word(3))},
        {"integer", static_cast<std::int64_t>(below(9)) - 4},
        {"number", 0.5},
        {"boolean", below(2) == 0},
        {"array", {1, nullptr}},
        {"object", {{word(3), word(3)}}},
    };
    for (;;) {
        const auto& [type, value] = pick(values);
        const bool fits = std::any_of(one.types.begin(), one.types.end(), [&](const auto& t) {
            return t == type || (t == "number" && type == std::string_view("integer"));
        });
        if (!fits && !value.is_null()) {
            const json::object body{{one.name, value}};
            return {
                "wrong_type", request_with_body(one.method, one.path, json::serialize(body)), 422
            };
        }
        if (one.listed && below(3) == 0) {
            const json::object body{{one.name, word(9)}};
            return {
                "no_choice", request_with_body(one.method, one.path, json::serialize(body)), 422
            };
        }
    }
}

Malformed MalformedRequests::unknown_field() {
    for (;;) {
        const Body& to = pick(bodies_);
        if (to.closed) {
            json::object body{{"x" + word(1 + below(80)), below(2) == 0}};
            for (std::size_t i = below(3) == 0 ? below(3000) : 0; i > 0; --i) {
                body["k" + std::to_string(i)] = i;
            }
            return {
                "unknown_field", request_with_body(to.method, to.path, json::serialize(body)), 422
            };
        }
    }
}

Malformed MalformedRequests::wrong_method() {
    const std::string methods[] = {
        "GET",
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "PROPFIND",
        "get",
        "M-SEARCH",
        word(12)
    };
    for (;;) {
        const Target& to = pick(targets_);
        const std::string& method = pick(methods);
        if (std::find(to.methods.begin(), to.methods.end(), method) == to.methods.end()) {
            return {"wrong_method", request_head(method + " " + to.path), 405};
        }
    }
}

Malformed MalformedRequests::wrong_media() {
    const Body& to = pick(bodies_);
    const std::string types[] = {
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/jsonx\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: " + word(5) + "\r\n",
        "Content-Type: \xFF\r\n",
    };
    return {
        "wrong_media",
        request_head(to.method + " " + to.path, pick(types) + "Content-Length: 2\r\n") + "{}",
        415
    };
}

Malformed MalformedRequests::bad_field() {
    const std::string body = R"({"agent_slug": "main", "query": "x", "max_steps": 0})";
    const std::pair<std::string, int> fields[] = {
        {"Idempotency-Key: a b", 422},
        {"Idempotency-Key:", 422},
        {"Idempotency-Key: \xC3\x28", 422},
        {"Idempotency-Key: \x7F", 400},
        {"Idempotency-Key: " + word(201), 422},
        {"Expect: " + word(5), 417},
        {"Expect: 100-continue, " + word(3), 417},
        {"X: " + word(9), 422},  // only the body is wrong
    };
    const auto& [field, status] = pick(fields);
    Malformed out{
        "bad_field",
        request_head(
            "POST /api/agent/runs",
            field + "\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n"
        ),
        status
    };
    if (status != 417) {  // that one is answered before the body
        out.bytes += body;
    }
    return out;
}

Malformed MalformedRequests::bad_upload() {
    const std::string post = "POST /api/workspace/upload";
    const auto form = [&](const std::string& body) {
        return request_head(
                   post,
                   "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n"
               ) +
               body;
    };
    const std::string wrong[] = {
        request_head(post),
        request_head(post, "Content-Type: text/plain\r\nContent-Length: 0\r\n"),
        request_head(post, "Content-Type: multipart/form-data\r\nContent-Length: 0\r\n"),
        form(""),
        form("--b"),
        form("--c\r\n\r\n\r\n--c--\r\n"),
        form("--b\r\nno colon\r\n\r\nx\r\n--b--\r\n"),
        form("--b\r\nContent-Disposition: form-data; name=\"file\"; "
             "filename=\"../../x\"\r\n\r\nx"),
        form("--b\r\nContent-Disposition: form-data; name=\"" + std::string(70'000, 'n')),
        form(bytes(1 + below(2000))),
        request_head("PUT /api/workspace/file?path=../" + word(4), "Content-Length: 0\r\n"),
        request_head("PUT /api/workspace/file?path=a%00b", "Content-Length: 0\r\n"),
        request_head("PUT /api/workspace/file", "Content-Length: 0\r\n"),
        request_head(
            "PUT /api/workspace/file?path=" + std::string(5000, 'p'), "Content-Length: 0\r\n"
        ),
        request_head("GET /api/workspace/file?path=/etc/passwd"),
        request_head("GET /api/workspace/tree?path=%FF%FE"),
        request_head("DELETE /api/workspace/file?path=/"),
    };
    return {"bad_upload", pick(wrong)};
}

}  // namespace ars::tests
