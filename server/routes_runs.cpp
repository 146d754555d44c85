// /api/agent/runs: start or resume a run, look at it, follow it, read its result, cancel it.
#include "server/api.hpp"
#include "server/dto_requests.hpp"
#include "server/dto_resume.hpp"
#include "server/dto_runs.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"
#include "server/sse_stream.hpp"

#include <fmt/format.h>

#include <expected>

namespace ars::server {

namespace {

HttpResponse shown_run(const Api& api, const store::RunRecord& run) {
    return api.runs.store().read([&run](const store::ReadTxn& txn) {
        return json_response({{"run", run_to_json(txn, run)}});
    });
}

base::Task<HttpResponse> resume_run(Api& api, const HttpRequest& request) {
    auto wanted = read_resume_request(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto resumed = co_await api.runs.resume(std::move(wanted->resume));
    if (!resumed) {
        co_return error_response(resumed.error());
    }
    boost::json::object body = submitted_to_json(*resumed);
    if (!wanted->not_applied.empty()) {
        body["not_applied"] = std::move(wanted->not_applied);
    }
    HttpResponse response = json_response(body, 202);
    response.headers.emplace_back("Location", "/api/agent/runs/" + resumed->run.id);
    co_return response;
}

base::Task<HttpResponse> start_run(Api& api, const HttpRequest& request) {
    if (is_resume(request)) {
        co_return co_await resume_run(api, request);
    }
    auto wanted = read_run_request(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const std::string thread_id = wanted->thread_id;
    const auto submitted = co_await api.runs.submit(std::move(*wanted));
    if (!submitted) {
        co_return conflict_response(api, submitted.error(), thread_id);
    }
    if (submitted->request.status == store::RequestStatus::rejected) {
        co_return rejected_response(*submitted);
    }
    HttpResponse response = json_response(submitted_to_json(*submitted), 202);
    response.headers.emplace_back(
        "Location",
        submitted->request.status == store::RequestStatus::dispatched
            ? "/api/agent/runs/" + submitted->run.id
            : request_url(submitted->request)
    );
    co_return response;
}

HttpResponse get_run(Api& api, const HttpRequest& request) {
    const auto run = api.runs.find_run(request.user, request.params[0]);
    return run ? shown_run(api, *run) : error_response(run.error());
}

HttpResponse get_result(Api& api, const HttpRequest& request) {
    const auto outcome = api.runs.outcome(request.user, request.params[0]);
    return outcome ? json_response(outcome_to_json(*outcome)) : error_response(outcome.error());
}

base::Task<HttpResponse> cancel_run(Api& api, const HttpRequest& request) {
    const auto run = co_await api.runs.cancel(request.user, request.params[0]);
    co_return run ? shown_run(api, *run) : error_response(run.error());
}

// Where a reader goes on: the header wins over the query; "-1" and nothing mean before the first
// event. What this run never gave is refused: guessing would repeat or skip events.
std::expected<store::EventId, HttpResponse> cursor_of(
    const Api& api, const HttpRequest& request, const store::RunRecord& run
) {
    const auto refuse = [](std::string_view place, std::string_view text, std::string_view why) {
        return std::unexpected(error_response(
            400,
            "bad_cursor",
            fmt::format(
                "{} \"{}\" {}; give the id of the last event you have, or -1 for all",
                place,
                text,
                why
            )
        ));
    };
    const auto header = request.header("last-event-id");
    const bool by_header = header && !header->empty();
    const std::string_view place = by_header ? "Last-Event-ID" : "after_seq";
    const std::string text =
        by_header ? std::string(*header) : request.query("after_seq").value_or("");
    store::EventId cursor;
    if (text.empty() || text == "-1") {
        return cursor;
    }
    if (!store::parse_event_id(text, cursor)) {
        return refuse(place, text, "is no event id, which looks like 1764536400000-0");
    }
    const auto last = api.runs.store().read([&run](const store::ReadTxn& txn) {
        return txn.last_event_id(run.no).value_or(store::EventId{});
    });
    if (cursor > last) {
        return refuse(place, text, "is behind the last event of this run");
    }
    return cursor;
}

HttpResponse follow_run(Api& api, const HttpRequest& request) {
    auto run = api.runs.find_run(request.user, request.params[0]);
    if (!run) {
        return error_response(run.error());
    }
    auto cursor = cursor_of(api, request, *run);
    if (!cursor) {
        return std::move(cursor.error());
    }
    auto verbose = flag_of(request, "verbose", true);
    if (!verbose) {
        return std::move(verbose.error());
    }
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.headers.emplace_back("Cache-Control", "no-cache");
    response.headers.emplace_back("X-Accel-Buffering", "no");
    response.stream = std::make_unique<RunEventStream>(
        api, std::move(*run), *cursor, *verbose ? Detail::full : Detail::brief
    );
    return response;
}

}  // namespace

void add_run_routes(Router& router) {
    router.add(Method::post, "/api/agent/runs", start_run);
    router.add(Method::get, "/api/agent/runs/{id}", get_run);
    router.add(Method::get, "/api/agent/runs/{id}/result", get_result);
    router.add(Method::get, "/api/agent/runs/{id}/events", follow_run);
    router.add(Method::post, "/api/agent/runs/{id}/cancel", cancel_run);
}

}  // namespace ars::server
