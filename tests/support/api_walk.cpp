#include "tests/support/api_walk.hpp"

#include "tests/support/json_schema.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <stdexcept>

namespace ars::tests {

namespace json = boost::json;

namespace {

constexpr const char* kNobody = "no-such-thing";
constexpr const char* kUnknown = "not_a_key_of_this";

std::string encoded(const std::string& text) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.') {
            out += c;
        } else {
            out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
        }
    }
    return out;
}

const json::array& list_at(const json::object& object, const char* key) {
    static const json::array kNone;
    const json::value* found = object.if_contains(key);
    return found != nullptr ? found->as_array() : kNone;
}

std::string text(const json::value& value) { return std::string(value.as_string()); }

// Values of every type, and those just outside the bounds of a schema.
json::array strange_values(const json::object& schema) {
    json::array out{1.5, -1, "no such choice", "", true, json::array{1}, {{kUnknown, 1}}};
    if (const json::value* most = schema.if_contains("maxLength")) {
        out.emplace_back(std::string(most->to_number<std::size_t>() + 1, 'x'));
    }
    if (const json::value* most = schema.if_contains("maximum")) {
        out.emplace_back(most->to_number<std::int64_t>() + 1);
    }
    if (const json::value* least = schema.if_contains("minimum")) {
        out.emplace_back(least->to_number<std::int64_t>() - 1);
    }
    return out;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string out;
    for (const std::string& line : lines) {
        out += "\n  " + line;
    }
    return out;
}

}  // namespace

ApiWalk::ApiWalk(int port, Headers credentials)
    : port_(port), credentials_(std::move(credentials)) {
    document_ = http(port_, "GET", "/openapi.json").json();
    for (const auto& path : document_.at("paths").as_object()) {
        for (const auto& entry : path.value().as_object()) {
            std::string method(entry.key());
            std::ranges::transform(method, method.begin(), [](unsigned char c) {
                return static_cast<char>(std::toupper(c));
            });
            const json::object& operation = entry.value().as_object();
            const std::string id = text(operation.at("operationId"));
            const bool is_new =
                operations_.emplace(id, Known{method, std::string(path.key()), &operation}).second;
            EXPECT_TRUE(is_new) << "two operations are named " << id;
        }
    }
}

HttpReply ApiWalk::send(const ApiCall& call, bool with_key) {
    const auto found = operations_.find(call.operation);
    if (found == operations_.end()) {
        throw std::runtime_error("the document has no operation " + call.operation);
    }
    std::string target = found->second.path;
    for (const auto& [name, value] : call.path) {
        const std::size_t at = target.find("{" + name + "}");
        if (at == std::string::npos) {
            throw std::runtime_error(target + " has no {" + name + "}");
        }
        target.replace(at, name.size() + 2, encoded(value));
    }
    char separator = '?';
    for (const auto& [name, value] : call.query) {
        target += separator + name + "=" + encoded(value);
        separator = '&';
    }
    ++requests_;
    Headers headers = call.headers;
    if (with_key) {
        headers.insert(credentials_.begin(), credentials_.end());
    }
    if (!call.body.is_null()) {
        return http_json(port_, found->second.method, target, call.body, std::move(headers));
    }
    if (!call.content_type.empty()) {
        headers["Content-Type"] = call.content_type;
    }
    return http(port_, found->second.method, target, call.bytes, headers);
}

HttpReply ApiWalk::checked(const ApiCall& call, bool with_key) {
    HttpReply reply = send(call, with_key);
    EXPECT_EQ(reply.status, call.status)
        << call.operation << " with " << json::serialize(call.body) << ": " << reply.body;
    check_answer(call, reply);
    if (reply.status >= 200 && reply.status < 300) {
        good_.insert(call.operation);
    } else if (reply.status != 401) {
        failed_[call.operation].insert(reply.status);
    }
    return reply;
}

