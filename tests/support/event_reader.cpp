#include "tests/support/event_reader.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::tests {

namespace {

constexpr int kPatienceMs = 60'000;

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

boost::json::object EventFrame::data() const {
    const std::size_t start = bytes.find("data: ") + 6;
    return boost::json::parse(bytes.substr(start, bytes.find('\n', start) - start)).as_object();
}

EventReader::EventReader(int port, const std::string& target, const Options& options)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (options.receive_buffer != 0) {
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &options.receive_buffer, sizeof(int));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        fail("connect");
    }
    std::string request = "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
    if (!options.after.empty()) {
        request += "Last-Event-ID: " + options.after + "\r\n";
    }
    request += "\r\n";
    if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
        fail("send");
    }
}

bool EventReader::take(std::size_t most) {
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, kPatienceMs) != 1) {
        throw std::runtime_error("the event stream is silent; so far: " + raw_ + text_);
    }
    char buffer[16 * 1024];
    const ssize_t size = ::recv(socket_.get(), buffer, std::min(most, sizeof buffer), 0);
    if (size <= 0) {
        return false;
    }
    raw_.append(buffer, static_cast<std::size_t>(size));
    decode();
    return true;
}

// Takes head and chunk sizes off; what has come of a chunk counts, also when its rest never comes.
void EventReader::decode() {
    if (!in_body_) {
        const std::size_t end = raw_.find("\r\n\r\n");
        if (end == std::string::npos || !raw_.starts_with("HTTP/1.1 200")) {
            return;
        }
        in_body_ = true;
        raw_.erase(0, end + 4);
    }
    for (;;) {
        const std::size_t size = std::min(chunk_left_, raw_.size());
        text_.append(raw_, 0, size);
        raw_.erase(0, size);
        chunk_left_ -= size;
        if (chunk_left_ != 0) {
            break;
        }
        // Behind a chunk stands a line break, then the next size.
        const std::size_t start = raw_.starts_with("\r\n") ? 2 : 0;
        const std::size_t line = raw_.find("\r\n", start);
        if (raw_ == "\r" || line == std::string::npos) {
            break;
        }
        chunk_left_ = std::stoul(raw_.substr(start), nullptr, 16);
        raw_.erase(0, line + 2);
    }
    take_frames();
}

void EventReader::take_frames() {
    for (std::size_t end = text_.find("\n\n"); end != std::string::npos; end = text_.find("\n\n")) {
        EventFrame frame;
        frame.bytes = text_.substr(0, end + 2);
        text_.erase(0, end + 2);
        if (frame.bytes.starts_with(":")) {
            ++heartbeats_;
            continue;
        }
        for (std::size_t start = 0; start < frame.bytes.size() - 1;) {
            const std::size_t stop = frame.bytes.find('\n', start);
            const std::string line = frame.bytes.substr(start, stop - start);
            if (line.starts_with("id: ")) {
                frame.id = line.substr(4);
            } else if (line.starts_with("event: ")) {
                frame.type = line.substr(7);
            }
            start = stop + 1;
        }
        frames_.push_back(std::move(frame));
    }
}

std::optional<EventFrame> EventReader::next() {
    while (frames_.empty()) {
        if (!take(SIZE_MAX)) {
            if (!in_body_ && !raw_.empty()) {
                throw std::runtime_error("refused: " + raw_);
            }
            return std::nullopt;
        }
    }
    EventFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
}

std::vector<EventFrame> EventReader::rest() {
    std::vector<EventFrame> out;
    while (auto frame = next()) {
        out.push_back(std::move(*frame));
    }
    return out;
}

std::vector<EventFrame> EventReader::taken() {
    std::vector<EventFrame> out(frames_.begin(), frames_.end());
    frames_.clear();
    return out;
}

std::string EventReader::refusal() {
    while (take(SIZE_MAX)) {
    }
    return raw_;
}

void EventReader::vanish() {
    sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog program{1, &drop_all};
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
        fail("attach a filter to the socket");
    }
}

std::vector<EventFrame> read_frames(int port, const std::string& target, const std::string& after) {
    return EventReader(port, target, {.after = after, .receive_buffer = 0}).rest();
}

}  // namespace ars::tests
