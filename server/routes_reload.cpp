// /api/system/reload: the same as SIGHUP, with an answer.
#include "server/api.hpp"
#include "server/dto_runs.hpp"
#include "server/http_error.hpp"
#include "server/reloader.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace {

namespace json = boost::json;

json::array list_of(const std::vector<std::string>& names) {
    return json::array(names.begin(), names.end());
}

json::object report_to_json(const ReloadReport& report) {
    return {
        {"status", report.faults.empty() ? "reloaded" : "refused"},
        {"at", time_to_json(report.at_ms)},
        {"faults", list_of(report.faults)},
        {"agents",
         {{"added", list_of(report.agents.added)},
          {"changed", list_of(report.agents.changed)},
          {"removed", list_of(report.agents.removed)}}},
        {"needs_restart", list_of(report.needs_restart)}
    };
}

HttpResponse admins_only() {
    return error_response(403, "admins_only", "only an admin may reload the configuration");
}

base::Task<HttpResponse> reload(Api& api, const HttpRequest& request) {
    if (request.user.role == agents::UserRole::user) {
        co_return admins_only();
    }
    const auto report = co_await api.reloader.reload(request.caller());
    if (!report) {
        co_return error_response(report.error());
    }
    if (report->faults.empty()) {
        co_return json_response(report_to_json(*report));
    }
    co_return error_response(
        422,
        "invalid_config",
        "the configuration has " + std::to_string(report->faults.size()) +
            " fault(s); nothing was changed, and what was there before goes on",
        {{"faults", list_of(report->faults)}}
    );
}

HttpResponse last_reload(Api& api, const HttpRequest& request) {
    if (request.user.role == agents::UserRole::user) {
        return admins_only();
    }
    const auto& last = api.reloader.last();
    return json_response(
        {{"reload", last ? json::value(report_to_json(*last)) : json::value(nullptr)}}
    );
}

}  // namespace

void add_reload_routes(Router& router) {
    router.add(Method::post, "/api/system/reload", reload);
    router.add(Method::get, "/api/system/reload", last_reload);
}

}  // namespace ars::server
