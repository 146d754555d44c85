// The JSON of requests, that is of messages and what became of them, and of the queue they wait in.
#pragma once

#include "runtime/runs/run_manager.hpp"
#include "server/api.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace ars::server {

// Ids in paths are percent-encoded: a request id is whatever its client made up.
[[nodiscard]] std::string run_events_url(const store::RunRecord& run);
[[nodiscard]] std::string request_url(const store::RequestRecord& request);
[[nodiscard]] std::string request_events_url(const store::RequestRecord& request);

[[nodiscard]] boost::json::object request_to_json(
    const store::ReadTxn& txn, const store::RequestRecord& request
);
[[nodiscard]] boost::json::object queue_to_json(
    const store::ReadTxn& txn, const runs::ThreadQueue& queue
);

// 409 for a message that its policy `reject` kept out of the queue: "run_busy" or "queue_paused",
// with the run in its way.
[[nodiscard]] HttpResponse rejected_response(const runs::Submitted& submitted);
// `error` as a response; a conflict with a run of the thread names that run.
[[nodiscard]] HttpResponse conflict_response(
    const Api& api, const base::Error& error, const std::string& thread_id
);

}  // namespace ars::server
