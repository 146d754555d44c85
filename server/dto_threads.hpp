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
[[nodiscard]] boost::json::object new_thread_schema();

// PUT /api/chat/thread/{id}; the thread is the path's.
[[nodiscard]] std::expected<runs::ChangeThread, HttpResponse> read_thread_change(
    const HttpRequest& request
);
[[nodiscard]] boost::json::object thread_change_schema();

[[nodiscard]] boost::json::object thread_to_json(
    const store::ReadTxn& txn, const store::ThreadRecord& thread
);

// User and assistant messages in order; an assistant's tool calls carry their results.
struct HistoryPage {
    boost::json::array messages;
    store::Seq next = 0;  // of the page before this one, as `before`; 0 = there is none
};
// The newest `limit` before that message; with `at` only what had been said by then.
[[nodiscard]] HistoryPage history_page(
    const store::ReadTxn& txn,
    const store::ThreadRecord& thread,
    std::size_t limit,
    store::Seq before = 0,
    const store::CheckpointRecord* at = nullptr
);

// What stands on its table (agent_state), the interrupts that wait for a person, whose sub-agent's
// thread it is, and its newest `messages`.
[[nodiscard]] boost::json::object state_to_json(
    const store::ReadTxn& txn, const store::ThreadRecord& thread, std::size_t messages
);

}  // namespace ars::server
