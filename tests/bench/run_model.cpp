#include "tests/bench/run_model.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace ars::bench {

namespace {

constexpr std::uint64_t kListener = ~0ULL;
constexpr std::uint64_t kWake = kListener - 1;

constexpr const char* kCallEvents[] = {
    R"({"id":"c1","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]})",
    R"({"id":"c1","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a1b2c3","type":"function","function":{"name":"write_todos","arguments":""}}]},"finish_reason":null}]})",
    R"({"id":"c1","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"todos\":[{\"content\":\"Read the question\",\"status\":\"completed\"},"}}]},"finish_reason":null}]})",
    R"({"id":"c1","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"content\":\"Answer it\",\"status\":\"in_progress\"}]}"}}]},"finish_reason":null}]})",
    R"({"id":"c1","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})",
    R"({"id":"c1","object":"chat.completion.chunk","created":1,"model":"fast","choices":[],"usage":{"prompt_tokens":400,"completion_tokens":40,"total_tokens":440}})",
    "[DONE]",
};
constexpr const char* kTextEvents[] = {
    R"({"id":"c2","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]})",
    R"({"id":"c2","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"content":"The answer "},"finish_reason":null}]})",
    R"({"id":"c2","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"content":"is forty-two, "},"finish_reason":null}]})",
    R"({"id":"c2","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{"content":"as you expected."},"finish_reason":null}]})",
    R"({"id":"c2","object":"chat.completion.chunk","created":1,"model":"fast","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})",
    R"({"id":"c2","object":"chat.completion.chunk","created":1,"model":"fast","choices":[],"usage":{"prompt_tokens":480,"completion_tokens":12,"total_tokens":492}})",
    "[DONE]",
};

template <std::size_t N>
std::string streamed(const char* const (&events)[N], const std::string& padding) {
    std::string out =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char* event : events) {
        std::string text = "data: " + std::string(event) + "\n\n";
        if (const std::size_t at = text.find("as you expected"); at != std::string::npos) {
            text.insert(at, padding);
        }
        char size[20];
        std::snprintf(size, sizeof size, "%zx\r\n", text.size());
        out += size + text + "\r\n";
    }
    return out + "0\r\n\r\n";
}

void must(bool holds, const char* what) {
    if (!holds) {
        throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
    }
}

void watch(int poller, int fd, std::uint64_t who) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = who;
    must(::epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

// Where the body of the request in `in` begins, when all of it is there; else 0.
std::size_t whole_request(const std::string& in, std::size_t& end) {
    const std::size_t head = in.find("\r\n\r\n");
    if (head == std::string::npos) {
        return 0;
    }
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t at = in.find(kLength);
    std::size_t length = 0;
    if (at < head) {
        std::from_chars(in.data() + at + kLength.size(), in.data() + head, length);
    }
    end = head + 4 + length;
    return in.size() >= end ? head + 4 : 0;
}

}  // namespace

double thread_cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

FastModel::FastModel(std::size_t padding)
    : call_reply_(streamed(kCallEvents, "")),
      text_reply_(streamed(kTextEvents, std::string(padding, 'x'))) {
    listener_ = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    must(listener_.get() >= 0, "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    must(::bind(listener_.get(), generic, size) == 0, "bind");
    must(::listen(listener_.get(), 4096) == 0, "listen");
    must(::getsockname(listener_.get(), generic, &size) == 0, "getsockname");
    port_ = ntohs(address.sin_port);
    poller_ = base::Fd(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    must(poller_.get() >= 0 && wake_.get() >= 0, "epoll_create1, eventfd");
    watch(poller_.get(), listener_.get(), kListener);
    watch(poller_.get(), wake_.get(), kWake);
    thread_ = std::thread([this] { serve(); });
}

FastModel::~FastModel() {
    stopping_ = true;
    ::eventfd_write(wake_.get(), 1);
    thread_.join();
}

void FastModel::hold() { hold_ = true; }

void FastModel::release() {
    hold_ = false;
    ::eventfd_write(wake_.get(), 1);
}

std::string FastModel::first_body() const {
    const std::lock_guard lock(mutex_);
    return seen_[0];
}

std::string FastModel::second_body() const {
    const std::lock_guard lock(mutex_);
    return seen_[1];
}

void FastModel::serve() {
    epoll_event events[256];
    while (!stopping_) {
        const int count = ::epoll_wait(poller_.get(), events, 256, -1);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t who = events[i].data.u64;
            if (who == kListener) {
                accept_all();
            } else if (who == kWake) {
                eventfd_t ignored = 0;
                ::eventfd_read(wake_.get(), &ignored);
                for (Connection& connection : connections_) {
                    if (connection.waits && !hold_) {
                        --held_;
                        answer(connection);
                    }
                }
            } else {
                read_from(connections_[who]);
            }
        }
        cpu_seconds_ = thread_cpu_seconds();
    }
}

void FastModel::accept_all() {
    for (;;) {
        base::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.get() < 0) {
            return;
        }
        const int on = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(poller_.get(), socket.get(), connections_.size());
        connections_.push_back({std::move(socket), {}, false, false});
    }
}

void FastModel::read_from(Connection& connection) {
    char bytes[64 * 1024];
    const ssize_t size = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
    if (size <= 0) {
        if (size == 0 || errno != EAGAIN) {
            forget(connection);
        }
        return;
    }
    connection.in.append(bytes, static_cast<std::size_t>(size));
    std::size_t end = 0;
    const std::size_t body = whole_request(connection.in, end);
    if (body == 0) {
        return;
    }
    const std::string_view text = std::string_view(connection.in).substr(body, end - body);
    const std::size_t last = text.rfind(R"("role":")");
    connection.second = text.substr(std::min(last, text.size())).starts_with(R"("role":"tool")");
    last_bytes_ = text.size();
    note(connection.second, text);
    connection.in.erase(0, end);
    if (hold_) {
        connection.waits = true;
        connection.in.shrink_to_fit();
        ++held_;
    } else {
        answer(connection);
    }
}

void FastModel::answer(Connection& connection) {
    connection.waits = false;
    const std::string& reply = connection.second ? text_reply_ : call_reply_;
    // It fits into the socket's buffer: the client has read the answer before.
    const ssize_t sent = ::send(connection.socket.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(reply.size())) {
        forget(connection);
    }
}

void FastModel::forget(Connection& connection) {
    held_ -= connection.waits ? 1 : 0;
    connection = Connection{};
}

// The bare client says again what runs said.
void FastModel::note(bool second, std::string_view body) {
    const std::lock_guard lock(mutex_);
    if (seen_[second ? 1 : 0].size() != body.size()) {
        seen_[second ? 1 : 0] = body;
    }
}

}  // namespace ars::bench
