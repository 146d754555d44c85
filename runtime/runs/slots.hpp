// A bounded number of places with a first-come queue. Roots and children each have their own, so
// that a child never waits for a root and nothing can deadlock.
#pragma once

#include "base/async.hpp"

#include <cstddef>
#include <cstdint>
#include <list>

namespace ars::runs {

class Slots {
  public:
    Slots(base::asio::any_io_executor executor, std::uint32_t size)
        : executor_(std::move(executor)), size_(size) {}
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    // A place held; gives it back when it goes away. Must not outlive the Slots.
    class Place {
      public:
        Place() = default;
        explicit Place(Slots* slots) : slots_(slots) {}
        Place(Place&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
        Place& operator=(Place&& other) noexcept {
            std::swap(slots_, other.slots_);
            return *this;
        }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() {
            if (slots_ != nullptr) {
                slots_->give_back();
            }
        }
        [[nodiscard]] explicit operator bool() const { return slots_ != nullptr; }

      private:
        Slots* slots_ = nullptr;
    };

    // At once or not at all; nobody who already waits is overtaken.
    [[nodiscard]] Place try_take();
    // Waits for its turn; the run's cancellation ends the wait (operation_aborted).
    base::Task<Place> take();

    [[nodiscard]] std::size_t taken() const { return taken_; }
    [[nodiscard]] std::size_t waiting() const { return queue_.size(); }

  private:
    void give_back();

    struct Waiter {
        base::Notifier turn;
        bool granted = false;
    };
    base::asio::any_io_executor executor_;
    std::uint32_t size_;
    std::size_t taken_ = 0;
    std::list<Waiter*> queue_;
};

}  // namespace ars::runs
