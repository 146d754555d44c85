// The JSON of runs: the body that starts one, and what is shown of one.
#pragma once

#include "runtime/runs/run_manager.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <expected>
#include <string>

namespace ars::server {

enum class QueuePolicy : std::uint8_t { enqueue, reject };

struct RunRequest {
    runs::SubmitRun submit;
    QueuePolicy queue_policy = QueuePolicy::enqueue;
};

// POST /api/agent/runs. The request id may stand in the header Idempotency-Key, in `request_id` and
// in `meta.request_id`; two that differ are refused.
[[nodiscard]] std::expected<RunRequest, HttpResponse> read_run_request(const HttpRequest& request);

[[nodiscard]] boost::json::object submitted_to_json(
    const runs::Submitted& submitted, QueuePolicy queue_policy
);
[[nodiscard]] boost::json::object run_to_json(
    const store::ReadTxn& txn, const store::RunRecord& run
);
// The answer of /result: output stays empty until the run completed.
[[nodiscard]] boost::json::object outcome_to_json(const runs::RunOutcome& outcome);

// ISO 8601, or null for 0.
[[nodiscard]] boost::json::value time_to_json(std::int64_t ms);

}  // namespace ars::server
