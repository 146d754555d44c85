#include "server/event_pump.hpp"

#include <boost/asio/post.hpp>

#include <exception>

namespace ars::server {

namespace {

constexpr std::size_t kKeptBytes = 1024;  // of the buffer of a stream that waits

}  // namespace

base::Task<void> EventPump::run(StreamWriter& writer) {
    std::string out;
    auto heartbeat = base::Deadline::after(api_.limits.heartbeat);
    for (;;) {
        const bool over = gather_or_fail(out);
        if (!out.empty()) {
            co_await writer.write(out);
            heartbeat = base::Deadline::after(api_.limits.heartbeat);
            out.clear();
            if (!over) {
                // A long replay lets others run between its slices.
                co_await base::asio::post(base::asio::use_awaitable);
                continue;
            }
        }
        if (over) {
            co_return;
        }
        if (out.capacity() > kKeptBytes) {
            std::string().swap(out);
        }
        const bool woken = co_await wait(heartbeat);
        if (!woken) {
            co_await writer.write(": heartbeat\n\n");
            heartbeat = base::Deadline::after(api_.limits.heartbeat);
        }
    }
}

bool EventPump::gather_or_fail(std::string& out) {
    try {
        return api_.runs.store().read([this, &out](const store::ReadTxn& txn) {
            return gather(txn, out);
        });
    } catch (const std::exception& error) {
        api_.log.error("event_stream", {{"reason", error.what()}});
        out.clear();
        append_failure(out);
        return true;
    }
}

}  // namespace ars::server
