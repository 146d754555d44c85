// /api/agent/requests and /api/agent/thread: messages that wait for their thread, and its queue.
#include "server/api.hpp"
#include "server/dto_requests.hpp"
#include "server/dto_runs.hpp"
#include "server/http_error.hpp"
#include "server/json_body.hpp"
#include "server/request_stream.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace json = boost::json;

namespace {

struct NoFields {};

// These commands have no options: one that is sent would be dropped silently.
std::optional<HttpResponse> refuse_options(const HttpRequest& request) {
    if (request.body.empty()) {
        return std::nullopt;
    }
    auto body = read_body(request, base::Fields<NoFields>{});
    return body ? std::nullopt : std::optional(std::move(body.error()));
}

std::string agent_of(const HttpRequest& request) {
    return request.query("agent_slug").value_or("");
}

HttpResponse get_request(Api& api, const HttpRequest& request) {
    const auto found = api.runs.requests().find(request.user, request.params[0]);
    if (!found) {
        return error_response(found.error());
    }
    return api.runs.store().read([&found](const store::ReadTxn& txn) {
        return json_response({{"request", request_to_json(txn, *found)}});
    });
}

HttpResponse follow_request(Api& api, const HttpRequest& request) {
    auto found = api.runs.requests().find(request.user, request.params[0]);
    if (!found) {
        return error_response(found.error());
    }
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.headers.emplace_back("Cache-Control", "no-cache");
    response.headers.emplace_back("X-Accel-Buffering", "no");
    response.stream = std::make_unique<RequestEventStream>(api, std::move(*found));
    return response;
}

// A conflict names the run that the request became.
HttpResponse refused_request(Api& api, const HttpRequest& request, const base::Error& error) {
    const auto found = api.runs.requests().find(request.user, request.params[0]);
    if (!found || found->status != store::RequestStatus::dispatched) {
        return found ? conflict_response(api, error, found->thread_id) : error_response(error);
    }
    const auto run =
        api.runs.store().read([&](const store::ReadTxn& txn) { return txn.run(found->run); });
    return error_response(
        status_of(error.kind), error.code, error.message, {{"run_id", run ? run->id : ""}}
    );
}

base::Task<HttpResponse> cancel_request(Api& api, const HttpRequest& request) {
    if (auto refused = refuse_options(request)) {
        co_return std::move(*refused);
    }
    const auto cancelled = co_await api.runs.requests().cancel(request.user, request.params[0]);
    if (!cancelled) {
        co_return refused_request(api, request, cancelled.error());
    }
    co_return json_response(
        {{"request_id", cancelled->request_id}, {"status", store::to_string(cancelled->status)}}
    );
}

base::Task<HttpResponse> steer_request(Api& api, const HttpRequest& request) {
    if (auto refused = refuse_options(request)) {
        co_return std::move(*refused);
    }
    const auto steered = co_await api.runs.requests().steer(request.user, request.params[0]);
    if (!steered) {
        co_return refused_request(api, request, steered.error());
    }
    const std::size_t position = api.runs.store().read([&](const store::ReadTxn& txn) {
        return runs::queue_position(txn, *steered);
    });
    co_return json_response(
        {{"request_id", steered->request_id},
         {"thread_id", steered->thread_id},
         {"status", store::to_string(steered->status)},
         {"queue_policy", store::to_string(steered->policy)},
         {"queue_position", position},
         {"request_events_url", request_events_url(*steered)}}
    );
}

HttpResponse get_queue(Api& api, const HttpRequest& request) {
    const auto queue =
        api.runs.requests().queue(request.user, request.params[0], agent_of(request));
    if (!queue) {
        return error_response(queue.error());
    }
    return api.runs.store().read([&queue](const store::ReadTxn& txn) {
        return json_response(queue_to_json(txn, *queue));
    });
}

base::Task<HttpResponse> continue_queue(Api& api, const HttpRequest& request) {
    if (auto refused = refuse_options(request)) {
        co_return std::move(*refused);
    }
    const auto run =
        co_await api.runs.requests().go_on(request.user, request.params[0], agent_of(request));
    if (!run) {
        co_return conflict_response(api, run.error(), request.params[0]);
    }
    co_return json_response(
        {{"status", "dispatched"}, {"request_id", run->request_id}, {"run_id", run->id}}
    );
}

HttpResponse get_active_run(Api& api, const HttpRequest& request) {
    const auto run = api.runs.requests().active_run(request.user, request.params[0]);
    if (!run) {
        return error_response(run.error());
    }
    return api.runs.store().read([&run](const store::ReadTxn& txn) {
        return json_response({{"run", *run ? json::value(run_to_json(txn, **run)) : json::value()}}
        );
    });
}

}  // namespace

void add_request_routes(Router& router) {
    router.add(Method::get, "/api/agent/requests/{id}", get_request);
    router.add(Method::get, "/api/agent/requests/{id}/events", follow_request);
    router.add(Method::post, "/api/agent/requests/{id}/cancel", cancel_request);
    router.add(Method::post, "/api/agent/requests/{id}/steer", steer_request);
    router.add(Method::get, "/api/agent/thread/{id}/requests", get_queue);
    router.add(Method::post, "/api/agent/thread/{id}/requests/continue", continue_queue);
    router.add(Method::get, "/api/agent/thread/{id}/active_run", get_active_run);
}

}  // namespace ars::server
