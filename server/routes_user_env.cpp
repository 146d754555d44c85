// /api/user/agent-env: the variables that the caller's runs find in their commands' environment.
// They are always the caller's own: no other user's, whatever the role.
#include "server/api.hpp"
#include "server/dto_user_env.hpp"
#include "server/http_error.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

HttpResponse env_response(const runs::Variables& variables) {
    HttpResponse response = json_response(user_env_to_json(variables));
    response.headers.emplace_back("Cache-Control", "no-store");
    return response;
}

HttpResponse get_env(Api& api, const HttpRequest& request) {
    return env_response(api.runs.store().read([&](const store::ReadTxn& txn) {
        return runs::user_variables(txn, request.user.uid);
    }));
}

base::Task<HttpResponse> put_env(Api& api, const HttpRequest& request) {
    auto wanted = read_user_env(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto stored = co_await api.runs.set_user_variables(request.user, *wanted);
    co_return stored ? env_response(*wanted) : error_response(stored.error());
}

}  // namespace

void add_user_env_routes(Router& router) {
    router.add(Method::get, "/api/user/agent-env", get_env);
    router.add(Method::put, "/api/user/agent-env", put_env);
}

}  // namespace ars::server
