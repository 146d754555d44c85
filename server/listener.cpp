#include "server/listener.hpp"

#include "base/task_group.hpp"
#include "server/http_error.hpp"
#include "server/http_session.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <list>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::server {

namespace asio = base::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr int kBacklog = 4096;
constexpr auto kLongestTick = std::chrono::milliseconds(1000);
constexpr auto kShortestTick = std::chrono::milliseconds(5);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // when descriptors ran out

// Out of descriptors or memory: waiting helps. Anything else ended only that one connection.
bool is_shortage(const error_code& ec) {
    return ec == asio::error::no_descriptors || ec == asio::error::no_memory ||
           ec == asio::error::no_buffer_space || ec.value() == ENFILE;
}

// Half-open peers are found by the kernel: bytes that stay unacknowledged this long break the
// connection.
void tune(tcp::socket& socket, base::milliseconds write_timeout) {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    const auto unacknowledged = static_cast<unsigned>(write_timeout.count());
    ::setsockopt(
        socket.native_handle(),
        IPPROTO_TCP,
        TCP_USER_TIMEOUT,
        &unacknowledged,
        sizeof unacknowledged
    );
    // The kernel would take megabytes for a reader that takes none.
    ::setsockopt(
        socket.native_handle(),
        IPPROTO_TCP,
        TCP_NOTSENT_LOWAT,
        &base::limits::kSocketUnsent,
        sizeof base::limits::kSocketUnsent
    );
}

base::Error listen_error(const ListenAddress& address, int sys_errno) {
    std::string hint;
    if (sys_errno == EADDRINUSE) {
        hint = "; another process has this port: stop it or choose another with --listen";
    } else if (sys_errno == EACCES) {
        hint = "; ports below 1024 need a privilege: choose a higher one with --listen";
    } else if (sys_errno == EADDRNOTAVAIL) {
        hint = "; no interface of this machine has that address";
    }
    base::Error error = base::errno_error(
        "listen_failed", fmt::format("listen on {}:{}", address.host, address.port), sys_errno
    );
    error.message += hint;
    return error;
}

}  // namespace

base::Result<ListenAddress> parse_listen_address(std::string_view text) {
    const auto refuse = [&text](std::string_view why) {
        return base::fail(
            base::ErrorKind::invalid,
            "bad_listen_address",
            fmt::format("\"{}\": {}; write it like 127.0.0.1:5050 or [::1]:5050", text, why)
        );
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return refuse("the port is missing");
    }
    const std::string_view digits = text.substr(colon + 1);
    std::string_view host = text.substr(0, colon);
    ListenAddress address;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
    if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) {
        return refuse("the port is not a number from 0 to 65535");
    }
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return refuse("an IPv6 address stands in brackets");
    }
    if (host == "localhost") {
        host = "127.0.0.1";
    }
    error_code ec;
    const auto ip = asio::ip::make_address(host, ec);
    if (ec) {
        return refuse("the host is not an IP address");
    }
    address.host = ip.to_string();
    address.loopback = ip.is_loopback();
    return address;
}

struct Listener::Impl {
    Impl(asio::any_io_executor executor, Api& api_in, const Router& router_in)
        : acceptor(executor),
          api(api_in),
          router(router_in),
          connections(executor),
          helpers(executor) {}

    base::Task<void> accept_all();
    base::Task<void> host(std::list<HttpSession>::iterator session);
    base::Task<void> tick();
    base::Task<void> cut_after(base::Deadline grace);
    void admit(tcp::socket socket);

    tcp::acceptor acceptor;
    Api& api;
    const Router& router;
    std::list<HttpSession> sessions;
    base::TaskGroup connections;  // one task each session
    base::TaskGroup helpers;      // ticker, end of the grace period
    bool stopping = false;
};

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() = default;

