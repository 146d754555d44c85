#include "base/task_group.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include <cassert>

namespace ars::base {

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : executor_(std::move(executor)), emptied_(executor_) {}

TaskGroup::~TaskGroup() { assert(signals_.empty() && "a task group must be joined"); }

void TaskGroup::spawn(Task<void> task) {
    const auto place = signals_.emplace(signals_.end());
    asio::co_spawn(
        executor_,
        std::move(task),
        asio::bind_cancellation_slot(
            place->slot(),
            [this, place](std::exception_ptr error) {
                if (error && !first_error_) {
                    first_error_ = error;
                }
                signals_.erase(place);
                if (signals_.empty()) {
                    emptied_.notify_all();
                }
            }
        )
    );
}

void TaskGroup::cancel_all() {
    // A task may end (and erase its signal) while the signal is emitted.
    for (auto it = signals_.begin(); it != signals_.end();) {
        auto current = it++;
        current->emit(asio::cancellation_type::terminal);
    }
}

Task<void> TaskGroup::join() {
    bool cancelled = false;
    while (!signals_.empty()) {
        try {
            co_await emptied_.wait(Deadline::never());  // the tasks' own deadlines bound this
        } catch (const boost::system::system_error&) {
            cancelled = true;
        }
        if (cancelled) {
            co_await shield_from_cancellation();
            cancel_all();
        }
    }
    if (cancelled) {
        throw boost::system::system_error(asio::error::operation_aborted);
    }
    if (first_error_) {
        std::rethrow_exception(std::exchange(first_error_, nullptr));
    }
}

}  // namespace ars::base
