#include "sandbox/egress_connection.hpp"

#include "base/task_group.hpp"
#include "sandbox/egress_body.hpp"

#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace ars::sandbox {

namespace asio = base::asio;
namespace limits = base::limits;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kReadBytes = 4096;  // of a head, at a time
constexpr std::size_t kDialled = 8;       // addresses of one name
constexpr std::size_t kReasonBytes = 160;
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

constexpr auto as_result() { return asio::as_tuple(asio::use_awaitable); }

// Few clients show the body of a refused CONNECT, many show this line.
std::string reason_phrase(std::string_view message) {
    std::string out(message.substr(0, std::min(message.find(" ("), kReasonBytes)));
    std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '?');
    return out;
}

std::string answer_text(const EgressFault& fault) {
    return "HTTP/1.1 " + std::to_string(fault.status) + " " + reason_phrase(fault.message) +
           "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
           std::to_string(fault.message.size() + 1) + "\r\nConnection: close\r\n\r\n" +
           fault.message + "\n";
}

std::unexpected<EgressFault> fault(unsigned status, std::string message) {
    return std::unexpected(EgressFault{status, std::move(message)});
}

std::string chunk_line(std::size_t size) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (; size != 0; size /= 16) {
        out.insert(out.begin(), kDigits[size % 16]);
    }
    return out + "\r\n";
}

