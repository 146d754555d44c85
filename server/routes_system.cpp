// /api/system and /metrics: is it alive, does it take work, what is it.
#include "base/clock.hpp"
#include "server/api.hpp"
#include "server/http_error.hpp"
#include "server/metrics.hpp"
#include "server/openapi.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace ars::server {

namespace {

HttpResponse health(Api& api, const HttpRequest&) {
    return json_response(
        {{"status", "ok"},
         {"version", api.version},
         {"uptime_seconds", (base::now_ms() - api.started_ms) / 1000}}
    );
}

HttpResponse ready(Api& api, const HttpRequest&) {
    if (!api.runs.accepting()) {
        HttpResponse response = json_response({{"status", "not_ready"}, {"accepting", false}}, 503);
        response.headers.emplace_back("Retry-After", "2");
        return response;
    }
    return json_response({{"status", "ready"}, {"accepting", true}});
}

HttpResponse discovery(Api& api, const HttpRequest&) {
    return json_response(
        {{"name", "ars"},
         {"version", api.version},
         {"api_base", "/api"},
         {"auth",
          {{"required", !api.authenticator.keyless()},
           {"schemes", boost::json::array{"bearer", "x-api-key"}}}},
         {"sandbox", {{"tier", api.sandbox_tier}}},
         {"features",
          {{"subagents", true},
           {"events", "sse"},
           {"queue_policies", boost::json::array{"enqueue", "reject", "steer"}},
           {"knowledge", false},
           {"attachments", false}}}}
    );
}

HttpResponse document(Api& api, const HttpRequest&) {
    if (api.openapi.empty()) {
        api.openapi = boost::json::serialize(openapi_document(api.router->routes(), api.version));
    }
    HttpResponse response;
    response.body = api.openapi;
    return response;
}

HttpResponse metrics(Api& api, const HttpRequest&) {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_text(api);
    return response;
}

}  // namespace

void add_system_routes(Router& router) {
    router.add(Method::get, "/api/system/health", health, Access::open);
    router.add(Method::get, "/api/system/ready", ready, Access::open);
    router.add(Method::get, "/api/system/discovery", discovery, Access::open);
    router.add(Method::get, "/metrics", metrics);
    router.add(Method::get, "/openapi.json", document, Access::open);
}

void add_routes(Router& router) {
    add_agent_routes(router);
    add_backend_routes(router);
    add_reload_routes(router);
    add_run_routes(router);
    add_request_routes(router);
    add_thread_routes(router);
    add_user_env_routes(router);
    add_checkpoint_routes(router);
    add_file_routes(router);
    add_search_routes(router);
    add_project_routes(router);
    add_attachment_routes(router);
    add_artifact_routes(router);
    add_invocation_routes(router);
    add_people_routes(router);
    add_key_routes(router);
    add_system_routes(router);
}

}  // namespace ars::server
