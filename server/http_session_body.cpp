// What a session does while a handler reads its request's body, or waits for something else.
#include "server/http_session.hpp"

#include <boost/asio/buffer.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace ars::server {

namespace asio = base::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kBodyBuffer = 64 * 1024;

}  // namespace

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
