// The listening socket and all connections of it: accepts up to the bound, ends what takes too
// long, and stops in order: no new connections, streams end, idle connections close, answers under
// way are completed.
#pragma once

#include "base/async.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "server/api.hpp"
#include "server/router.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ars::server {

struct ListenAddress {
    std::string host;  // an IP address
    std::uint16_t port = 0;
    bool loopback = false;
};
// "127.0.0.1:5050", "[::1]:5050", "localhost:5050"; names are not looked up. Port 0 lets the kernel
// choose.
[[nodiscard]] base::Result<ListenAddress> parse_listen_address(std::string_view text);

class Listener {
  public:
    // Binds and listens. Errors: io "listen_failed" with what to do about a taken port.
    [[nodiscard]] static base::Result<std::unique_ptr<Listener>> open(
        base::asio::any_io_executor executor,
        const ListenAddress& address,
        Api& api,
        const Router& router
    );
    // Takes a socket that already listens.
    [[nodiscard]] static base::Result<std::unique_ptr<Listener>> adopt(
        base::asio::any_io_executor executor, base::Fd socket, Api& api, const Router& router
    );
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::size_t connections() const;

    // Serves until stop(), or until the coroutine is cancelled; returns when every connection is
    // closed.
    base::Task<void> serve();
    // What is not done after `grace` is cut.
    void stop(base::milliseconds grace);

  private:
    struct Impl;
    explicit Listener(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace ars::server
