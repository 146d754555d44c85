#include "tests/support/http.hpp"

#include "base/fd.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::tests {

namespace {

using Clock = std::chrono::steady_clock;

class Connection {
  public:
    Connection(int port, std::chrono::milliseconds limit)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), until_(Clock::now() + limit) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            throw std::runtime_error("connection refused");
        }
    }

    void send(const std::string& text) const {
        std::size_t sent = 0;
        while (sent < text.size()) {
            const ssize_t n =
                ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) {
                return;  // the server may answer and close before it read all: the reply tells
            }
            sent += static_cast<std::size_t>(n);
        }
    }

    // Appends what arrives; false at the end of the stream.
    bool receive(std::string& into) const {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now()).count();
        pollfd poll{socket_.get(), POLLIN, 0};
        if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) <= 0) {
            throw std::runtime_error("timed out; so far: " + into.substr(0, 2000));
        }
        char buffer[16384];
        const ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, 0);
        if (n <= 0) {
            return false;
        }
        into.append(buffer, static_cast<std::size_t>(n));
        return true;
    }

  private:
    base::Fd socket_;
    Clock::time_point until_;
};

std::string request_text(
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const Headers& headers
) {
    std::string text =
        method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
    for (const auto& [name, value] : headers) {
        text += name + ": " + value + "\r\n";
    }
    if (!body.empty() || method == "POST" || method == "PUT") {
        text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    return text + "\r\n" + body;
}

HttpReply parse_head(const std::string& head) {
    HttpReply reply;
    if (head.size() > 12) {
        reply.status = std::atoi(head.c_str() + 9);
    }
    std::size_t line = head.find("\r\n");
    while (line != std::string::npos && line + 2 < head.size()) {
        const std::size_t end = head.find("\r\n", line + 2);
        const std::string field = head.substr(line + 2, end - line - 2);
        const std::size_t colon = field.find(": ");
        if (colon != std::string::npos) {
            std::string name = field.substr(0, colon);
            std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
                return std::tolower(c);
            });
            reply.headers[name] = field.substr(colon + 2);
        }
        line = end;
    }
    return reply;
}

// Takes whole chunks off the front of `raw`; true when the last one was seen.
bool take_chunks(std::string& raw, std::string& out) {
    for (;;) {
        const std::size_t line = raw.find("\r\n");
        if (line == std::string::npos) {
            return false;
        }
        const std::size_t size = std::stoul(raw.substr(0, line), nullptr, 16);
        if (size == 0) {
            return true;
        }
        if (raw.size() < line + 2 + size + 2) {
            return false;
        }
        out += raw.substr(line + 2, size);
        raw.erase(0, line + 2 + size + 2);
    }
}

// Takes whole frames off the front of `text`.
void take_frames(std::string& text, std::vector<SseEvent>& events) {
    for (std::size_t end = text.find("\n\n"); end != std::string::npos; end = text.find("\n\n")) {
        SseEvent event;
        std::size_t start = 0;
        while (start < end) {
            const std::size_t stop = std::min(text.find('\n', start), end);
            const std::string line = text.substr(start, stop - start);
            if (line.starts_with("id: ")) {
                event.id = line.substr(4);
            } else if (line.starts_with("event: ")) {
                event.type = line.substr(7);
            } else if (line.starts_with("data: ")) {
                event.data = boost::json::parse(line.substr(6));
            }
            start = stop + 1;
        }
        text.erase(0, end + 2);
        if (!event.type.empty()) {
            events.push_back(std::move(event));
        }
    }
}

}  // namespace

boost::json::value HttpReply::json() const { return boost::json::parse(body); }

HttpReply http(
    int port,
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const Headers& headers,
    std::chrono::milliseconds limit
) {
    const Connection connection(port, limit);
    connection.send(request_text(method, target, body, headers));
    std::string raw;
    while (connection.receive(raw)) {
    }
    const std::size_t head_end = raw.find("\r\n\r\n");
    if (head_end == std::string::npos) {
        throw std::runtime_error("no HTTP reply: " + raw.substr(0, 200));
    }
    HttpReply reply = parse_head(raw.substr(0, head_end + 2));
    std::string rest = raw.substr(head_end + 4);
    if (reply.headers["transfer-encoding"] == "chunked") {
        take_chunks(rest, reply.body);
    } else {
        reply.body = std::move(rest);
    }
    return reply;
}

HttpReply http_json(
    int port,
    const std::string& method,
    const std::string& target,
    const boost::json::value& body,
    Headers headers
) {
    headers.emplace("Content-Type", "application/json");
    return http(port, method, target, boost::json::serialize(body), headers);
}

std::vector<SseEvent> parse_events(std::string text) {
    std::vector<SseEvent> events;
    take_frames(text, events);
    return events;
}

bool ids_rise(const std::vector<SseEvent>& events) {
    const auto number = [](const std::string& id) {
        const std::size_t dash = id.find('-');
        return std::make_pair(std::stoull(id.substr(0, dash)), std::stoull(id.substr(dash + 1)));
    };
    return std::adjacent_find(events.begin(), events.end(), [&](const auto& a, const auto& b) {
               return number(a.id) >= number(b.id);
           }) == events.end();
}

std::vector<SseEvent> read_events(
    int port,
    const std::string& target,
    const Headers& headers,
    std::size_t stop_after,
    std::chrono::milliseconds limit
) {
    const Connection connection(port, limit);
    connection.send(request_text("GET", target, {}, headers));
    std::string raw;
    std::string text;
    std::vector<SseEvent> events;
    bool in_body = false;
    bool chunked = false;
    while (events.size() < stop_after && connection.receive(raw)) {
        if (!in_body) {
            const std::size_t end = raw.find("\r\n\r\n");
            if (end == std::string::npos) {
                continue;
            }
            const HttpReply head = parse_head(raw.substr(0, end + 2));
            if (head.status != 200) {
                throw std::runtime_error("event stream answered " + std::to_string(head.status));
            }
            const auto coding = head.headers.find("transfer-encoding");
            chunked = coding != head.headers.end() && coding->second == "chunked";
            raw.erase(0, end + 4);
            in_body = true;
        }
        const bool last =
            chunked ? take_chunks(raw, text) : (text += std::exchange(raw, {}), false);
        take_frames(text, events);
        if (last) {
            break;
        }
    }
    return events;
}

}  // namespace ars::tests
