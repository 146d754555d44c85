// A client of plain blocking sockets for tests of the HTTP layer: it sends exactly the bytes it is
// told to.
#pragma once

#include "base/fd.hpp"

#include <boost/json/parse.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace ars::server::testing {

struct RawResponse {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;                            // without chunk framing

    [[nodiscard]] boost::json::value json() const { return boost::json::parse(body); }
    [[nodiscard]] std::string code() const {
        return std::string(json().at("detail").at("code").as_string());
    }
};

class RawClient {
  public:
    explicit RawClient(std::uint16_t port)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
        }
        timeval patience{20, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }

    [[nodiscard]] int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }

    // False when the server no longer listens to us.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    // "GET /path" plus headers and body as one well-formed request.
    bool request(std::string_view line, std::string_view headers = {}, std::string_view body = {}) {
        std::string bytes(line);
        bytes += " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
        bytes += headers;
        if (!body.empty()) {
            bytes += "Content-Type: application/json\r\nContent-Length: ";
            bytes += std::to_string(body.size()) + "\r\n";
        }
        bytes += "\r\n";
        bytes += body;
        return send(bytes);
    }

    // Up to and with `end`, or what there is when the connection ends.
    std::string read_until(std::string_view end) {
        std::size_t found = buffer_.find(end);
        while (found == std::string::npos && receive()) {
            found = buffer_.find(end);
        }
        const std::size_t size = found == std::string::npos ? buffer_.size() : found + end.size();
        return take(size);
    }
    std::string read_exactly(std::size_t size) {
        while (buffer_.size() < size && receive()) {
        }
        return take(std::min(size, buffer_.size()));
    }
    std::string read_to_end() {
        while (receive()) {
        }
        return take(buffer_.size());
    }
    // True when the server closed and nothing is left.
    bool at_end() { return buffer_.empty() && !receive(); }

    RawResponse read_head() {
        RawResponse response;
        const std::string head = read_until("\r\n\r\n");
        if (head.size() < 12) {
            return response;
        }
        response.status = std::stoi(head.substr(9, 3));
        std::size_t at = head.find("\r\n") + 2;
        while (at + 2 < head.size()) {
            const std::size_t end = head.find("\r\n", at);
            const std::size_t colon = head.find(": ", at);
            std::string name = head.substr(at, colon - at);
            for (char& c : name) {
                c = static_cast<char>(std::tolower(c));
            }
            response.headers[name] = head.substr(colon + 2, end - colon - 2);
            at = end + 2;
        }
        return response;
    }
    RawResponse read_response(bool with_body = true) {
        RawResponse response = read_head();
        if (!with_body) {
            return response;
        }
        if (response.headers.contains("transfer-encoding")) {
            for (std::string chunk = read_chunk(); !chunk.empty(); chunk = read_chunk()) {
                response.body += chunk;
            }
        } else if (response.headers.contains("content-length")) {
            response.body = read_exactly(std::stoul(response.headers["content-length"]));
        }
        return response;
    }
    // One chunk's content; empty at the last one and when the connection ends.
    std::string read_chunk() {
        const std::string size_line = read_until("\r\n");
        if (size_line.size() < 3) {
            return {};
        }
        std::string content = read_exactly(std::stoul(size_line, nullptr, 16));
        read_exactly(2);
        return content;
    }

  private:
    bool receive() {
        char bytes[16384];
        const ssize_t size = ::recv(socket_.get(), bytes, sizeof bytes, 0);
        if (size <= 0) {
            return false;
        }
        buffer_.append(bytes, static_cast<std::size_t>(size));
        return true;
    }
    std::string take(std::size_t size) {
        std::string out = buffer_.substr(0, size);
        buffer_.erase(0, size);
        return out;
    }

    base::Fd socket_;
    std::string buffer_;
};

// A stream of events, frame by frame.
struct Frame {
    std::string event;
    std::string id;
    std::string data;
    std::string comment;
    bool operator==(const Frame&) const = default;
};
inline std::vector<Frame> parse_frames(std::string_view text) {
    std::vector<Frame> frames;
    Frame frame;
    bool any = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto value = [&line](std::size_t prefix) { return std::string(line.substr(prefix)); };
        if (line.empty()) {
            if (any) {
                frames.push_back(frame);
            }
            frame = {};
            any = false;
            continue;
        }
        any = true;
        if (line.starts_with("event: ")) {
            frame.event = value(7);
        } else if (line.starts_with("id: ")) {
            frame.id = value(4);
        } else if (line.starts_with("data: ")) {
            frame.data = value(6);
        } else if (line.starts_with(": ")) {
            frame.comment = value(2);
        }
    }
    return frames;
}

}  // namespace ars::server::testing
