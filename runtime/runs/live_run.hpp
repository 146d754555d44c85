// One run while it is being served: its committed record, its thread's history, and the ways to
// reach it. Touched only on the manager's executor.
#pragma once

#include "base/async.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/runs/agent_snapshots.hpp"
#include "runtime/runs/attachment_prompt.hpp"
#include "runtime/runs/slots.hpp"
#include "runtime/runs/user_env.hpp"
#include "runtime/store/records.hpp"
#include "runtime/tools/environment.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ars::runs {

enum class StopReason : std::uint8_t {
    none,
    cancel,    // somebody asked; already durable as cancel_requested
    shutdown,  // the process ends: nothing is recorded, the next boot takes over
};

struct LiveRun {
    LiveRun(base::asio::any_io_executor executor, store::RunRecord committed, agents::User owner)
        : record(std::move(committed)), user(std::move(owner)), changed(std::move(executor)) {}

    store::RunRecord record;  // as last committed
    agents::User user;
    bool has_user = true;  // false: deleted since the run was asked for
    ContextPtr context;    // set before its loop begins

    std::vector<store::MessageRecord> history;  // of the thread, oldest first, as committed
    boost::json::object state;                  // todos, artifacts, subagent_runs
    std::vector<PromptAttachment> attachments;  // of the conversation, oldest first
    std::shared_ptr<const UserEnv> user_env;
    std::shared_ptr<tools::Environment> environment;
    std::vector<agents::AgentPtr>
        subagents;  // those its tools may start, as they were at its start

    bool taken_over = false;            // an earlier process began it
    std::uint32_t busy_calls = 0;       // tools at work that a stop gives time to end
    std::uint32_t malformed_turns = 0;  // in a row, with only unreadable calls
    base::Deadline deadline = base::Deadline::never();
    std::chrono::steady_clock::time_point serving_since = std::chrono::steady_clock::now();

    StopReason stop = StopReason::none;
    bool process_ends = false;  // whatever it was stopped for: a full disk is not waited for
    base::asio::cancellation_signal cancel;
    base::Notifier changed;  // something of the run was committed
    Slots::Place slot;
};

using LiveRunPtr = std::shared_ptr<LiveRun>;

}  // namespace ars::runs
