// Structured fan-out: a group owns its coroutines, and nobody leaves before they all ended.
// (awaitable_operators' && throws multiple_exceptions past a catch of the real one: not used.)
#pragma once

#include "base/async.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <exception>
#include <list>

namespace ars::base {

class TaskGroup {
  public:
    explicit TaskGroup(asio::any_io_executor executor);
    TaskGroup(const TaskGroup&) = delete;
    TaskGroup& operator=(const TaskGroup&) = delete;
    // Precondition: empty, that is join() returned or nothing was spawned.
    ~TaskGroup();

    // Starts `task` on the group's executor. The first exception of any task is kept for join().
    void spawn(Task<void> task);

    // Asks every task to stop. They still have to be joined. Not for a task of this very group that
    // has not suspended yet: Boost 1.81's co_spawn then throws out of io_context::run().
    void cancel_all();

    // Waits for all tasks, then rethrows the first exception. When the caller is cancelled the
    // tasks are cancelled too, still awaited, and operation_aborted is thrown last.
    Task<void> join();

    [[nodiscard]] std::size_t size() const { return signals_.size(); }

  private:
    asio::any_io_executor executor_;
    std::list<asio::cancellation_signal> signals_;
    Notifier emptied_;
    std::exception_ptr first_error_;
};

}  // namespace ars::base