base::Result<std::unique_ptr<Listener>> Listener::open(
    asio::any_io_executor executor, const ListenAddress& address, Api& api, const Router& router
) {
    auto impl = std::make_unique<Impl>(std::move(executor), api, router);
    const tcp::endpoint endpoint(asio::ip::make_address(address.host), address.port);
    error_code ec;
    impl->acceptor.open(endpoint.protocol(), ec);
    if (!ec) {
        impl->acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    }
    if (!ec) {
        impl->acceptor.bind(endpoint, ec);
    }
    if (!ec) {
        impl->acceptor.listen(kBacklog, ec);
    }
    if (ec) {
        return std::unexpected(listen_error(address, ec.value()));
    }
    return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

base::Result<std::unique_ptr<Listener>> Listener::adopt(
    asio::any_io_executor executor, base::Fd socket, Api& api, const Router& router
) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
        return base::fail_errno("listen_failed", "getsockname of the given socket", errno);
    }
    auto impl = std::make_unique<Impl>(std::move(executor), api, router);
    error_code ec;
    impl->acceptor.assign(name.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), socket.release(), ec);
    if (ec) {
        return base::fail_errno("listen_failed", "taking over the given socket", ec.value());
    }
    return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

std::uint16_t Listener::port() const {
    error_code ec;
    return impl_->acceptor.local_endpoint(ec).port();
}

std::size_t Listener::connections() const { return impl_->sessions.size(); }

base::Task<void> Listener::serve() {
    Impl& impl = *impl_;
    impl.helpers.spawn(impl.tick());
    std::exception_ptr error;
    try {
        co_await impl.accept_all();
        co_await impl.connections.join();
    } catch (...) {
        error = std::current_exception();
    }
    co_await base::shield_from_cancellation();
    impl.connections.cancel_all();
    co_await impl.connections.join();
    impl.helpers.cancel_all();
    try {
        co_await impl.helpers.join();
    } catch (const boost::system::system_error&) {
        // The ticker was told to stop.
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

void Listener::stop(base::milliseconds grace) {
    if (impl_->stopping) {
        return;
    }
    impl_->stopping = true;
    error_code ignored;
    impl_->acceptor.close(ignored);
    for (HttpSession& session : impl_->sessions) {
        session.stop();
    }
    impl_->helpers.spawn(impl_->cut_after(base::Deadline::after(grace)));
}

base::Task<void> Listener::Impl::accept_all() {
    while (!stopping) {
        auto [ec, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
        if (!ec) {
            admit(std::move(socket));
        } else if (is_shortage(ec)) {
            api.log.warning("accept_failed", {{"reason", ec.message()}});
            co_await base::sleep_until(base::Deadline::after(kAcceptPause));
        } else if (ec == asio::error::operation_aborted && !stopping) {
            throw boost::system::system_error(ec);
        }
    }
}

void Listener::Impl::admit(tcp::socket socket) {
    tune(socket, api.limits.write_timeout);
    if (sessions.size() >= api.limits.connections) {
        ++api.stats.refused_connections;
        const HttpResponse full = error_response(
            503, "too_many_connections", "this server has as many connections as it serves"
        );
        std::string bytes;
        append_head(bytes, full, false, false);
        bytes += full.body;
        error_code ignored;
        socket.write_some(asio::buffer(bytes), ignored);
        socket.shutdown(tcp::socket::shutdown_send, ignored);
        return;
    }
    sessions.emplace_front(std::move(socket), router, api.limits, api.stats, api.log);
    connections.spawn(host(sessions.begin()));
}

base::Task<void> Listener::Impl::host(std::list<HttpSession>::iterator session) {
    struct Leave {
        std::list<HttpSession>& list;
        std::list<HttpSession>::iterator place;
        ~Leave() { list.erase(place); }
    } leave{sessions, session};
    try {
        co_await session->run();
    } catch (const std::exception& error) {
        api.log.error("http_session_failure", {{"reason", error.what()}});
    }
}

// One timer for all deadlines of all sessions; a deadline is late by one tick at most.
base::Task<void> Listener::Impl::tick() {
    const auto shortest =
        std::min({api.limits.read_timeout, api.limits.idle_timeout, api.limits.write_timeout});
    const base::milliseconds period =
        std::clamp<base::milliseconds>(shortest / 4, kShortestTick, kLongestTick);
    for (;;) {
        co_await base::sleep_until(base::Deadline::after(period));
        const auto now = steady_clock::now();
        for (HttpSession& session : sessions) {
            session.expire(now);
        }
    }
}

base::Task<void> Listener::Impl::cut_after(base::Deadline grace) {
    co_await base::sleep_until(grace);
    if (!sessions.empty()) {
        api.log.warning("http_connections_cut", {{"connections", sessions.size()}});
    }
    connections.cancel_all();
}

}  // namespace ars::server
