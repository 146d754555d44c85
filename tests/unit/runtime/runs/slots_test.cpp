#include "runtime/runs/slots.hpp"

#include "base/task_group.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <vector>

namespace ars::runs {
namespace {

using namespace std::chrono_literals;

base::Task<void> hold(Slots* slots, int name, std::vector<int>* order, std::size_t* most) {
    const Slots::Place place = co_await slots->take();
    order->push_back(name);
    *most = std::max(*most, slots->taken());
    co_await base::sleep_until(base::Deadline::after(2ms));
}

base::Task<void> five_on_two(
    base::asio::any_io_executor executor, Slots* slots, std::vector<int>* order, std::size_t* most
) {
    base::TaskGroup group(executor);
    for (int i = 0; i < 5; ++i) {
        group.spawn(hold(slots, i, order, most));
    }
    co_await group.join();
}

TEST(Slots, ServesInOrderAndNeverMoreThanItsSize) {
    base::asio::io_context io(1);
    Slots slots(io.get_executor(), 2);
    std::vector<int> order;
    std::size_t most = 0;
    base::asio::co_spawn(
        io, five_on_two(io.get_executor(), &slots, &order, &most), [](std::exception_ptr) {}
    );
    io.run();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_EQ(most, 2U);
    EXPECT_EQ(slots.taken(), 0U);
}

base::Task<void> give_up_waiting(base::asio::any_io_executor executor, Slots* slots, bool* threw) {
    std::vector<int> order;
    std::size_t most = 0;
    Slots::Place held = slots->try_take();
    base::TaskGroup group(executor);
    group.spawn(hold(slots, 1, &order, &most));
    co_await base::sleep_until(base::Deadline::after(2ms));
    EXPECT_EQ(slots->waiting(), 1U);
    group.cancel_all();
    try {
        co_await group.join();
    } catch (const boost::system::system_error&) {
        *threw = true;
    }
    EXPECT_EQ(slots->waiting(), 0U);
}

TEST(Slots, ACancelledWaiterLeavesTheQueueAndNoPlaceIsLost) {
    base::asio::io_context io(1);
    Slots slots(io.get_executor(), 1);
    bool threw = false;
    base::asio::co_spawn(
        io, give_up_waiting(io.get_executor(), &slots, &threw), [](std::exception_ptr) {}
    );
    io.run();
    EXPECT_TRUE(threw);
    EXPECT_EQ(slots.taken(), 0U);
    EXPECT_TRUE(slots.try_take());
}

}  // namespace
}  // namespace ars::runs