void tune(asio::ip::tcp::socket& socket) {
    error_code ignored;
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace

EgressConnection::EgressConnection(tcp::socket client, EgressContext& context)
    : context_(context), client_(std::move(client)), server_(client_.get_executor()) {
    tune(client_);
    due_in(context_.limits.head);
}

void EgressConnection::due_in(base::milliseconds budget) { due_ = steady_clock::now() + budget; }

void EgressConnection::touch() {
    if (!ending_) {
        due_in(context_.limits.idle);
    }
}

void EgressConnection::close() {
    closed_ = true;
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
}

void EgressConnection::expire(steady_clock::time_point now) {
    if (now < due_) {
        return;
    }
    if (dialling_) {
        error_code ignored;
        server_.close(ignored);
    } else {
        close();
    }
}

base::Task<void> EgressConnection::run() {
    auto request = co_await read_request();
    if (!request) {
        co_await refuse(std::move(request.error()));
    } else if (auto connected = co_await connect(request->target); !connected) {
        co_await refuse(std::move(connected.error()));
    } else {
        co_await relay(std::move(*request));
    }
    close();
}

// A client that went away or was too slow gets a fault with nobody to read it.
base::Task<EgressConnection::Answer<EgressRequest>> EgressConnection::read_request() {
    HeadScanner scanner;
    auto state = HeadScanner::State::more;
    while (state == HeadScanner::State::more) {
        const std::size_t had = in_.size();
        in_.resize(had + kReadBytes);
        auto space = asio::buffer(in_.data() + had, kReadBytes);
        const auto [error, count] = co_await client_.async_read_some(space, as_result());
        in_.resize(had + count);
        if (error) {
            close();
            co_return fault(408, "the request did not come");
        }
        state = scanner.scan(in_);
    }
    if (state == HeadScanner::State::too_large) {
        co_return fault(431, "the request's head is larger than 16 KiB");
    }
    if (state == HeadScanner::State::malformed) {
        co_return fault(400, "this is not HTTP/1.1 as a proxy can pass it on");
    }
    auto request = parse_egress_request(std::string_view(in_).substr(0, scanner.size()));
    in_.erase(0, scanner.size());
    if (request) {
        if (auto allowed = context_.rules.check(request->target); !allowed) {
            co_return std::unexpected(
                EgressFault{403, allowed.error().message, request->target.host.text()}
            );
        }
    }
    co_return request;
}

// The name is resolved once; each address is checked, and exactly that address is dialled.
base::Task<EgressConnection::Answer<void>> EgressConnection::connect(EgressTarget target) {
    const auto deadline = base::Deadline::after(context_.limits.connect);
    due_ = steady_clock::time_point::max();  // until the resolver's own deadline
    const auto found =
        co_await context_.resolver.resolve(target.host.text(), target.port, deadline);
    if (!found) {
        const bool late = found.error().kind == base::ErrorKind::timeout;
        co_return fault(late ? 504 : 502, found.error().message);
    }
    std::vector<tcp::endpoint> allowed;
    std::string refusal;
    for (const tcp::endpoint& endpoint : *found) {
        if (auto checked = context_.rules.check(target, endpoint.address()); !checked) {
            refusal = checked.error().message;
        } else if (allowed.size() < kDialled) {
            allowed.push_back(endpoint);
        }
    }
    if (allowed.empty()) {
        co_return std::unexpected(EgressFault{403, refusal, target.host.text()});
    }
    for (std::size_t i = 0; i < allowed.size() && !closed_; ++i) {
        // A dead first address must leave time for the others.
        const auto left = static_cast<int>(allowed.size() - i);
        if (co_await dial(allowed[i], deadline.remaining() / left)) {
            touch();
            co_return Answer<void>{};
        }
    }
    touch();
    co_return fault(502, target.text() + " does not accept the connection or does not answer");
}

base::Task<bool> EgressConnection::dial(tcp::endpoint address, base::milliseconds share) {
    error_code error;
    server_.close(error);
    server_.open(address.protocol(), error);
    if (error) {
        co_return false;
    }
    tune(server_);
    due_in(share);
    dialling_ = true;
    std::tie(error) = co_await server_.async_connect(address, as_result());
    dialling_ = false;
    co_return !error && !closed_;
}

base::Task<void> EgressConnection::refuse(EgressFault why) {
    if (closed_) {
        co_return;
    }
    if (why.status < 500) {
        context_.on_refused(why);
    }
    ending_ = true;
    due_in(context_.limits.linger);
    if (co_await write(client_, answer_text(why))) {
        error_code ignored;
        client_.shutdown(tcp::socket::shutdown_send, ignored);
        // Closing with bytes unread would take the answer from a client that still sends.
        co_await discard_rest();
    }
}

base::Task<void> EgressConnection::relay(EgressRequest request) {
    base::TaskGroup directions(client_.get_executor());
    if (request.tunnel) {
        if (!co_await write(client_, kEstablished)) {
            co_return;
        }
        directions.spawn(tunnel_up());
        directions.spawn(tunnel_down());
    } else {
        directions.spawn(pass_request(std::move(request)));
        directions.spawn(pass_answer());
    }
    co_await directions.join();
}

base::Task<void> EgressConnection::tunnel_up() {
    const std::string early = std::exchange(in_, {});  // sent before our answer to CONNECT
    if (co_await write(server_, early) && co_await copy(client_, server_)) {
        error_code ignored;
        server_.shutdown(tcp::socket::shutdown_send, ignored);
    } else {
        close();
    }
}

base::Task<void> EgressConnection::tunnel_down() {
    if (co_await copy(server_, client_)) {
        error_code ignored;
        client_.shutdown(tcp::socket::shutdown_send, ignored);
    } else {
        close();
    }
}

// One request, then nothing: what a client sends after it reaches nobody.
base::Task<void> EgressConnection::pass_request(EgressRequest request) {
    bool sent = co_await write(server_, request.head);
    if (sent && request.chunked) {
        sent = co_await send_chunks();
    } else if (sent) {
        sent = co_await send_body(request.content_length);
    }
    // A server may answer and close before it has read all: its answer still goes to a client that
    // sends on. When the client broke off there is nothing to discard, and the server is told.
    co_await discard_rest();
    if (!sent) {
        error_code ignored;
        server_.shutdown(tcp::socket::shutdown_send, ignored);
    }
}

base::Task<bool> EgressConnection::send_body(std::uint64_t left) {
    while (left > 0) {
        if (in_.empty() && !co_await read_more()) {
            co_return false;
        }
        const std::string now = std::exchange(in_, {});
        const std::string_view part = std::string_view(now).substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>(left, now.size()))
        );
        if (!co_await write(server_, part)) {
            co_return false;
        }
        left -= part.size();
    }
    co_return true;
}

