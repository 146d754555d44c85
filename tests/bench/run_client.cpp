#include "tests/bench/run_client.hpp"

#include "base/fd.hpp"
#include "tests/bench/run_model.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace ars::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastRounds = 20;
constexpr auto kPatience = std::chrono::seconds(60);

struct Connection {
    base::Fd socket;
    std::string in;
    std::size_t step = 0;
    Clock::time_point begun;
};

base::Fd connect_to(int port) {
    base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
}

bool is_whole(const std::string& answer) {
    const std::size_t head = answer.find("\r\n\r\n");
    if (head == std::string::npos) {
        return false;
    }
    constexpr std::string_view kLength = "Content-Length: ";
    if (const std::size_t at = answer.find(kLength); at < head) {
        std::size_t length = 0;
        std::from_chars(answer.data() + at + kLength.size(), answer.data() + head, length);
        return answer.size() >= head + 4 + length;
    }
    return answer.ends_with("\r\n0\r\n\r\n");
}

class Driver {
  public:
    Driver(const Load& load, const Round& round) : load_(load), round_(round) {
        poller_ = base::Fd(::epoll_create1(EPOLL_CLOEXEC));
        connections_.resize(static_cast<std::size_t>(load.at_once));
        for (std::size_t i = 0; i < connections_.size(); ++i) {
            connections_[i].socket = connect_to(load.port);
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = i;
            ::epoll_ctl(poller_.get(), EPOLL_CTL_ADD, connections_[i].socket.get(), &event);
        }
    }

    LoadResult run() {
        for (Connection& connection : connections_) {
            begin(connection);
        }
        run_until(Clock::now() + std::chrono::duration<double>(load_.warm_seconds));
        out_ = LoadResult{};
        if (load_.begins) {
            load_.begins();
        }
        const double cpu = thread_cpu_seconds();
        const auto start = Clock::now();
        run_until(start + std::chrono::duration<double>(load_.seconds));
        // On a machine that is busy with other things a row takes longer, and is never empty.
        while (out_.latencies.size() < kLeastRounds && Clock::now() < start + kPatience) {
            turn();
        }
        out_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        out_.cpu_seconds = thread_cpu_seconds() - cpu;
        if (load_.ends) {
            load_.ends();
        }
        finish();
        return std::move(out_);
    }

  private:
    template <class Time>
    void run_until(Time end) {
        while (Clock::now() < end) {
            turn();
        }
    }

    // What is under way is let come to its end, so that it disturbs nothing that is measured next.
    void finish() {
        LoadResult measured = std::move(out_);
        last_round_ = true;
        const auto limit = Clock::now() + std::chrono::seconds(60);
        while (idle_ < connections_.size() && Clock::now() < limit) {
            turn();
        }
        out_ = std::move(measured);
    }

    void turn() {
        epoll_event events[256];
        const int count = ::epoll_wait(poller_.get(), events, 256, 20);
        for (int i = 0; i < count; ++i) {
            read_from(connections_[events[i].data.u64]);
        }
    }

    void begin(Connection& connection) {
        connection.step = 0;
        connection.begun = Clock::now();
        send(connection);
    }

    void send(Connection& connection) {
        const std::string& text = round_.requests[connection.step];
        if (::send(connection.socket.get(), text.data(), text.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(text.size())) {
            throw std::runtime_error("the server took no request: " + out_.fault);
        }
    }

    void read_from(Connection& connection) {
        char bytes[64 * 1024];
        const ssize_t size = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
        if (size <= 0) {
            throw std::runtime_error("the server hung up: " + out_.fault);
        }
        connection.in.append(bytes, static_cast<std::size_t>(size));
        if (!is_whole(connection.in)) {
            return;
        }
        if (connection.in.find(round_.expected) == std::string::npos) {
            ++out_.failed;
            out_.fault = out_.fault.empty() ? connection.in : out_.fault;
        }
        connection.in.clear();
        if (++connection.step < round_.requests.size()) {
            send(connection);
            return;
        }
        const std::chrono::duration<double, std::micro> took = Clock::now() - connection.begun;
        out_.latencies.push_back(took.count());
        if (last_round_) {
            ++idle_;
        } else {
            begin(connection);
        }
    }

    const Load& load_;
    const Round& round_;
    base::Fd poller_;
    std::vector<Connection> connections_;
    LoadResult out_;
    bool last_round_ = false;
    std::size_t idle_ = 0;
};

}  // namespace

std::string post(const std::string& path, const std::string& body) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

LoadResult drive(const Load& load, const Round& round) { return Driver(load, round).run(); }

}  // namespace ars::bench
