#include "server/openapi.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace ars::server {

namespace json = boost::json;

namespace openapi {

namespace {

struct Failure {
    int status;
    std::string_view name;
    std::string_view doc;
    std::string_view schema = "Error";
};

// Any other status is the `default` answer: what is wrong with the request as HTTP, and our faults.
constexpr std::array kFailures{
    Failure{0, "Failure", "Any other failure."},
    Failure{400, "BadRequest", "It can't be read, or asks for what makes no sense."},
    Failure{401, "Unauthorized", "The key is missing or not known."},
    Failure{403, "Forbidden", "Not for this caller, or a path that leads out."},
    Failure{404, "NotFound", "There is none, or it is another user's."},
    Failure{409, "Conflict", "Not in the state that it is in.", "Conflict"},
    Failure{412, "PreconditionFailed", "It is another version by now.", "Conflict"},
    Failure{413, "TooLarge", "A body or a file over its bound."},
    Failure{415, "UnsupportedMediaType", "The body is of another type."},
    Failure{422, "Invalid", "JSON or a parameter that does not fit; `faults` has each place."},
    Failure{
        429,
        "Exhausted",
        "All places are taken, or the key's rate_limit; Retry-After says when to come back."
    },
    Failure{503, "Unavailable", "Starting, stopping, or no room on the disk."},
    Failure{504, "TimedOut", "The wait is over; the run goes on.", "WaitTimeout"},
    Failure{507, "NoSpace", "No space left for files."},
};

std::vector<Part> parts() {
    std::vector<Part> out;
    out.push_back(system_part());
    out.push_back(agents_part());
    out.push_back(runs_part());
    out.push_back(events_part());
    out.push_back(requests_part());
    out.push_back(calls_part());
    out.push_back(threads_part());
    out.push_back(files_part());
    out.push_back(attachments_part());
    out.push_back(user_part());
    out.push_back(people_part());
    return out;
}

std::string method_key(Method method) {
    std::string out(to_string(method));
    std::ranges::transform(out, out.begin(), [](char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    return out;
}

json::object components(const std::vector<Part>& all) {
    json::object schemas;
    for (const Part& part : all) {
        for (const auto& [name, schema] : part.schemas) {
            schemas[name] = schema;
        }
    }
    json::object responses;
    for (const Failure& failure : kFailures) {
        json::object media{{"schema", ref(failure.schema)}};
        responses[failure.name] = {
            {"description", failure.doc}, {"content", {{"application/json", std::move(media)}}}
        };
    }
    return {
        {"schemas", std::move(schemas)},
        {"responses", std::move(responses)},
        {"securitySchemes",
         {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
          {"key", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}}}
    };
}

json::object finished(const Operation& operation, std::string_view tag, Access access) {
    json::object out = operation.json();
    out["tags"] = json::array{tag};
    if (access == Access::open) {
        out["security"] = json::array();
    }
    json::object& responses = out["responses"].as_object();
    if (access == Access::key) {
        responses["401"] = failure_ref(401);
        responses["403"] = failure_ref(403);
        responses["429"] = failure_ref(429);
    }
    responses["default"] = failure_ref(0);
    return out;
}

// Of "/a/{b}/c/{d}": b and d.
std::vector<std::string> names_in(std::string_view pattern) {
    std::vector<std::string> out;
    for (std::size_t open = 0; (open = pattern.find('{', open)) != std::string_view::npos;) {
        const std::size_t close = pattern.find('}', open);
        out.emplace_back(pattern.substr(open + 1, close - open - 1));
        open = close;
    }
    return out;
}

std::vector<std::string> path_parameters(const Operation& operation) {
    std::vector<std::string> out;
    if (const json::value* list = operation.json().if_contains("parameters")) {
        for (const json::value& parameter : list->as_array()) {
            if (parameter.at("in") == "path") {
                out.emplace_back(parameter.at("name").as_string());
            }
        }
    }
    return out;
}

}  // namespace

json::object failure_ref(int status) {
    const auto* const failure = std::ranges::find(kFailures, status, &Failure::status);
    const std::string_view name =
        failure == kFailures.end() ? kFailures.front().name : failure->name;
    return {{"$ref", "#/components/responses/" + std::string(name)}};
}

}  // namespace openapi

json::object openapi_document(const std::vector<ListedRoute>& routes, std::string_view version) {
    const std::vector<openapi::Part> parts = openapi::parts();
    json::array tags;
    json::object paths;
    for (const openapi::Part& part : parts) {
        if (!part.tag.empty()) {
            tags.push_back({{"name", part.tag}, {"description", part.doc}});
        }
        for (const openapi::Operation& operation : part.operations) {
            const auto route = std::ranges::find_if(routes, [&](const ListedRoute& listed) {
                return listed.method == operation.method() && listed.pattern == operation.pattern();
            });
            if (route != routes.end()) {
                json::value& path = paths[operation.pattern()];
                if (!path.is_object()) {
                    path = json::object();
                }
                path.get_object()[openapi::method_key(operation.method())] =
                    openapi::finished(operation, part.tag, route->access);
            }
        }
    }
    return {
        {"openapi", "3.1.0"},
        {"info",
         {{"title", "ARS"},
          {"version", version},
          {"description",
           "Runs of agents whose tools work in sandboxes. Errors are {\"detail\": ...}; what is "
           "missing and what is another user's both answer 404. A key whose act_for names a user "
           "acts for him with the header X-Acting-For."}}},
        {"security", {{{"bearer", json::array()}}, {{"key", json::array()}}}},
        {"tags", std::move(tags)},
        {"paths", std::move(paths)},
        {"components", openapi::components(parts)}
    };
}

std::vector<std::string> openapi_faults(const std::vector<ListedRoute>& routes) {
    std::vector<std::string> out;
    std::vector<std::string> undocumented;
    for (const ListedRoute& route : routes) {
        undocumented.push_back(std::string(to_string(route.method)) + " " + route.pattern);
    }
    for (const openapi::Part& part : openapi::parts()) {
        for (const openapi::Operation& operation : part.operations) {
            const std::string name =
                std::string(to_string(operation.method())) + " " + operation.pattern();
            const auto known = std::ranges::find(undocumented, name);
            if (known == undocumented.end()) {
                out.push_back(name + " is documented twice, or is no route");
                continue;
            }
            undocumented.erase(known);
            if (openapi::path_parameters(operation) != openapi::names_in(operation.pattern())) {
                out.push_back(name + " documents other path parameters than it has");
            }
        }
    }
    for (const std::string& name : undocumented) {
        out.push_back(name + " is not documented: add an Operation to its server/openapi_*.cpp");
    }
    return out;
}

}  // namespace ars::server
