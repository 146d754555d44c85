// How a session reads: heads and whole bodies as they come, a body piece by piece for a handler
// that takes it so, and whether the client is still there.
#include "server/http_error.hpp"
#include "server/http_session.hpp"

#include <boost/asio/buffer.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ars::server {

namespace asio = base::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kLargeBuffer = 16 * 1024;  // while a body arrives
constexpr std::size_t kBodyBuffer = 64 * 1024;   // while a handler reads it
constexpr std::size_t kLeastRead = 512;

HttpResponse body_too_large(std::uint64_t most) {
    return error_response(413, "body_too_large", fmt::format("the body is over {} bytes", most));
}

}  // namespace

HttpSession::Step HttpSession::parse() {
    auto state = RequestParser::State::need_more;
    if (begin_ < end_) {
        begin_ += parser_.put({in_.data() + begin_, end_ - begin_}, state);
    }
    count_body();
    if (counted_body_ > kSmallBody && stats_.body_bytes > limits_.all_bodies_bytes) {
        return refuse(error_response(
            503, "bodies_busy", "other requests' bodies take all the memory there is for them"
        ));
    }
    switch (state) {
        case RequestParser::State::malformed:
            return refuse(
                error_response(400, "bad_request", "this is not a well-formed HTTP request")
            );
        case RequestParser::State::unsupported:
            return refuse(error_response(
                400,
                "unsupported_transfer_encoding",
                "only the transfer coding chunked is understood"
            ));
        case RequestParser::State::head_too_large:
            return refuse(error_response(
                431,
                "head_too_large",
                fmt::format(
                    "request line and headers, or trailers, are over {} bytes", limits_.head_bytes
                )
            ));
        case RequestParser::State::body_too_large:
            return refuse(body_too_large(limits_.body_bytes));
        case RequestParser::State::need_more:
        case RequestParser::State::done:
            break;
    }
    if (parser_.head_done() && !head_checked_) {
        head_checked_ = true;
        return check_head(state);
    }
    return state == RequestParser::State::done ? Step::request_ready : Step::need_bytes;
}

// Decides on the head alone, so that a refused client does not upload its body first.
HttpSession::Step HttpSession::check_head(RequestParser::State state) {
    const bool whole = state == RequestParser::State::done;
    if (request_.http_1_1 && request_.count_headers("host") != 1) {
        return refuse(error_response(400, "bad_host", "exactly one Host header is needed"));
    }
    refusal_ = router_.admit(request_);
    const BodyHandler* const reads_body = refusal_ ? nullptr : request_.route->reads_body();
    const std::uint64_t most = reads_body != nullptr ? reads_body->body_bytes : limits_.body_bytes;
    if (!refusal_ && !parser_.limit_body(most)) {
        return refuse(body_too_large(most));
    }
    if (whole) {
        return Step::request_ready;
    }
    if (refusal_) {
        return Step::refused;
    }
    if (const auto expect = request_.header("expect"); expect && request_.http_1_1) {
        if (!equal_ignoring_case(*expect, "100-continue")) {
            return refuse(
                error_response(417, "unknown_expectation", "only 100-continue is understood")
            );
        }
        if (request_.body.empty()) {
            out_ += "HTTP/1.1 100 Continue\r\n\r\n";
        }
    }
    if (reads_body != nullptr) {
        request_deadline_ = steady_clock::now() + limits_.body_timeout;
        return Step::request_ready;
    }
    return Step::need_bytes;
}

HttpSession::Step HttpSession::refuse(HttpResponse response) {
    refusal_ = std::move(response);
    return Step::refused;
}

