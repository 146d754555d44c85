#include "base/async.hpp"

namespace ars::base {

Task<void> sleep_until(Deadline deadline) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(deadline.at);
    co_await timer.async_wait(asio::use_awaitable);
}

Task<bool> Notifier::wait(Deadline deadline) {
    Waiter waiter{asio::steady_timer(executor_)};
    waiter.timer.expires_at(deadline.at);
    const auto place = waiters_.insert(waiters_.end(), &waiter);
    struct Leave {
        std::list<Waiter*>& list;
        std::list<Waiter*>::iterator place;
        ~Leave() { list.erase(place); }
    } leave{waiters_, place};
    // Ends with operation_aborted when notified or cancelled; the two are told apart below.
    co_await waiter.timer.async_wait(asio::as_tuple(asio::use_awaitable));
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none && !waiter.notified) {
        throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_return waiter.notified;
}

void Notifier::notify_all() {
    for (Waiter* waiter : waiters_) {
        waiter->notified = true;
        waiter->timer.cancel();
    }
}

}  // namespace ars::base
