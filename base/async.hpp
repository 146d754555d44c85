// The vocabulary of asynchronous code: Asio awaitables on one I/O thread.
//
// House rules (ARCHITECTURE.md, "Coroutines"): no capturing coroutine lambdas; parameters by value,
// or by reference only to objects that outlive the run; no lock, read transaction or iterator held
// across an await; every await has a deadline. Fan-out only through base/task_group.
#pragma once

#include "base/deadline.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <list>

namespace ars::base {

namespace asio = boost::asio;

template <class T>
using Task = asio::awaitable<T>;

// Sleeps until the deadline. Throws operation_aborted when the coroutine is cancelled.
Task<void> sleep_until(Deadline deadline);

// `co_await shield_from_cancellation();`: the rest of this coroutine (and of those that await it)
// runs to its end even if it was cancelled. For clean-up that must await: killing a process tree,
// committing the last record. Not a Task: awaiting one in a cancelled coroutine throws
// operation_aborted at once, which is also why loops need no check of their own.
[[nodiscard]] inline auto shield_from_cancellation() {
    return asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
}

// A condition for coroutines of one executor: waiters sleep until the next notify_all().
// Not thread-safe: use it on its executor only. It must outlive its waiters.
class Notifier {
  public:
    explicit Notifier(asio::any_io_executor executor) : executor_(std::move(executor)) {}
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;

    // True when notified, false when the deadline passed. Throws operation_aborted on cancellation.
    Task<bool> wait(Deadline deadline);
    void notify_all();
    [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }

  private:
    struct Waiter {
        asio::steady_timer timer;
        bool notified = false;
    };
    asio::any_io_executor executor_;
    std::list<Waiter*> waiters_;
};

}  // namespace ars::base
