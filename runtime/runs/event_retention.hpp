// Drops the events of runs that have been over for long: messages, results and checkpoints stay. It
// works beside the runs in small steps, each a commit that theirs share.
#pragma once

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "runtime/store/store.hpp"

#include <cstddef>
#include <cstdint>

namespace ars::runs {

class EventRetention {
  public:
    // Events are kept for `keep` after the last one of their run. All references outlive this, and
    // stop() comes before its end.
    EventRetention(
        base::asio::any_io_executor executor,
        store::Store& store,
        base::milliseconds keep,
        const base::Log& log
    );
    EventRetention(const EventRetention&) = delete;
    EventRetention& operator=(const EventRetention&) = delete;

    void start();
    base::Task<void> stop();

  private:
    base::Task<void> look_again_and_again();
    // Through all logs, once.
    base::Task<void> expire(std::int64_t before_ms);

    store::Store& store_;
    base::milliseconds keep_;
    const base::Log& log_;
    base::TaskGroup tasks_;
};

}  // namespace ars::runs
