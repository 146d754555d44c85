// The JSON of runs: the body that starts one, and what is shown of one.
#pragma once

#include "base/fields.hpp"
#include "runtime/runs/run_manager.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace ars::server {

// What a body that starts or resumes a run may hold beside its own keys.
struct RunMeta {
    std::optional<std::string> request_id;
    std::optional<std::vector<std::string>> attachment_file_ids;  // of one that starts a run
};
inline constexpr std::int64_t kThreadIdBytes = 200;  // LMDB keys end at 511 bytes
[[nodiscard]] const base::Fields<RunMeta>& run_meta_fields();
[[nodiscard]] const base::Rule& request_id_rule();
// The one request id of the header Idempotency-Key, of the body and of its `meta`; "" when there is
// none, a refusal when they differ.
[[nodiscard]] std::expected<std::string, HttpResponse> request_id_of(
    const HttpRequest& request,
    const std::optional<std::string>& in_body,
    const std::optional<RunMeta>& meta
);

// POST /api/agent/runs. The request id may stand in the header Idempotency-Key, in `request_id` and
// in `meta.request_id`; two that differ are refused.
[[nodiscard]] std::expected<runs::SubmitRun, HttpResponse> read_run_request(
    const HttpRequest& request
);

[[nodiscard]] boost::json::object run_request_schema();

[[nodiscard]] boost::json::object submitted_to_json(const runs::Submitted& submitted);
[[nodiscard]] boost::json::object run_to_json(
    const store::ReadTxn& txn, const store::RunRecord& run
);
// The answer of /result: output stays empty until the run completed.
[[nodiscard]] boost::json::object outcome_to_json(const runs::RunOutcome& outcome);

// ISO 8601, or null for 0.
[[nodiscard]] boost::json::value time_to_json(std::int64_t ms);

}  // namespace ars::server
