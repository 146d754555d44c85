#include "server/request_parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ars::server {
namespace {

using State = RequestParser::State;

constexpr std::size_t kHead = 1000;
constexpr std::size_t kBody = 5000;

// A client that sends one piece after the other, and what the server has to keep for it.
class Sender {
  public:
    State send(std::string_view piece) {
        kept_ += piece;
        State state = State::need_more;
        kept_.erase(0, parser_.put(kept_, state));
        return state;
    }
    // Sends the piece again and again, until the parser decides or an absurd amount was sent.
    State send_endlessly(std::string_view piece) {
        State state = State::need_more;
        for (std::size_t sent = 0; state == State::need_more && sent < 100 * kHead;
             sent += piece.size()) {
            state = send(piece);
            most_kept_ = std::max(most_kept_, kept_.size());
        }
        return state;
    }
    [[nodiscard]] std::size_t most_kept() const { return most_kept_; }

    HttpRequest request;

  private:
    RequestParser parser_{request, kHead, kBody};
    std::string kept_;
    std::size_t most_kept_ = 0;
};

constexpr std::string_view kChunked =
    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(RequestParser, AHeadHasItsBoundHoweverItIsCut) {
    const std::string field = "X-A: " + std::string(93, 'a') + "\r\n";
    for (std::size_t step = 1; step <= field.size(); ++step) {
        Sender sender;
        sender.send("GET /x HTTP/1.1\r\n");
        State state = State::need_more;
        for (std::size_t i = 0; state == State::need_more && i < 100; ++i) {
            for (std::size_t at = 0; state == State::need_more && at < field.size(); at += step) {
                state = sender.send(std::string_view(field).substr(at, step));
            }
        }
        EXPECT_EQ(state, State::head_too_large) << step;
    }
    Sender whole;
    std::string head = "GET /x HTTP/1.1\r\nX: ";
    head += std::string(kHead - head.size() - 4, 'x') + "\r\n\r\n";
    EXPECT_EQ(whole.send(head), State::done) << "exactly as long as it may be";
    Sender longer;
    EXPECT_EQ(longer.send(head.replace(5, 1, "xx")), State::head_too_large);
}

TEST(RequestParser, AMalformedHeadIsRefusedBeforeItIsComplete) {
    Sender tls;
    EXPECT_EQ(tls.send("\x16\x03\x01\x02"), State::malformed);
    Sender old;
    EXPECT_EQ(old.send("GET /x\r\n"), State::malformed);
    Sender cut;
    EXPECT_EQ(cut.send("GET /x HT"), State::need_more);
    EXPECT_EQ(cut.send("TP/1.1\r\nno colon\r\n"), State::malformed);
}

TEST(RequestParser, WhatStandsAroundChunksHasTheBoundOfAHead) {
    Sender extension;
    ASSERT_EQ(extension.send(kChunked), State::need_more);
    ASSERT_EQ(extension.send("1;e="), State::need_more);
    EXPECT_EQ(extension.send_endlessly("aaaaaaaaaa"), State::head_too_large);
    EXPECT_LE(extension.most_kept(), kHead + 10);

    Sender zeros;
    ASSERT_EQ(zeros.send(kChunked), State::need_more);
    EXPECT_EQ(zeros.send_endlessly("0000000000"), State::head_too_large);

    Sender trailers;
    ASSERT_EQ(trailers.send(kChunked), State::need_more);
    ASSERT_EQ(trailers.send("0\r\n"), State::need_more);
    EXPECT_EQ(trailers.send_endlessly("X: y\r\n"), State::head_too_large);
    EXPECT_LE(trailers.most_kept(), kHead + 10);

    Sender at_once;
    EXPECT_EQ(
        at_once.send(std::string(kChunked) + "1;e=" + std::string(2 * kHead, 'a') + "\r\nx"),
        State::head_too_large
    );
}

// They come after the head was judged: a key or an id in them was never looked at.
TEST(RequestParser, TrailersAreNoHeaders) {
    Sender sender;
    EXPECT_EQ(
        sender.send(
            std::string(kChunked) + "1\r\nx\r\n0\r\nAuthorization: Bearer y\r\nX-Later: 1\r\n\r\n"
        ),
        State::done
    );
    EXPECT_EQ(sender.request.body, "x");
    EXPECT_EQ(sender.request.count_headers("authorization"), 0U);
    EXPECT_EQ(sender.request.count_headers("x-later"), 0U);
    EXPECT_EQ(sender.request.count_headers("host"), 1U);
}

TEST(RequestParser, HeadsThatContradictThemselvesAreRefused) {
    for (const char* fields :
         {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
          "Content-Length: 1\r\nContent-Length: 2\r\n",
          "Content-Length: 1, 2\r\n",
          "Content-Length: -1\r\n",
          "Content-Length: +1\r\n",
          "Content-Length: 0x1\r\n",
          "Content-Length: 99999999999999999999\r\n",
          "Content-Length:\r\n",
          "Content-Length : 1\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
        Sender sender;
        EXPECT_EQ(
            sender.send(std::string("POST /x HTTP/1.1\r\nHost: a\r\n") + fields + "\r\nx"),
            State::malformed
        ) << fields;
    }
    for (const char* coding :
         {"gzip",
          "gzip, chunked",
          "chunked, gzip",
          "chunked, chunked",
          "identity",
          "\"chunked\"",
          "chunked;q=1",
          ""}) {
        Sender sender;
        const State state = sender.send(
            std::string("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ") + coding + "\r\n\r\n"
        );
        EXPECT_EQ(state, State::unsupported) << coding;
    }
    Sender old;
    EXPECT_EQ(
        old.send("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        State::malformed
    ) << "HTTP/1.0 knows no transfer codings: whoever sent this reads its end elsewhere";
}

}  // namespace
}  // namespace ars::server
