#include "runtime/runs/slots.hpp"

namespace ars::runs {

Slots::Place Slots::try_take() {
    if (taken_ >= size_ || !queue_.empty()) {
        return {};
    }
    ++taken_;
    return Place(this);
}

base::Task<Slots::Place> Slots::take() {
    Place place = try_take();
    if (place) {
        co_return place;
    }
    Waiter waiter{base::Notifier(executor_)};
    const auto seat = queue_.insert(queue_.end(), &waiter);
    struct Leave {
        Slots& slots;
        std::list<Waiter*>::iterator seat;
        Waiter& waiter;
        ~Leave() {
            if (!waiter.granted) {
                slots.queue_.erase(seat);
            }
        }
    } leave{*this, seat, waiter};
    // The place is handed over by give_back(), which counts it as taken already.
    co_await waiter.turn.wait(base::Deadline::never()
    );  // bounded by the time limit of the runs ahead
    co_return Place(this);
}

void Slots::give_back() {
    if (queue_.empty()) {
        --taken_;
        return;
    }
    Waiter* next = queue_.front();
    queue_.pop_front();
    next->granted = true;
    next->turn.notify_all();
}

}  // namespace ars::runs
