// File work that may block, moved off the I/O thread. Results come back to the awaiting executor.
#pragma once

#include "base/async.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <optional>

namespace ars::base {

class Offload {
  public:
    explicit Offload(std::size_t threads) : pool_(threads) {}
    ~Offload() { pool_.join(); }
    Offload(const Offload&) = delete;
    Offload& operator=(const Offload&) = delete;

    // Runs `work()` on a pool thread and returns its value. `work` owns all it touches, because a
    // cancelled caller goes on only after it ended (a system call can't be called back), but must
    // not throw.
    template <class Work>
    Task<std::invoke_result_t<Work>> run(Work work) {
        using Value = std::invoke_result_t<Work>;
        auto initiate = [this](auto handler, Work job) {
            auto guard = asio::make_work_guard(asio::get_associated_executor(handler));
            asio::post(
                pool_,
                [handler = std::move(handler), job = std::move(job), guard = std::move(guard)](
                ) mutable {
                    Value value = job();
                    auto executor = guard.get_executor();
                    asio::post(
                        executor,
                        [handler = std::move(handler), value = std::move(value)]() mutable {
                            std::move(handler)(std::move(value));
                        }
                    );
                }
            );
        };
        co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Value)>(
            std::move(initiate), asio::use_awaitable, std::move(work)
        );
    }

  private:
    asio::thread_pool pool_;
};

}  // namespace ars::base
