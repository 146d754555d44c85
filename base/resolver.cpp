#include "base/resolver.hpp"

#include "base/fd.hpp"

#include <ares.h>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace ars::base {

namespace {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

constexpr int kQueryTimeoutMs = 2000;
constexpr int kQueryTries = 3;

std::unexpected<Error> dns_failed(ErrorKind kind, const std::string& host, const char* why) {
    return fail(kind, "dns_failed", "the host name \"" + host + "\" can't be resolved: " + why);
}

std::optional<Endpoints> without_asking(const std::string& host, std::uint16_t port) {
    boost::system::error_code error;
    const asio::ip::address literal = asio::ip::make_address(host, error);
    if (!error) {
        return Endpoints{{literal, port}};
    }
    if (host == "localhost" || host == "localhost." || host.ends_with(".localhost")) {
        return Endpoints{
            {asio::ip::address_v4::loopback(), port}, {asio::ip::address_v6::loopback(), port}
        };
    }
    return std::nullopt;
}

asio::ip::tcp::endpoint endpoint_of(const ares_addrinfo_node& node, std::uint16_t port) {
    if (node.ai_family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, node.ai_addr, sizeof address);
        return {asio::ip::address_v4(ntohl(address.sin_addr.s_addr)), port};
    }
    sockaddr_in6 address{};
    std::memcpy(&address, node.ai_addr, sizeof address);
    asio::ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &address.sin6_addr, bytes.size());
    return {asio::ip::address_v6(bytes, address.sin6_scope_id), port};
}

// One question. All sockets of its channel and a timer hang in one epoll set, so Asio waits on one
// descriptor.
class Query {
  public:
    Query(asio::any_io_executor executor, std::uint16_t port)
        : port_(port),
          set_(::epoll_create1(EPOLL_CLOEXEC)),
          timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
          ready_(executor) {
        if (!set_ || !timer_) {
            throw boost::system::system_error(
                errno, boost::system::system_category(), "epoll, timerfd"
            );
        }
        watch(timer_.get(), EPOLLIN);
        ready_.assign(set_.get());
    }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    ~Query() {
        if (channel_ != nullptr) {
            ::ares_destroy(channel_);  // calls on_answer for what is still open
        }
        ready_.release();  // the set is closed by set_
    }

    int start(const std::string& host, const std::string& name_servers, SearchList search) {
        ares_options options{};
        options.timeout = kQueryTimeoutMs;
        options.tries = kQueryTries;
        options.sock_state_cb = &Query::on_socket;
        options.sock_state_cb_data = this;
        int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
        if (search == SearchList::ignored) {
            options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
            mask |= ARES_OPT_FLAGS;
        }
        int status = ::ares_init_options(&channel_, &options, mask);
        if (status == ARES_SUCCESS && !name_servers.empty()) {
            status = ::ares_set_servers_ports_csv(channel_, name_servers.c_str());
        }
        if (status != ARES_SUCCESS) {
            return status;
        }
        ares_addrinfo_hints hints{};
        hints.ai_flags = ARES_AI_NUMERICSERV;
        hints.ai_family = AF_UNSPEC;
        hints.ai_socktype = SOCK_STREAM;
        const std::string port = std::to_string(port_);
        ::ares_getaddrinfo(channel_, host.c_str(), port.c_str(), &hints, &Query::on_answer, this);
        return ARES_SUCCESS;
    }

    [[nodiscard]] std::optional<int> status() const { return status_; }
    Endpoints take() { return std::move(endpoints_); }

    // Sleeps until a socket or c-ares' own timer wants attention, or the deadline passed.
    Task<void> wait(Deadline deadline) {
        arm(deadline);
        const auto [error] = co_await ready_.async_wait(
            asio::posix::descriptor_base::wait_read, asio::as_tuple(asio::use_awaitable)
        );
        if (error) {
            throw boost::system::system_error(error);
        }
    }

