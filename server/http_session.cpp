#include "server/http_session.hpp"

#include "server/http_error.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

namespace ars::server {

namespace asio = base::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kKeptOutput = 4096;   // capacity that an idle connection may keep
constexpr std::size_t kGather = 64 * 1024;  // answers to pipelined requests are sent at this size
// How long a closed connection still swallows what the client was sending, so that the kernel does
// not answer with a reset that destroys our last response on its way.
constexpr auto kLinger = std::chrono::seconds(2);

bool is_aborted(const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
}

}  // namespace

HttpSession::HttpSession(
    asio::ip::tcp::socket socket,
    const Router& router,
    const HttpLimits& limits,
    HttpStats& stats,
    const base::Log& log
)
    : socket_(std::move(socket)),
      router_(router),
      limits_(limits),
      stats_(stats),
      log_(log),
      parser_(request_, limits.head_bytes, limits.body_bytes),
      in_(kSmallBuffer) {}

base::Task<void> HttpSession::run() {
    ++stats_.connections;
    struct Leave {
        HttpSession& session;
        ~Leave() {
            session.request_.clear();
            session.count_body();
            --session.stats_.connections;
        }
    } leave{*this};
    try {
        co_await converse();
        co_await linger();
    } catch (const boost::system::system_error&) {
        // The client left, was too slow, or the server stops: nobody is there to be told.
    }
    error_code ignored;
    socket_.close(ignored);
}

void HttpSession::stop() {
    stopping_ = true;
    if (phase_ == Phase::idle) {
        error_code ignored;
        socket_.cancel(ignored);
    } else if (streaming_ != nullptr) {
        streaming_->cancel_all();
    }
}

void HttpSession::expire(TimePoint now) {
    if (now >= deadline_) {
        deadline_ = TimePoint::max();
        expired_ = true;
        error_code ignored;
        socket_.cancel(ignored);
    }
}

base::Task<void> HttpSession::converse() {
    for (;;) {
        const Step step = parse();
        if (step == Step::need_bytes) {
            if (!co_await fill()) {
                co_return;
            }
            continue;
        }
        phase_ = Phase::busy;
        if (step == Step::refused) {
            append(*refusal_, false);
            if (!send_now()) {
                co_await send_rest();
            }
            co_return;
        }
        HttpResponse response = refusal_ ? std::move(*refusal_) : co_await answer();
        // What a handler left of its body is not read: the connection ends.
        const bool keep_alive =
            request_.keep_alive && request_.http_1_1 && !stopping_ && parser_.done();
        if (response.stream && request_.method != Method::head) {
            co_await stream(std::move(response));
            co_return;
        }
        append(response, keep_alive);
        if (!keep_alive || out_.size() >= kGather) {
            if (!send_now()) {
                co_await send_rest();
            }
        }
        if (!keep_alive) {
            co_return;
        }
        parser_.reset();
        count_body();
        std::string().swap(piece_);
        refusal_.reset();
        head_checked_ = false;
        request_deadline_ = TimePoint::max();
    }
}

base::Task<HttpResponse> HttpSession::answer() {
    std::optional<HttpResponse> response;
    request_.peer = this;
    try {
        Router::Reply reply = router_.handle(request_);
        if (auto* ready = std::get_if<HttpResponse>(&reply)) {
            response = std::move(*ready);
        } else {
            response = co_await std::move(std::get<base::Task<HttpResponse>>(reply));
        }
    } catch (const boost::system::system_error& error) {
        if (is_aborted(error)) {
            throw;
        }
        response = failure(error);
    } catch (const std::exception& error) {
        response = failure(error);
    }
    co_return std::move(*response);
}

HttpResponse HttpSession::failure(const std::exception& error) const {
    HttpResponse response =
        error_response(500, "internal", "the server could not do this; its log has the reason");
    response.log_note = error.what();
    return response;
}

void HttpSession::append(const HttpResponse& response, bool keep_alive) {
    ++stats_.responses[static_cast<std::size_t>(std::clamp(response.status / 100, 0, 5))];
    if (!response.log_note.empty()) {
        log_.error(
            "http_failure",
            {{"method", to_string(request_.method)},
             {"path", request_.path()},
             {"status", response.status},
             {"reason", response.log_note}}
        );
    }
    append_head(
        out_, response, keep_alive, response.stream && !response.stream_bytes && request_.http_1_1
    );
    if (request_.method != Method::head) {
        out_ += response.body;
    }
}

// Sends without waiting. True when nothing is left; throws when the connection is broken.
bool HttpSession::send_now() {
    while (sent_ < out_.size()) {
        error_code ec;
        sent_ += socket_.write_some(asio::buffer(out_.data() + sent_, out_.size() - sent_), ec);
        if (ec == asio::error::would_block || ec == asio::error::try_again) {
            return false;
        }
        if (ec) {
            throw boost::system::system_error(ec);
        }
    }
    sent_ = 0;
    out_.clear();
    if (out_.capacity() > kKeptOutput) {
        out_ = std::string();
    }
    return true;
}

