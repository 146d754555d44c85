// Messages that wait for their thread, from outside: look-up, cancel, steer, continue, follow; and
// from inside: the next one starts when its thread is free. Everything it answers is committed.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/runs/request_queue.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ars::runs {

struct ThreadQueue {
    std::vector<store::RequestRecord>
        requests;  // queued, in the order of their turn; 4 KiB of each
    QueueState state;
};

// How long a full disk may keep a caller, or a boot, before the log says so; what ends or comes
// later in the thread, and a restart, try again.
inline constexpr std::chrono::seconds kDispatchLimit{60};

class RequestService {
  public:
    // Serves a committed run.
    using Launch = std::function<void(store::RunRecord)>;
    RequestService(
        store::Store& store,
        base::asio::any_io_executor executor,
        const base::Log& log,
        Launch launch
    )
        : store_(store), executor_(std::move(executor)), log_(log), launch_(std::move(launch)) {}
    RequestService(const RequestService&) = delete;
    RequestService& operator=(const RequestService&) = delete;

    // Nothing is started before open() and after close(): a boot's recovery and a shutdown own the
    // runs then.
    void open() { closed_ = false; }
    void close() { closed_ = true; }

    // Another user's request or thread looks missing. A run that never waited is found by its
    // request id too.
    [[nodiscard]] base::Result<store::RequestRecord> find(
        const agents::User& user, const std::string& request_id
    ) const;
    // `agent_slug` empty = the thread's.
    [[nodiscard]] base::Result<ThreadQueue> queue(
        const agents::User& user, const std::string& thread_id, const std::string& agent_slug
    ) const;
    // The thread's latest run when it is not terminal.
    [[nodiscard]] base::Result<std::optional<store::RunRecord>> active_run(
        const agents::User& user, const std::string& thread_id
    ) const;

    // Errors as request_queue.hpp says, not_found, and unavailable "not_accepting".
    base::Task<base::Result<store::RunRecord>> go_on(
        const agents::User& user, std::string thread_id, std::string agent_slug
    );
    base::Task<base::Result<store::RequestRecord>> cancel(
        const agents::User& user, std::string request_id
    );
    base::Task<base::Result<store::RequestRecord>> steer(
        const agents::User& user, std::string request_id
    );

    // The thread is free, or its queue grew: starts its head if it may go on. A full disk is waited
    // for until then.
    base::Task<void> advance(
        store::ThreadNo thread, base::Deadline until = base::Deadline::never()
    );
    // At boot: every thread with a queue, the oldest request first.
    base::Task<void> advance_all();

    // True when the thread's queue may have changed, false when the deadline passed.
    base::Task<bool> wait(store::ThreadNo thread, base::Deadline deadline);
    void notify(store::ThreadNo thread);

  private:
    [[nodiscard]] base::Result<store::ThreadRecord> thread_of(
        const agents::User& user, const std::string& thread_id, const std::string& agent_slug
    ) const;

    [[nodiscard]] bool is_ready(store::ThreadNo thread) const;

    store::Store& store_;
    base::asio::any_io_executor executor_;
    const base::Log& log_;
    Launch launch_;
    bool closed_ = true;
    std::map<store::ThreadNo, std::shared_ptr<base::Notifier>> watched_;
};

}  // namespace ars::runs