base::Task<bool> EgressConnection::send_chunks() {
    ChunkedReader reader;
    for (;;) {
        if (in_.empty() && !co_await read_more()) {
            co_return false;
        }
        const std::string now = std::exchange(in_, {});
        std::string_view rest = now;
        std::string out;
        auto state = ChunkedReader::State::more;
        while (!rest.empty() && state == ChunkedReader::State::more) {
            std::string_view data;
            state = reader.next(rest, data);
            if (!data.empty()) {
                out += chunk_line(data.size());
                out += data;
                out += "\r\n";
            }
        }
        if (state == ChunkedReader::State::malformed) {
            close();  // the server has a part of a body, and nothing to take for its end
            co_return false;
        }
        if (state == ChunkedReader::State::done) {
            out += "0\r\n\r\n";
        }
        if (!co_await write(server_, out)) {
            co_return false;
        }
        if (state == ChunkedReader::State::done) {
            co_return true;
        }
    }
}

// The head is held back until it is whole, to put "Connection: close" into it.
base::Task<void> EgressConnection::pass_answer() {
    std::string head;
    std::vector<char> buffer(limits::kEgressBufferBytes);
    std::size_t looked_at = 0;
    bool final_head = false;
    bool ended = false;
    while (!final_head) {
        const std::size_t end = answer_head_end(head, looked_at);
        if (end == std::string::npos && head.size() < limits::kEgressBufferBytes) {
            looked_at = head.size();
            const auto [error, count] =
                co_await server_.async_read_some(asio::buffer(buffer), as_result());
            touch();
            head.append(buffer.data(), count);
            if (!error) {
                continue;
            }
            ended = true;
            if (head.empty()) {
                head = answer_text({502, "the server closed the connection without an answer"});
            }
        }
        std::string out;
        if (end == std::string::npos || !head.starts_with("HTTP/1.")) {
            out = std::exchange(head, {});  // no HTTP, or cut short: as it came
            final_head = true;
        } else if (is_interim_answer(head)) {
            out = head.substr(0, end);
            head.erase(0, end);
            looked_at = 0;
        } else {
            out = closing_head(head);
            final_head = true;
        }
        if (!co_await write(client_, out)) {
            close();
            co_return;
        }
    }
    if (!ended && !co_await copy(server_, client_)) {
        close();
        co_return;
    }
    error_code ignored;
    client_.shutdown(tcp::socket::shutdown_send, ignored);
    ending_ = true;
    due_in(context_.limits.linger);
}

base::Task<bool> EgressConnection::read_more() {
    in_.resize(limits::kEgressBufferBytes);
    const auto [error, count] = co_await client_.async_read_some(asio::buffer(in_), as_result());
    touch();
    in_.resize(count);
    client_ended_ = static_cast<bool>(error);
    co_return !error;
}

base::Task<bool> EgressConnection::write(tcp::socket& to, std::string_view bytes) {
    const auto [error, count] = co_await asio::async_write(to, asio::buffer(bytes), as_result());
    touch();
    co_return !error;
}

// Until the end of what `from` sends; false when one of the two broke.
base::Task<bool> EgressConnection::copy(tcp::socket& from, tcp::socket& to) {
    std::vector<char> buffer(limits::kEgressBufferBytes);
    for (;;) {
        const auto [error, count] =
            co_await from.async_read_some(asio::buffer(buffer), as_result());
        touch();
        if (error) {
            co_return error == asio::error::eof;
        }
        if (!co_await write(to, std::string_view(buffer.data(), count))) {
            co_return false;
        }
    }
}

// Until the client is done or expire() cuts it.
base::Task<void> EgressConnection::discard_rest() {
    std::array<char, kReadBytes> buffer;
    while (!client_ended_) {
        const auto [error, count] =
            co_await client_.async_read_some(asio::buffer(buffer), as_result());
        client_ended_ = static_cast<bool>(error);
    }
}

}  // namespace ars::sandbox
