// The JSON of a thread's checkpoints.
#pragma once

#include "runtime/runs/run_manager.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <expected>

namespace ars::server {

// POST /api/chat/thread/{id}/fork; the thread is still to be filled in.
[[nodiscard]] std::expected<runs::ForkThread, HttpResponse> read_fork(const HttpRequest& request);
[[nodiscard]] boost::json::object fork_schema();

// One line of the list: which step of which run, and the state at it.
[[nodiscard]] boost::json::object checkpoint_to_json(
    const store::ReadTxn& txn, const store::CheckpointRecord& checkpoint
);

}  // namespace ars::server