base::Task<void> HttpSession::send_rest() {
    deadline_ = steady_clock::now() + limits_.write_timeout;
    co_await asio::async_write(
        socket_, asio::buffer(out_.data() + sent_, out_.size() - sent_), asio::use_awaitable
    );
    deadline_ = TimePoint::max();
    sent_ = out_.size();
    send_now();
}

// Tells the client that no more comes, and waits a little for it to go.
base::Task<void> HttpSession::linger() {
    error_code ec;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ec);
    if (ec || stopping_) {
        co_return;
    }
    phase_ = Phase::idle;
    deadline_ = steady_clock::now() + kLinger;
    const TimePoint end = deadline_;
    while (!ec && steady_clock::now() < end) {
        co_await socket_.async_read_some(
            asio::buffer(in_), asio::redirect_error(asio::use_awaitable, ec)
        );
    }
}

base::Task<void> HttpSession::stream(HttpResponse response) {
    chunked_ = request_.http_1_1 && !response.stream_bytes;
    append(response, false);
    if (!send_now()) {
        co_await send_rest();
    }
    std::vector<char>().swap(in_);
    const auto executor = co_await asio::this_coro::executor;
    base::TaskGroup sender(executor);
    base::TaskGroup watcher(executor);
    struct Streaming {
        HttpSession& session;
        Streaming(HttpSession& owner, base::TaskGroup& tasks) : session(owner) {
            session.phase_ = Phase::streaming;
            session.streaming_ = &tasks;
            ++session.stats_.streams;
        }
        ~Streaming() {
            session.phase_ = Phase::busy;
            session.streaming_ = nullptr;
            --session.stats_.streams;
        }
    } streaming(*this, sender);
    if (stopping_) {
        co_return;
    }
    // Two groups, because a task must not cancel the group that it is in: co_spawn of Boost 1.81
    // terminates when a coroutine that never waited ends cancelled.
    sender.spawn(send_stream(*response.stream));
    watcher.spawn(watch_peer(sender));
    std::exception_ptr error;
    try {
        co_await sender.join();
    } catch (...) {
        error = std::current_exception();
    }
    co_await base::shield_from_cancellation();
    watcher.cancel_all();
    co_await watcher.join();
    if (error) {
        std::rethrow_exception(error);
    }
    in_.resize(kSmallBuffer);
}

base::Task<void> HttpSession::send_stream(StreamBody& body) {
    bool complete = false;
    try {
        co_await body.run(*this);
        complete = true;
    } catch (const boost::system::system_error& error) {
        // A stop ends the stream cleanly: the reader sees no `end` event and comes back with its
        // cursor.
        complete = is_aborted(error) && stopping_ && !mid_write_;
    } catch (const std::exception& error) {
        log_.error("http_stream_failure", {{"path", request_.path()}, {"reason", error.what()}});
    }
    if (!complete || !chunked_) {
        co_return;
    }
    out_ += "0\r\n\r\n";
    try {
        if (!send_now() && !stopping_) {
            co_await send_rest();
        }
    } catch (const boost::system::system_error&) {
        // The reader left at the last moment.
    }
}

// A reader that leaves is noticed at once, not only at the next write.
base::Task<void> HttpSession::watch_peer(base::TaskGroup& sender) {
    for (;;) {
        error_code ec;
        co_await socket_.async_wait(
            asio::ip::tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, ec)
        );
        if (ec) {
            co_return;
        }
        char probe = 0;
        const std::size_t size =
            socket_.receive(asio::buffer(&probe, 1), asio::ip::tcp::socket::message_peek, ec);
        if (ec == asio::error::would_block || ec == asio::error::try_again) {
            continue;
        }
        if (!ec && size > 0) {
            co_return;  // a pipelined request: never answered, the stream closes the connection
        }
        sender.cancel_all();
        co_return;
    }
}

// The bytes go from where they are: a slow reader costs no second copy of them.
base::Task<void> HttpSession::write(std::string_view bytes) {
    if (bytes.empty()) {
        co_return;
    }
    mid_write_ = true;
    const std::string head = chunked_ ? fmt::format("{:x}\r\n", bytes.size()) : std::string();
    const std::string_view tail = chunked_ ? "\r\n" : "";
    std::array parts{asio::buffer(head), asio::buffer(bytes), asio::buffer(tail)};
    error_code ec;
    std::size_t sent = socket_.write_some(parts, ec);
    if (ec && ec != asio::error::would_block && ec != asio::error::try_again) {
        throw boost::system::system_error(ec);
    }
    for (auto& part : parts) {
        const std::size_t taken = std::min(sent, part.size());
        part += taken;
        sent -= taken;
    }
    if (asio::buffer_size(parts) != 0) {
        deadline_ = steady_clock::now() + limits_.write_timeout;
        co_await asio::async_write(socket_, parts, asio::use_awaitable);
        deadline_ = TimePoint::max();
    }
    mid_write_ = false;
}

}  // namespace ars::server
