#include "runtime/runs/event_retention.hpp"

#include "base/clock.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>

namespace ars::runs {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kScan = 1000;     // logs looked at before others have their turn
constexpr std::size_t kErase = 500;     // events erased in one transaction
constexpr auto kShortestPause = 100ms;  // between two rounds: a tenth of the retention, within
constexpr auto kLongestPause = 600s;    // these

}  // namespace

EventRetention::EventRetention(
    base::asio::any_io_executor executor,
    store::Store& store,
    base::milliseconds keep,
    const base::Log& log
)
    : store_(store), keep_(keep), log_(log), tasks_(std::move(executor)) {}

void EventRetention::start() { tasks_.spawn(look_again_and_again()); }

base::Task<void> EventRetention::stop() {
    co_await base::shield_from_cancellation();
    tasks_.cancel_all();
    try {
        co_await tasks_.join();
    } catch (const boost::system::system_error&) {
        // It was told to stop.
    }
}

base::Task<void> EventRetention::look_again_and_again() {
    const auto pause = std::clamp<base::milliseconds>(keep_ / 10, kShortestPause, kLongestPause);
    for (;;) {
        try {
            co_await expire(base::now_ms() - keep_.count());
        } catch (const boost::system::system_error&) {
            throw;  // cancelled
        } catch (const std::exception& error) {
            log_.error("event_retention", {{"reason", error.what()}});
        }
        co_await base::sleep_until(base::Deadline::after(pause));
    }
}

base::Task<void> EventRetention::expire(std::int64_t before_ms) {
    std::size_t expired = 0;
    store::RunNo from = 0;
    do {
        const auto scan = store_.read([&](const store::ReadTxn& txn) {
            return txn.old_logs(from, before_ms, kScan);
        });
        for (const store::RunNo run : scan.old) {
            for (bool done = false; !done;) {
                std::function<base::Result<bool>(store::WriteTxn&)> change =
                    [run](store::WriteTxn& txn) -> base::Result<bool> {
                    return txn.expire_log(run, kErase);
                };
                const auto written = co_await store_.write<bool>(std::move(change));
                if (!written) {
                    // A full disk, most likely: with the next round, perhaps.
                    log_.warning("event_retention", {{"reason", written.error().message}});
                    co_return;
                }
                done = *written;
            }
            ++expired;
        }
        from = scan.next;
        co_await base::asio::post(base::asio::use_awaitable);
    } while (from != 0);
    if (expired != 0) {
        log_.info("event_logs_expired", {{"runs", expired}});
    }
}

}  // namespace ars::runs
