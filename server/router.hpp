// From a request to the function that answers it. It also decides what must be decided for every
// route alike: 404, 405 with Allow, who is calling, and whether a body is JSON.
#pragma once

#include "base/async.hpp"
#include "server/http_message.hpp"

#include <boost/json/fwd.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ars::server {

struct Api;

// Routes that only read answer at once; those that must wait are coroutines. The request outlives
// both.
using QuickHandler = HttpResponse (*)(Api& api, const HttpRequest& request);
using SlowHandler = base::Task<HttpResponse> (*)(Api& api, const HttpRequest& request);

// Those that take a body of any type and read it piece by piece from request.peer; `body_bytes` is
// its bound.
struct BodyHandler {
    SlowHandler handler;
    std::uint64_t body_bytes;
};
using Handler = std::variant<QuickHandler, SlowHandler, BodyHandler>;

enum class Access : std::uint8_t { key, open };

struct Route {
    Method method;
    Access access;
    Handler handler;

    [[nodiscard]] const BodyHandler* reads_body() const {
        return std::get_if<BodyHandler>(&handler);
    }
};

// A route as it was added.
struct ListedRoute {
    Method method;
    std::string pattern;
    Access access;
};

class Router {
  public:
    explicit Router(Api& api);  // makes itself the api's router
    ~Router();
    Router(const Router&) = delete;
    Router& operator=(const Router&) = delete;

    // `pattern` is a path whose segments may be "{name}": "/api/agent/runs/{id}". A literal segment
    // wins over a name. The last may be "{name...}": all that is left, slashes and any bytes.
    void add(Method method, std::string_view pattern, Handler handler, Access access = Access::key);

    // All of them, in the order in which they were added.
    [[nodiscard]] const std::vector<ListedRoute>& routes() const { return listed_; }

    // Called when the head of a request is known, before its body is read: finds the route and the
    // user, or refuses.
    [[nodiscard]] std::optional<HttpResponse> admit(HttpRequest& request) const;
    // Answers an admitted request; the task may throw, as may this.
    using Reply = std::variant<HttpResponse, base::Task<HttpResponse>>;
    [[nodiscard]] Reply handle(const HttpRequest& request) const;

  private:
    struct Node;
    [[nodiscard]] const Node* find(HttpRequest& request) const;

    Api& api_;
    std::unique_ptr<Node> root_;
    std::vector<ListedRoute> listed_;
};

}  // namespace ars::server