void ApiWalk::check_answer(const ApiCall& call, const HttpReply& reply) {
    const std::string what = call.operation + " " + std::to_string(reply.status);
    const json::object& responses =
        operations_.at(call.operation).operation->at("responses").as_object();
    const json::value* declared = responses.if_contains(std::to_string(reply.status));
    if (declared == nullptr) {
        ADD_FAILURE() << what << " is not declared; it answered " << reply.body;
        return;
    }
    if (const json::value* ref = declared->as_object().if_contains("$ref")) {
        declared = resolve(document_, text(*ref));
    }
    const auto type = reply.headers.find("content-type");
    const std::string media =
        type == reply.headers.end() ? "" : type->second.substr(0, type->second.find(';'));
    const json::value* content = declared->at("content").as_object().if_contains(media);
    if (content == nullptr) {
        ADD_FAILURE() << what << " came as \"" << media << "\", which is not declared";
    } else if (media == "application/json") {
        check_json(what, content->at("schema"), reply);
    } else if (media == "application/x-ndjson") {
        std::istringstream lines(reply.body);
        for (std::string line; std::getline(lines, line);) {
            const auto faults =
                schema_faults(document_, content->at("x-line-data"), json::parse(line));
            EXPECT_TRUE(faults.empty()) << what << joined(faults) << "\n" << line;
        }
    } else if (media == "text/event-stream") {
        const std::vector<SseEvent> events = parse_events(reply.body);
        EXPECT_FALSE(events.empty()) << what;
        check_events(call.operation, events);
    }
}

void ApiWalk::check_json(
    const std::string& what, const json::value& schema, const HttpReply& reply
) {
    const json::value body = reply.json();
    const auto faults = schema_faults(document_, schema, body);
    EXPECT_TRUE(faults.empty()) << what << joined(faults) << "\n" << reply.body;
    // The schema says something: it refuses an answer with one key more.
    if (body.is_object() && what.find("openapi ") != 0) {
        json::object more = body.get_object();
        more[kUnknown] = 1;
        EXPECT_FALSE(schema_faults(document_, schema, more).empty())
            << what << " has a schema that takes anything";
    }
}

void ApiWalk::check_events(const std::string& operation, const std::vector<SseEvent>& events) {
    const json::value& schema = operations_.at(operation)
                                    .operation->at("responses")
                                    .at("200")
                                    .at("content")
                                    .at("text/event-stream")
                                    .at("x-event-data");
    for (const SseEvent& event : events) {
        const auto faults = schema_faults(document_, schema, event.data);
        EXPECT_TRUE(faults.empty()) << operation << " " << event.type << joined(faults) << "\n"
                                    << json::serialize(event.data);
    }
}

json::value ApiWalk::call(ApiCall call) {
    if (call.status < 300 && !good_.contains(call.operation)) {
        const json::object& operation = *operations_.at(call.operation).operation;
        if (!operation.contains("security")) {
            ApiCall stranger = call;
            stranger.status = 401;
            checked(stranger, false);
        }
        refuse_bad_paths(call);
        refuse_bad_queries(call);
        refuse_bad_bodies(call);
    }
    const HttpReply reply = checked(call);
    return reply.headers.at("content-type").starts_with("application/json") ? reply.json()
                                                                            : json::value();
}

void ApiWalk::refuse_bad_paths(const ApiCall& good) {
    for (const auto& entry : good.path) {
        ApiCall bad = good;
        bad.path[entry.first] = kNobody;
        const auto other = good.path_status.find(entry.first);
        bad.status = other == good.path_status.end() ? 404 : other->second;
        checked(bad);
    }
    for (const std::string& name : good.names) {
        ApiCall bad = good;
        bad.query[name] = kNobody;
        bad.status = 404;
        checked(bad);
    }
}

