// The JSON of threads and of what was said in them.
#pragma once

#include "runtime/runs/run_manager.hpp"
#include "server/http_message.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <expected>

namespace ars::server {

// POST /api/chat/thread.
[[nodiscard]] std::expected<runs::NewThread, HttpResponse> read_new_thread(
    const HttpRequest& request
);

[[nodiscard]] boost::json::object thread_to_json(
    const store::ReadTxn& txn, const store::ThreadRecord& thread
);

// User and assistant messages in order, run by run; an assistant's tool calls carry their results.
// The newest `limit` of them; with `at` only what had been said by then.
[[nodiscard]] boost::json::array history_to_json(
    const store::ReadTxn& txn,
    const store::ThreadRecord& thread,
    std::size_t limit,
    const store::CheckpointRecord* at = nullptr
);

// What stands on its table: agent_state (todos, artifacts, subagent_runs), and the interrupts that
// wait for a person.
[[nodiscard]] boost::json::object state_to_json(
    const store::ReadTxn& txn, const store::ThreadRecord& thread
);

}  // namespace ars::server
