#include "server/router.hpp"

#include "base/text.hpp"
#include "server/api.hpp"
#include "server/http_error.hpp"

#include <algorithm>

namespace ars::server {

struct Router::Node {
    std::vector<std::pair<std::string, std::unique_ptr<Node>>> literals;
    std::unique_ptr<Node> name;  // the child of "{...}"
    std::unique_ptr<Node> rest;  // of "{....}", which takes all that is left of a path
    std::vector<Route> routes;

    [[nodiscard]] Node* literal(std::string_view segment) const {
        for (const auto& [text, child] : literals) {
            if (text == segment) {
                return child.get();
            }
        }
        return nullptr;
    }
};

namespace {

// Longer values name nothing: ids are at most 200 bytes, and keys of the store end at 511.
constexpr std::size_t kNameBytes = 200;
constexpr std::string_view kRest = "...}";
constexpr std::size_t kRestBytes = 4096;  // PATH_MAX

// Takes the next segment off "/a/b": "a", leaving "/b".
std::string_view next_segment(std::string_view& path) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

// A parameter's name in documents: "{path...}" is "{path}" there.
std::string without_dots(std::string_view pattern) {
    std::string out(pattern);
    if (out.ends_with(kRest)) {
        out.replace(out.size() - kRest.size(), kRest.size(), "}");
    }
    return out;
}

bool has_body(const HttpRequest& request) {
    const auto length = request.header("content-length");
    return request.count_headers("transfer-encoding") > 0 || (length && *length != "0");
}

// "application/json; charset=utf-8", "application/vnd.x+json".
bool is_json_type(std::string_view type) {
    type = type.substr(0, type.find(';'));
    while (type.ends_with(' ')) {
        type.remove_suffix(1);
    }
    static constexpr std::string_view kSuffix = "+json";
    return equal_ignoring_case(type, "application/json") ||
           (type.size() > kSuffix.size() &&
            equal_ignoring_case(type.substr(type.size() - kSuffix.size()), kSuffix));
}

HttpResponse method_not_allowed(const std::vector<Route>& routes) {
    std::string allow;
    const auto add = [&allow](std::string_view name) {
        allow += allow.empty() ? "" : ", ";
        allow += name;
    };
    for (const Route& route : routes) {
        add(to_string(route.method));
        if (route.method == Method::get) {
            add(to_string(Method::head));
        }
    }
    HttpResponse response =
        error_response(405, "method_not_allowed", "this path answers only to " + allow);
    response.headers.emplace_back("Allow", std::move(allow));
    return response;
}

}  // namespace

Router::Router(Api& api) : api_(api), root_(std::make_unique<Node>()) { api_.router = this; }
Router::~Router() = default;

void Router::add(Method method, std::string_view pattern, Handler handler, Access access) {
    listed_.push_back({method, without_dots(pattern), access});
    Node* node = root_.get();
    while (!pattern.empty()) {
        const std::string_view segment = next_segment(pattern);
        if (segment.ends_with(kRest)) {
            node->rest = node->rest ? std::move(node->rest) : std::make_unique<Node>();
            node = node->rest.get();
            continue;
        }
        if (segment.starts_with('{')) {
            if (!node->name) {
                node->name = std::make_unique<Node>();
            }
            node = node->name.get();
            continue;
        }
        Node* child = node->literal(segment);
        if (child == nullptr) {
            node->literals.emplace_back(segment, std::make_unique<Node>());
            child = node->literals.back().second.get();
        }
        node = child;
    }
    node->routes.push_back({method, access, handler});
}

const Router::Node* Router::find(HttpRequest& request) const {
    std::string_view path = request.path();
    const Node* node = root_.get();
    if (!path.starts_with('/')) {
        return nullptr;
    }
    while (!path.empty()) {
        const std::string_view segment = next_segment(path);
        if (const Node* child = node->literal(segment)) {
            node = child;
            continue;
        }
        if (node->rest) {
            const auto* const from = segment.data();
            const std::string_view left(from, segment.size() + path.size());
            auto value = percent_decode(left, false);
            if (!value || value->empty() || value->size() > kRestBytes) {
                return nullptr;
            }
            request.params.push_back(std::move(*value));
            return node->rest.get();
        }
        auto value = node->name ? percent_decode(segment, false) : std::nullopt;
        if (!value || value->empty() || value->size() > kNameBytes || !base::is_utf8(*value)) {
            return nullptr;
        }
        request.params.push_back(std::move(*value));
        node = node->name.get();
    }
    return node->routes.empty() ? nullptr : node;
}

std::optional<HttpResponse> Router::admit(HttpRequest& request) const {
    // Taken for absent, a parameter that can't be read would make the answer to another question.
    if (!percent_decode(request.raw_query(), true)) {
        return error_response(400, "bad_query", "the query has a \"%\" that is no %XX escape");
    }
    const Node* node = find(request);
    if (node == nullptr) {
        return no_such_path();
    }
    const Method wanted = request.method == Method::head ? Method::get : request.method;
    const auto route = std::ranges::find(node->routes, wanted, &Route::method);
    if (route == node->routes.end()) {
        return method_not_allowed(node->routes);
    }
    if (route->access == Access::key) {
        if (auto refused = api_.authenticator.admit(request)) {
            return refused;
        }
    }
    if (!route->reads_body() && has_body(request) &&
        !is_json_type(request.header("content-type").value_or(""))) {
        return error_response(
            415, "unsupported_media_type", "send the body with Content-Type: application/json"
        );
    }
    request.route = &*route;
    return std::nullopt;
}

Router::Reply Router::handle(const HttpRequest& request) const {
    const auto& handler = request.route->handler;
    if (const auto* quick = std::get_if<QuickHandler>(&handler)) {
        return (*quick)(api_, request);
    }
    if (const auto* reads_body = std::get_if<BodyHandler>(&handler)) {
        return reads_body->handler(api_, request);
    }
    return std::get<SlowHandler>(handler)(api_, request);
}

}  // namespace ars::server
