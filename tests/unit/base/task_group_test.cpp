#include "base/task_group.hpp"

#include "base/offload.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <stdexcept>

namespace ars::base {
namespace {

using namespace std::chrono_literals;

// Runs a coroutine on a fresh io_context to its end and rethrows what it threw.
template <class F>
void run(F make) {
    asio::io_context io(1);
    std::exception_ptr error;
    asio::co_spawn(io, make(io.get_executor()), [&](std::exception_ptr e) { error = e; });
    io.run();
    if (error) {
        std::rethrow_exception(error);
    }
}

Task<void> add_later(int* sum, int value, milliseconds delay) {
    co_await sleep_until(Deadline::after(delay));
    *sum += value;
}

Task<void> fail_later() {
    co_await sleep_until(Deadline::after(1ms));
    throw std::runtime_error("task failed");
}

Task<void> clean_up_slowly(bool* cleaned) {
    try {
        co_await sleep_until(Deadline::after(60s));
    } catch (const boost::system::system_error&) {
    }
    co_await shield_from_cancellation();
    co_await sleep_until(Deadline::after(20ms));
    *cleaned = true;
}

Task<void> join_two(asio::any_io_executor executor, int* sum) {
    TaskGroup group(executor);
    group.spawn(add_later(sum, 1, 5ms));
    group.spawn(add_later(sum, 2, 1ms));
    co_await group.join();
}

TEST(TaskGroup, JoinWaitsForAllTasks) {
    int sum = 0;
    run([&](auto executor) { return join_two(executor, &sum); });
    EXPECT_EQ(sum, 3);
}

Task<void> join_failing(asio::any_io_executor executor, int* sum) {
    TaskGroup group(executor);
    group.spawn(fail_later());
    group.spawn(add_later(sum, 7, 10ms));
    co_await group.join();
}

TEST(TaskGroup, JoinRethrowsTheFirstErrorAfterAllEnded) {
    int sum = 0;
    EXPECT_THROW(
        run([&](auto executor) { return join_failing(executor, &sum); }), std::runtime_error
    );
    EXPECT_EQ(sum, 7);
}

Task<void> join_slow(asio::any_io_executor executor, bool* cleaned) {
    TaskGroup group(executor);
    group.spawn(clean_up_slowly(cleaned));
    co_await group.join();
}

Task<void> cancel_the_joiner(asio::any_io_executor executor, bool* cleaned) {
    TaskGroup outer(executor);
    outer.spawn(join_slow(executor, cleaned));
    co_await sleep_until(Deadline::after(5ms));
    outer.cancel_all();
    co_await outer.join();
}

TEST(TaskGroup, CancellingTheJoinerCancelsTasksAndWaitsForTheirCleanUp) {
    bool cleaned = false;
    EXPECT_THROW(
        run([&](auto executor) { return cancel_the_joiner(executor, &cleaned); }),
        boost::system::system_error
    );
    EXPECT_TRUE(cleaned);
}

Task<void> wait_on(Notifier* notifier, Deadline deadline, bool* notified) {
    *notified = co_await notifier->wait(deadline);
}

Task<void> notify_one_of_two(asio::any_io_executor executor, bool* first, bool* second) {
    Notifier notifier(executor);
    TaskGroup group(executor);
    group.spawn(wait_on(&notifier, Deadline::after(1ms), first));
    group.spawn(wait_on(&notifier, Deadline::after(10s), second));
    co_await sleep_until(Deadline::after(20ms));
    notifier.notify_all();
    co_await group.join();
}

TEST(Notifier, TellsNotificationFromDeadline) {
    bool first = true;
    bool second = false;
    run([&](auto executor) { return notify_one_of_two(executor, &first, &second); });
    EXPECT_FALSE(first);
    EXPECT_TRUE(second);
}

int forty_two() { return 42; }

Task<void> offload_one(Offload* pool, int* out) { *out = co_await pool->run(&forty_two); }

TEST(Offload, BringsTheValueBack) {
    Offload pool(1);
    int value = 0;
    run([&](auto) { return offload_one(&pool, &value); });
    EXPECT_EQ(value, 42);
}

}  // namespace
}  // namespace ars::base
