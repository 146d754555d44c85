// /api/agent-invocation/agent-call: one call of an agent, answered when its run has ended.
#include "server/api.hpp"
#include "server/dto_invocation.hpp"
#include "server/dto_requests.hpp"
#include "server/dto_runs.hpp"
#include "server/http_error.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

// How long a call whose client hung up may go unnoticed; its run goes on anyway.
constexpr auto kLookAtClient = std::chrono::seconds(5);

HttpResponse timed_out(const Api& api, const store::RunRecord& run) {
    boost::json::object more;
    more["run"] =
        api.runs.store().read([&run](const store::ReadTxn& txn) { return run_to_json(txn, run); });
    return error_response(
        504,
        "wait_timeout",
        "the run goes on; its result will be at /api/agent/runs/" + run.id + "/result",
        std::move(more)
    );
}

std::expected<runs::RunOutcome, HttpResponse> outcome_of(
    const Api& api, const HttpRequest& request, const std::string& run_id
) {
    auto outcome = api.runs.outcome(request.user, run_id);
    if (!outcome) {
        return std::unexpected(error_response(outcome.error()));
    }
    return std::move(*outcome);
}

bool is_at_rest(const store::RunRecord& run) {
    return store::is_terminal(run.status) || run.status == store::RunStatus::interrupted;
}

// What of a submission is kept while its run is waited for: many are.
struct Called {
    store::RunNo run = 0;
    std::string run_id;
    bool just_made = false;
};

base::Task<std::expected<Called, HttpResponse>> submit_call(Api& api, runs::SubmitRun call) {
    const std::string thread_id = call.thread_id;
    const auto submitted = co_await api.runs.submit(std::move(call));
    if (!submitted) {
        co_return std::unexpected(conflict_response(api, submitted.error(), thread_id));
    }
    if (submitted->request.status == store::RequestStatus::rejected) {
        co_return std::unexpected(rejected_response(*submitted));
    }
    if (submitted->run.no == 0) {  // it waits in the thread's queue
        HttpResponse queued = json_response(submitted_to_json(*submitted), 202);
        queued.headers.emplace_back("Location", request_url(submitted->request));
        co_return std::unexpected(std::move(queued));
    }
    co_return Called{submitted->run.no, submitted->run.id, !submitted->replayed};
}

// Until the run is at rest: over, or waiting for a person. A run that was just made cannot be.
base::Task<std::expected<runs::RunOutcome, HttpResponse>> wait_for_result(
    Api& api, const HttpRequest& request, const Called& called, base::Deadline deadline
) {
    for (bool wait_first = called.just_made;; wait_first = true) {
        if (wait_first) {
            co_await api.runs.wait_for_rest(
                called.run, deadline.earlier(base::Deadline::after(kLookAtClient))
            );
        }
        auto outcome = outcome_of(api, request, called.run_id);
        if (!outcome || is_at_rest(outcome->run)) {
            co_return outcome;
        }
        if (deadline.passed()) {
            co_return std::unexpected(timed_out(api, outcome->run));
        }
        if (request.peer != nullptr && request.peer->has_left()) {
            throw boost::system::system_error(base::asio::error::operation_aborted);
        }
    }
}

base::Task<HttpResponse> call_agent(Api& api, const HttpRequest& request) {
    auto call = read_agent_call(request);
    if (!call) {
        co_return std::move(call.error());
    }
    const auto deadline = base::Deadline::after(call->wait.value_or(api.limits.blocking_wait));
    const bool is_async = call->async;
    auto meta = std::move(call->meta);
    auto called = co_await submit_call(api, std::move(call->submit));
    if (!called) {
        co_return std::move(called.error());
    }
    auto outcome = is_async ? outcome_of(api, request, called->run_id)
                            : co_await wait_for_result(api, request, *called, deadline);
    if (!outcome) {
        co_return std::move(outcome.error());
    }
    boost::json::object body = call_to_json(*outcome);
    body["agent_call_meta"] = std::move(meta);
    HttpResponse response = json_response(body, is_async ? 202 : 200);
    response.headers.emplace_back("Location", "/api/agent/runs/" + called->run_id);
    co_return response;
}

HttpResponse call_result(Api& api, const HttpRequest& request) {
    auto query = read_call_result_query(request);
    if (!query) {
        return std::move(query.error());
    }
    const auto outcome = api.runs.outcome(request.user, query->run_id);
    if (!outcome) {
        return error_response(outcome.error());
    }
    if (!query->agent_slug.empty() && query->agent_slug != outcome->run.agent_slug) {
        return error_response(
            409, "agent_mismatch", "the run is of the agent \"" + outcome->run.agent_slug + "\""
        );
    }
    return json_response(call_to_json(*outcome));
}

}  // namespace

void add_invocation_routes(Router& router) {
    router.add(Method::post, "/api/agent-invocation/agent-call/runs", call_agent);
    router.add(Method::post, "/api/agent-invocation/agent-call/runs/result", call_result);
}

}  // namespace ars::server
