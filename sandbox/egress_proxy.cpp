#include "sandbox/egress_proxy.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace ars::sandbox {

namespace asio = base::asio;
namespace limits = base::limits;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // when descriptors ran out
constexpr auto kLongestTick = std::chrono::milliseconds(1000);
constexpr auto kShortestTick = std::chrono::milliseconds(5);
constexpr std::string_view kFull =
    "HTTP/1.1 503 Too many connections of this sandbox\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n";

}  // namespace

EgressProxy::EgressProxy(
    asio::any_io_executor executor,
    base::Fd listener,
    EgressRules rules,
    std::string name_servers,
    std::uint64_t generation,
    const base::Log& log,
    std::shared_ptr<EgressCounts> counts,
    EgressLimits limits
)
    : acceptor_(executor),
      generation_(generation),
      log_(log),
      counts_(std::move(counts)),
      context_{
          std::move(rules),
          limits,
          base::Resolver(executor, std::move(name_servers), base::SearchList::ignored),
          [this](const EgressFault& fault) { on_refused(fault); }
      },
      tasks_(executor) {
    error_code error;
    acceptor_.assign(tcp::v4(), listener.release(), error);
    if (error) {
        log_.error("egress_listener_failed", {{"reason", error.message()}});
    }
}

void EgressProxy::start() { tasks_.spawn(accept_all()); }

base::Task<void> EgressProxy::accept_all() {
    while (!closed_) {
        auto [error, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
        if (closed_ || error == asio::error::bad_descriptor) {
            co_return;
        }
        if (error) {
            co_await base::sleep_until(base::Deadline::after(kAcceptPause));
        } else {
            admit(std::move(socket));
        }
    }
}

void EgressProxy::admit(tcp::socket socket) {
    ++counts_->connections;
    if (connections_.size() >= context_.limits.connections ||
        counts_->open >= limits::kEgressConnections) {
        error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(kFull), ignored);
        return;
    }
    ++counts_->open;
    connections_.emplace_front(std::move(socket), context_);
    tasks_.spawn(host(connections_.begin()));
    if (!std::exchange(ticking_, true)) {
        tasks_.spawn(tick());
    }
}

base::Task<void> EgressProxy::host(std::list<EgressConnection>::iterator connection) {
    struct Leave {
        EgressProxy& proxy;
        std::list<EgressConnection>::iterator place;
        ~Leave() {
            --proxy.counts_->open;
            proxy.connections_.erase(place);
        }
    } leave{*this, connection};
    try {
        co_await connection->run();
    } catch (const std::exception& error) {
        if (!closed_) {
            log_.error("egress_failure", {{"generation", generation_}, {"reason", error.what()}});
        }
    }
}

// One timer for the deadlines of all connections, and none while there is no connection.
base::Task<void> EgressProxy::tick() {
    const EgressLimits& bounds = context_.limits;
    const base::milliseconds shortest =
        std::min({bounds.head, bounds.connect, bounds.idle, bounds.linger});
    const auto period = std::clamp<base::milliseconds>(shortest / 4, kShortestTick, kLongestTick);
    while (!connections_.empty() && !closed_) {
        co_await base::sleep_until(base::Deadline::after(period));
        const auto now = steady_clock::now();
        for (EgressConnection& connection : connections_) {
            connection.expire(now);
        }
    }
    ticking_ = false;
}

void EgressProxy::on_refused(const EgressFault& fault) {
    ++counts_->refused;
    if (!fault.host.empty()) {
        ++counts_->denied_hosts;
        if (on_denied_host_) {
            on_denied_host_(fault.host);
        }
    }
    const auto now = steady_clock::now();
    if (now - minute_ > std::chrono::minutes(1)) {
        minute_ = now;
        lines_ = 0;
    }
    if (++lines_ <= limits::kEgressRefusalLines) {
        log_.warning(
            "egress_refused",
            {{"generation", generation_}, {"status", fault.status}, {"reason", fault.message}}
        );
    }
}

base::Task<void> EgressProxy::close() {
    co_await base::shield_from_cancellation();
    closed_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (EgressConnection& connection : connections_) {
        connection.close();
    }
    // A task that was spawned a moment ago must have begun before it may be cancelled.
    co_await asio::post(acceptor_.get_executor(), asio::use_awaitable);
    tasks_.cancel_all();
    try {
        co_await tasks_.join();
    } catch (const boost::system::system_error&) {
        // The tasks were told to stop.
    }
}

}  // namespace ars::sandbox
