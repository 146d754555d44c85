// The transactions that several parts of runs/ share: how a run ends, how its state merges, and how
// a commit is retried when the disk is full.
#pragma once

#include "runtime/runs/live_run.hpp"
#include "runtime/store/store.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ars::runs {

// Ends `run` inside a write transaction, or lets it wait for a person: status (a durable cancel
// beats any other), error/interrupt and end events, the parent's update event. Open calls of the
// thread get a result with `open_call_text`, unless it is empty, the run completed or it waits.
// No-op when it already is terminal. The log of a run that waits has its `end`: a cancel adds
// nothing to it.
struct RunEnd {
    store::RunStatus status = store::RunStatus::completed;
    std::string error_type;
    std::string error_message;
};
void write_end(
    store::WriteTxn& txn,
    store::RunRecord& run,
    const RunEnd& end,
    std::string_view open_call_text = {}
);

// A result for each call that will never get a real one: every tool call has exactly one.
[[nodiscard]] std::vector<store::MessageRecord> synthetic_results(
    const std::vector<store::MessageRecord>& history, store::RunNo run, std::string_view text
);

// Merges a tool's state update: subagent_runs by run_id, artifacts each once, everything else by
// key.
void merge_state(boost::json::object& state, const boost::json::object& update);

// True for errors that pass when there is room, a working disk or a free writer's queue again.
[[nodiscard]] bool is_storage_pressure(const base::Error& error);

// How long a full disk may keep a process that is told to stop.
inline constexpr base::milliseconds kLongestCommitPause{1000};

// store.write(), tried again while the disk or the map is full, until the deadline or until the
// process ends: a run never advances on a step that is not committed. `change` may
// run again with what it captured, as the try before left it.
template <class R>
base::Task<base::Result<R>> commit(
    store::Store& store,
    base::Deadline deadline,
    const bool& process_ends,
    std::function<base::Result<R>(store::WriteTxn&)> change
) {
    auto pause = base::milliseconds(100);
    // One for all tries: a step is too large to be copied for each.
    const auto shared =
        std::make_shared<std::function<base::Result<R>(store::WriteTxn&)>>(std::move(change));
    for (;;) {
        std::function<base::Result<R>(store::WriteTxn&)> next_try = [shared](store::WriteTxn& txn) {
            return (*shared)(txn);
        };
        base::Result<R> result = co_await store.write<R>(std::move(next_try));
        if (result || !is_storage_pressure(result.error()) || deadline.passed() || process_ends) {
            co_return result;
        }
        co_await base::sleep_until(base::Deadline::after(pause).earlier(deadline));
        pause = std::min(pause * 2, kLongestCommitPause);
    }
}

}  // namespace ars::runs
