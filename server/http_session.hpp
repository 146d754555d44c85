// One connection: reads requests, lets the router answer them, writes the answers in order.
// Pipelined requests that arrived together are answered in one write.
//
// Its deadlines are plain time points that the listener's one ticker compares: no timer per read
// and write. Nothing here knows what a run is.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "server/http_limits.hpp"
#include "server/http_message.hpp"
#include "server/request_parser.hpp"
#include "server/router.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

class HttpSession final : private StreamWriter, private HttpPeer {
  public:
    // All references outlive the session.
    HttpSession(
        base::asio::ip::tcp::socket socket,
        const Router& router,
        const HttpLimits& limits,
        HttpStats& stats,
        const base::Log& log
    );

    // Serves the connection to its end. Throws operation_aborted only when the coroutine is
    // cancelled.
    base::Task<void> run();
    // No further request: an idle connection closes now, a stream ends, an answer under way is
    // completed.
    void stop();
    // Ends what takes longer than it may.
    void expire(std::chrono::steady_clock::time_point now);

  private:
    using TimePoint = std::chrono::steady_clock::time_point;
    enum class Phase : std::uint8_t { idle, reading, busy, streaming };
    enum class Step : std::uint8_t { need_bytes, request_ready, refused };

    static constexpr std::size_t kSmallBuffer = 1024;  // of an idle connection: most requests fit

    base::Task<void> converse();

    base::Task<HttpResponse> answer();
    [[nodiscard]] HttpResponse failure(const std::exception& error) const;
    void append(const HttpResponse& response, bool keep_alive);

    bool send_now();
    base::Task<void> send_rest();
    base::Task<void> linger();

    base::Task<void> stream(HttpResponse response);
    base::Task<void> send_stream(StreamBody& body);
    base::Task<void> watch_peer(base::TaskGroup& sender);
    base::Task<void> write(std::string_view bytes) override;

    // http_session_reading.cpp
    Step parse();
    Step check_head(RequestParser::State state);
    Step refuse(HttpResponse response);
    base::Task<bool> fill();
    void make_room();
    void count_body();
    base::Task<base::Result<std::string_view>> read_body() override;
    base::Task<bool> fill_body();
    [[nodiscard]] bool has_left() override;

    base::asio::ip::tcp::socket socket_;
    const Router& router_;
    const HttpLimits& limits_;
    HttpStats& stats_;
    const base::Log& log_;

    HttpRequest request_;
    RequestParser parser_;
    std::vector<char> in_;  // [begin_, end_) is read but not parsed
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::string out_;  // answers that are not sent yet, from sent_ on
    std::size_t sent_ = 0;
    std::optional<HttpResponse> refusal_;

    Phase phase_ = Phase::idle;
    TimePoint deadline_ = TimePoint::max();          // of the await under way
    TimePoint request_deadline_ = TimePoint::max();  // of the request that is being read
    std::string piece_;                              // what read_body() gave last
    std::size_t counted_body_ = 0;                   // what stats_.body_bytes has of this one
    bool head_checked_ = false;
    bool stopping_ = false;
    bool expired_ = false;
    bool chunked_ = false;    // framing of the stream under way
    bool mid_write_ = false;  // a chunk was begun and not completed
    base::TaskGroup* streaming_ = nullptr;
};

}  // namespace ars::server
