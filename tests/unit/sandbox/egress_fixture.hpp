// Both ends of a proxy for tests: servers on 127.0.0.1 that do as a function says, and clients that
// speak in raw bytes.
#pragma once

#include "base/fd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox::testing {

inline sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

// A listening socket on 127.0.0.1 and its port.
struct Listening {
    base::Fd socket;
    std::uint16_t port = 0;
};
inline Listening listen_somewhere() {
    Listening out{base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(out.socket.get(), raw, size), 0);
    EXPECT_EQ(::listen(out.socket.get(), 512), 0);
    EXPECT_EQ(::getsockname(out.socket.get(), raw, &size), 0);
    out.port = ntohs(address.sin_port);
    return out;
}

// One end of a connection, blocking, with a limit so that a test fails instead of hanging.
class Peer {
  public:
    explicit Peer(base::Fd socket) : socket_(std::move(socket)) {
        const timeval limit{20, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    }
    static Peer to(std::uint16_t port) {
        base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const sockaddr_in address = loopback(port);
        EXPECT_EQ(
            ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0
        );
        return Peer(std::move(socket));
    }
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    // What comes next; empty at the end, or when the connection broke.
    std::string receive() {
        std::string bytes(64UL * 1024, '\0');
        ssize_t n = 0;
        do {  // a signal ends a wait that has a limit, whatever its handler says
            n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
        } while (n < 0 && errno == EINTR);
        bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return bytes;
    }
    // Until `mark` was received, or the end.
    std::string receive_until(std::string_view mark) {
        std::string all;
        std::size_t looked_at = 0;
        while (all.find(mark, looked_at) == std::string::npos) {
            looked_at = all.size() - std::min(all.size(), mark.size());
            const std::string bytes = receive();
            if (bytes.empty()) {
                break;
            }
            all += bytes;
        }
        return all;
    }
    std::string receive_all() {
        std::string all;
        for (std::string bytes = receive(); !bytes.empty(); bytes = receive()) {
            all += bytes;
        }
        return all;
    }
    void end_sending() { ::shutdown(socket_.get(), SHUT_WR); }
    void close() { socket_.reset(); }
    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    base::Fd socket_;
};

// A server whose every connection is a call of `talk` on a thread of its own.
class Upstream {
  public:
    explicit Upstream(std::function<void(Peer&)> talk)
        : talk_(std::move(talk)),
          listening_(listen_somewhere()),
          thread_([this] { accept_all(); }) {}
    ~Upstream() {
        ::shutdown(listening_.socket.get(), SHUT_RDWR);
        thread_.join();
        for (std::thread& one : talks_) {
            one.join();
        }
    }
    Upstream(const Upstream&) = delete;
    Upstream& operator=(const Upstream&) = delete;
    [[nodiscard]] std::uint16_t port() const { return listening_.port; }
    [[nodiscard]] int connections() const { return connections_; }

  private:
    void accept_all() {
        for (;;) {
            base::Fd socket(::accept4(listening_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!socket) {
                return;
            }
            ++connections_;
            auto talk = [this, peer = std::make_shared<Peer>(std::move(socket))] { talk_(*peer); };
            talks_.emplace_back(std::move(talk));
        }
    }

    std::function<void(Peer&)> talk_;
    Listening listening_;
    std::atomic<int> connections_ = 0;
    std::list<std::thread> talks_;
    std::thread thread_;
};

// Answers each request's head with a short page; the request is shown in it.
inline void serve_page(Peer& peer) {
    const std::string request = peer.receive_until("\r\n\r\n");
    const std::string body = "page of " + request;
    peer.send(
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body
    );
}

}  // namespace ars::sandbox::testing