// Sends what is waiting, then reads more. False when the connection ends.
base::Task<bool> HttpSession::fill() {
    if (!send_now()) {
        co_await send_rest();
    }
    make_room();
    const bool started = parser_.started();
    phase_ = started ? Phase::reading : Phase::idle;
    if (stopping_ && !started) {
        co_return false;
    }
    const TimePoint now = steady_clock::now();
    if (started && request_deadline_ == TimePoint::max()) {
        request_deadline_ = now + limits_.read_timeout;
    }
    deadline_ = started ? request_deadline_ : now + limits_.idle_timeout;
    const auto [ec, size] = co_await socket_.async_read_some(
        asio::buffer(in_.data() + end_, in_.size() - end_), asio::as_tuple(asio::use_awaitable)
    );
    deadline_ = TimePoint::max();
    if (expired_ && started) {
        append(
            error_response(
                408,
                "request_timeout",
                fmt::format("the request did not arrive within {} ms", limits_.read_timeout.count())
            ),
            false
        );
        send_now();
    }
    if (expired_ || ec || size == 0) {
        co_return false;
    }
    end_ += size;
    co_return true;
}

void HttpSession::make_room() {
    if (begin_ == end_) {
        begin_ = end_ = 0;
        const std::size_t wanted =
            parser_.started() && parser_.head_done() ? kLargeBuffer : kSmallBuffer;
        if (in_.size() != wanted && (wanted > in_.size() || !parser_.started())) {
            in_ = std::vector<char>(wanted);
        }
        return;
    }
    if (in_.size() - end_ >= kLeastRead) {
        return;
    }
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (in_.size() - end_ < kLeastRead) {
        // The parser wants a head as a whole; past its bound it refuses it.
        in_.resize(std::max(in_.size() * 2, end_ + kLeastRead));
    }
}

base::Task<base::Result<std::string_view>> HttpSession::read_body() {
    const BodyHandler* const route = request_.route->reads_body();
    piece_.clear();
    std::swap(piece_, request_.body);  // what came together with the head
    while (piece_.empty() && !parser_.done()) {
        auto state = RequestParser::State::need_more;
        if (begin_ < end_) {
            begin_ += parser_.put({in_.data() + begin_, end_ - begin_}, state);
        }
        if (state == RequestParser::State::body_too_large) {
            co_return base::fail(
                base::ErrorKind::too_large,
                "body_too_large",
                fmt::format("the body is over {} bytes", route->body_bytes)
            );
        }
        if (state != RequestParser::State::need_more && state != RequestParser::State::done) {
            co_return base::fail(
                base::ErrorKind::invalid, "bad_request", "the body is not well-formed HTTP"
            );
        }
        std::swap(piece_, request_.body);
        if (piece_.empty() && !parser_.done() && !co_await fill_body()) {
            co_return base::fail(
                base::ErrorKind::timeout,
                "request_timeout",
                fmt::format(
                    "the body did not arrive: nothing for {} ms, or not all of it within {} ms",
                    limits_.read_timeout.count(),
                    limits_.body_timeout.count()
                )
            );
        }
    }
    co_return std::string_view(piece_);
}

// False when it took too long.
base::Task<bool> HttpSession::fill_body() {
    if (!send_now()) {  // "100 Continue"
        co_await send_rest();
    }
    if (in_.size() < kBodyBuffer) {
        in_.resize(kBodyBuffer);
    }
    std::copy(
        in_.begin() + static_cast<std::ptrdiff_t>(begin_),
        in_.begin() + static_cast<std::ptrdiff_t>(end_),
        in_.begin()
    );
    end_ -= begin_;
    begin_ = 0;
    deadline_ = std::min(request_deadline_, steady_clock::now() + limits_.read_timeout);
    const auto [ec, size] = co_await socket_.async_read_some(
        asio::buffer(in_.data() + end_, in_.size() - end_), asio::as_tuple(asio::use_awaitable)
    );
    deadline_ = TimePoint::max();
    if (expired_) {
        expired_ = false;
        co_return false;
    }
    if (ec || size == 0) {
        throw boost::system::system_error(asio::error::operation_aborted);
    }
    end_ += size;
    co_return true;
}

void HttpSession::count_body() {
    stats_.body_bytes -= counted_body_;
    counted_body_ = request_.body.size();
    stats_.body_bytes += counted_body_;
}

bool HttpSession::has_left() {
    char probe = 0;
    error_code ec;
    socket_.receive(asio::buffer(&probe, 1), asio::ip::tcp::socket::message_peek, ec);
    return ec && ec != asio::error::would_block && ec != asio::error::try_again;
}

}  // namespace ars::server