    void process() {
        std::array<epoll_event, 16> events{};
        const int count =
            ::epoll_wait(set_.get(), events.data(), static_cast<int>(events.size()), 0);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.fd != timer_.get()) {
                const bool write = (event.events & EPOLLOUT) != 0;
                const bool read = (event.events & ~static_cast<unsigned>(EPOLLOUT)) != 0;
                ::ares_process_fd(
                    channel_,
                    read ? event.data.fd : ARES_SOCKET_BAD,
                    write ? event.data.fd : ARES_SOCKET_BAD
                );
            }
        }
        ::ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // time-outs
    }

  private:
    static void on_socket(void* self, ares_socket_t socket, int readable, int writable) {
        const unsigned events = (readable != 0 ? static_cast<unsigned>(EPOLLIN) : 0U) |
                                (writable != 0 ? static_cast<unsigned>(EPOLLOUT) : 0U);
        static_cast<Query*>(self)->watch(socket, events);
    }

    static void on_answer(void* self, int status, int, ares_addrinfo* info) {
        Query& query = *static_cast<Query*>(self);
        query.status_ = status;
        if (info != nullptr) {
            for (const ares_addrinfo_node* node = info->nodes; node != nullptr;
                 node = node->ai_next) {
                if (node->ai_family == AF_INET || node->ai_family == AF_INET6) {
                    query.endpoints_.push_back(endpoint_of(*node, query.port_));
                }
            }
            ::ares_freeaddrinfo(info);
        }
    }

    void watch(int fd, unsigned events) {
        epoll_event event{};
        event.events = events;
        event.data.fd = fd;
        if (events == 0) {
            ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, &event);
        } else if (::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
            ::epoll_ctl(set_.get(), EPOLL_CTL_MOD, fd, &event);
        }
    }

    void arm(Deadline deadline) {
        using std::chrono::milliseconds;
        timeval longest{kQueryTimeoutMs / 1000, 0};
        timeval left{};
        const timeval& chosen = *::ares_timeout(channel_, &longest, &left);
        milliseconds wait(chosen.tv_sec * 1000 + chosen.tv_usec / 1000 + 1);
        wait = std::clamp(wait, milliseconds(1), std::max(milliseconds(1), deadline.remaining()));
        itimerspec spec{};
        spec.it_value.tv_sec = wait.count() / 1000;
        spec.it_value.tv_nsec = wait.count() % 1000 * 1'000'000;
        ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
    }

    std::uint16_t port_;
    Fd set_;
    Fd timer_;
    asio::posix::stream_descriptor ready_;
    ares_channel channel_ = nullptr;
    std::optional<int> status_;
    Endpoints endpoints_;
};

}  // namespace

Task<Result<Endpoints>> Resolver::resolve(std::string host, std::uint16_t port, Deadline deadline) {
    if (auto known = without_asking(host, port)) {
        co_return std::move(*known);
    }
    static const int library = ::ares_library_init(ARES_LIB_INIT_ALL);
    Query query(executor_, port);
    const int started =
        library != ARES_SUCCESS ? library : query.start(host, name_servers_, search_);
    if (started != ARES_SUCCESS) {
        co_return dns_failed(ErrorKind::unavailable, host, ::ares_strerror(started));
    }
    while (!query.status()) {
        if (deadline.passed()) {
            co_return fail(
                ErrorKind::timeout,
                "dns_timeout",
                "no name server answered for \"" + host + "\" in time"
            );
        }
        co_await query.wait(deadline);
        query.process();
    }
    const int status = *query.status();
    Endpoints found = query.take();
    if (status == ARES_SUCCESS && !found.empty()) {
        co_return found;
    }
    const bool missing =
        status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS;
    co_return dns_failed(
        missing ? ErrorKind::not_found : ErrorKind::unavailable,
        host,
        status == ARES_SUCCESS ? "it has no address" : ::ares_strerror(status)
    );
}

}  // namespace ars::base