void ApiWalk::refuse_bad_queries(const ApiCall& good) {
    for (const json::value& parameter :
         list_at(*operations_.at(good.operation).operation, "parameters")) {
        if (parameter.at("in") != "query") {
            continue;
        }
        const std::string name = text(parameter.at("name"));
        const json::object& entry = parameter.as_object();
        if (entry.contains("required")) {
            ApiCall bad = good;
            bad.query.erase(name);
            expect_fault(bad, "/" + name);
        }
        const json::object& schema = entry.at("schema").as_object();
        if (schema.at("type") == "boolean") {
            ApiCall bad = good;
            bad.query[name] = "maybe";
            expect_fault(bad, "/" + name);
        }
        if (const json::value* most = schema.if_contains("maximum")) {
            ApiCall last = good;
            last.query[name] = std::to_string(most->to_number<std::int64_t>());
            EXPECT_EQ(send(last).status, good.status) << name << " at its maximum";
            const std::string over = std::to_string(most->to_number<std::int64_t>() + 1);
            for (const std::string& value : {over, std::string("-1"), std::string("x")}) {
                ApiCall bad = good;
                bad.query[name] = value;
                expect_fault(bad, "/" + name);
            }
        }
    }
}

void ApiWalk::refuse_bad_bodies(const ApiCall& good) {
    const json::value* body = operations_.at(good.operation).operation->if_contains("requestBody");
    if (body == nullptr) {
        EXPECT_TRUE(good.body.is_null() && good.bytes.empty())
            << good.operation << " was sent a body that is not documented";
        return;
    }
    const json::value* media = body->at("content").as_object().if_contains("application/json");
    if (media == nullptr) {
        return;
    }
    json::object sent = good.body.is_object() ? good.body.get_object() : json::object();
    const auto faults = schema_faults(document_, media->at("schema"), sent);
    EXPECT_TRUE(faults.empty()) << good.operation << joined(faults);
    ApiCall broken = good;
    broken.body = nullptr;
    broken.bytes = "{\"";
    broken.content_type = "application/json";
    broken.status = 400;
    checked(broken);
    broken.content_type = "text/plain";
    broken.status = 415;
    checked(broken);
    ApiCall bad = good;
    bad.body = sent;
    bad.body.get_object()[kUnknown] = 1;
    expect_fault(bad, std::string("/") + kUnknown);
    // Without the key that tells one kind of body from another, others are named.
    const bool is_one_of = media->at("schema").as_object().contains("anyOf");
    const json::object schema = fitting(media->at("schema"), sent);
    for (const json::value& name : list_at(schema, "required")) {
        bad.body = sent;
        bad.body.get_object().erase(name.as_string());
        expect_fault(bad, is_one_of ? "/" : "/" + text(name));
    }
    for (const auto& property : schema.at("properties").as_object()) {
        for (const json::value& value : strange_values(property.value().as_object())) {
            if (!schema_faults(document_, property.value(), value).empty()) {
                bad.body = sent;
                bad.body.get_object()[property.key()] = value;
                const std::string name(property.key());
                if (value.is_string() && std::ranges::count(good.body_names, name) > 0) {
                    bad.status = 404;
                    checked(bad);
                } else {
                    expect_fault(bad, "/" + name);
                }
            }
        }
    }
}

json::object ApiWalk::fitting(const json::value& schema, const json::value& sent) const {
    const json::object& rules = schema.as_object();
    if (const json::value* ref = rules.if_contains("$ref")) {
        return fitting(*resolve(document_, text(*ref)), sent);
    }
    for (const json::value& choice : list_at(rules, "anyOf")) {
        if (schema_faults(document_, choice, sent).empty()) {
            return fitting(choice, sent);
        }
    }
    return rules;
}

void ApiWalk::expect_fault(const ApiCall& call, const std::string& place) {
    ApiCall bad = call;
    bad.status = 422;
    const HttpReply reply = checked(bad);
    EXPECT_NE(reply.body.find("\"path\":\"" + place), std::string::npos)
        << call.operation << " does not name " << place << ": " << reply.body;
}

std::vector<std::string> ApiWalk::gaps() const {
    std::vector<std::string> out;
    for (const auto& [id, known] : operations_) {
        if (!good_.contains(id)) {
            out.push_back(id + " (" + known.method + " " + known.path + ") was never called");
        }
        const bool takes_something =
            known.operation->contains("requestBody") || known.path.find('{') != std::string::npos;
        if (takes_something && !failed_.contains(id)) {
            out.push_back(id + " never failed");
        }
    }
    return out;
}

}  // namespace ars::tests
