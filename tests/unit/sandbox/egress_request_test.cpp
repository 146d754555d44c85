#include "sandbox/egress_request.hpp"

#include "base/limits.hpp"
#include "sandbox/egress_body.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::sandbox {
namespace {

using namespace std::string_literals;
using State = HeadScanner::State;

State scanned(std::string_view bytes, std::size_t step) {
    HeadScanner scanner;
    auto state = State::more;
    for (std::size_t end = 0; end < bytes.size() && state == State::more;) {
        end = std::min(end + step, bytes.size());
        state = scanner.scan(bytes.substr(0, end));
    }
    return state;
}

// What a client sent, as the proxy understands it; the head must be one that the scanner lets by.
std::expected<EgressRequest, EgressFault> parsed(std::string_view head) {
    HeadScanner scanner;
    EXPECT_EQ(scanner.scan(head), State::complete) << testing::PrintToString(std::string(head));
    EXPECT_EQ(scanner.size(), head.size());
    return parse_egress_request(head);
}

unsigned refused_with(std::string_view head) {
    const auto request = parsed(head);
    return request ? 0 : request.error().status;
}

TEST(HeadScanner, FindsTheEndHoweverTheBytesCome) {
    const std::string head = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
    for (std::size_t step = 1; step <= head.size() + 4; ++step) {
        EXPECT_EQ(scanned(head + "body", step), State::complete);
    }
    HeadScanner scanner;
    EXPECT_EQ(scanner.scan(head + "body"), State::complete);
    EXPECT_EQ(scanner.size(), head.size());
    EXPECT_EQ(scanned(head.substr(0, head.size() - 1), 1), State::more);
}

// C86: no byte that one parser takes for a line's end and another does not.
TEST(Cases, C86_ControlCharactersAndBareLineEndsAreRefusedAtOnce) {
    for (const std::string& bytes :
         {"\x16\x03\x01\x02\x00"s,
          "\r\nGET http://a.example/ HTTP/1.1\r\n\r\n"s,
          "\nGET / HTTP/1.1\n\n"s,
          " GET http://a.example/ HTTP/1.1\r\n\r\n"s,
          "GET http://a.example/ HTTP/1.1\nHost: a\n\n"s,
          "GET http://a.example/ HTTP/1.1\r\nA: b\nTransfer-Encoding: chunked\r\n\r\n"s,
          "GET http://a.example/ HTTP/1.1\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n"s,
          "CONNECT evil.example\0.good.example:443 HTTP/1.1\r\n\r\n"s,
          "GET http://a.example/\x0b HTTP/1.1\r\n\r\n"s,
          "GET http://a.example/ HTTP/1.1\r\nA: \x7f\r\n\r\n"s,
          "GET http://a.example/ HTTP/1.1\r\r\n"s}) {
        EXPECT_EQ(scanned(bytes, 1), State::malformed) << testing::PrintToString(bytes);
        EXPECT_EQ(scanned(bytes, bytes.size()), State::malformed);
    }
}

TEST(HeadScanner, StopsAHeadThatNeverEnds) {
    const std::string endless = "GET http://a.example/" + std::string(64 * 1024, 'a');
    EXPECT_EQ(scanned(endless, 1000), State::too_large);
    EXPECT_EQ(scanned(endless.substr(0, base::limits::kEgressHeadBytes), 1000), State::more);
}

TEST(EgressRequest, ConnectNamesItsTarget) {
    const auto request = parsed("CONNECT Good.Example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n");
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_TRUE(request->tunnel);
    EXPECT_EQ(request->target.text(), "good.example:443");
    EXPECT_EQ(request->head, "");
}

// C86: the host that was checked stands in the target and in Host, whatever the client's Host says.
TEST(Cases, C86_APlainRequestIsWrittenAnewForTheHostThatWasChecked) {
    const auto request = parsed(
        "POST HTTP://Good.Example:8080?q=1 HTTP/1.1\r\n"
        "Host: 169.254.169.254\r\n"
        "Proxy-Authorization: Basic eDp5\r\n"
        "Proxy-Connection: keep-alive\r\n"
        "Connection: keep-alive, X-Hop\r\n"
        "X-Hop: 1\r\n"
        "Keep-Alive: 5\r\n"
        "Upgrade: websocket\r\n"
        "TE: trailers\r\n"
        "Authorization:  Bearer t \r\n"
        "content-length: 5\r\n"
        "Expect: 100-continue\r\n"
        "\r\n"
    );
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_FALSE(request->tunnel);
    EXPECT_EQ(request->target.text(), "good.example:8080");
    EXPECT_EQ(
        request->head,
        "POST /?q=1 HTTP/1.1\r\n"
        "Host: good.example:8080\r\n"
        "Authorization: Bearer t\r\n"
        "Expect: 100-continue\r\n"
        "Content-Length: 5\r\n"
        "Connection: close\r\n\r\n"
    );
    EXPECT_EQ(request->content_length, 5U);
}

TEST(EgressRequest, APlainRequestNeedsNoPath) {
    EXPECT_THAT(
        parsed("GET http://a.example HTTP/1.0\r\n\r\n")->head,
        testing::StartsWith("GET / HTTP/1.0\r\nHost: a.example\r\n")
    );
    EXPECT_THAT(
        parsed("GET http://a.example//b@c:80 HTTP/1.1\r\n\r\n")->head,
        testing::StartsWith("GET //b@c:80 HTTP/1.1\r\nHost: a.example\r\n")
    );
}

TEST(EgressRequest, AConnectionFieldCantTakeTheFramingAway) {
    const auto request = parsed(
        "POST http://a.example/ HTTP/1.1\r\nConnection: content-length, host\r\n"
        "Content-Length: 3\r\n\r\n"
    );
    ASSERT_TRUE(request);
    EXPECT_THAT(request->head, testing::HasSubstr("Content-Length: 3\r\n"));
    EXPECT_THAT(request->head, testing::HasSubstr("Host: a.example\r\n"));
}

TEST(EgressRequest, WhatIsNoProxyRequestIsRefusedWithTheUsage) {
    for (const char* line :
         {"GET / HTTP/1.1",
          "OPTIONS * HTTP/1.1",
          "GET ftp://a.example/ HTTP/1.1",
          "GET https://a.example/ HTTP/1.1",
          "GET //a.example/ HTTP/1.1",
          "GET a.example:80 HTTP/1.1",
          "GET  HTTP/1.1",
          "GET HTTP/1.1",
          "GET http://a.example/ x HTTP/1.1",
          "GET http://a.example/\tx HTTP/1.1",
          "GE(T http://a.example/ HTTP/1.1"}) {
        const auto request = parsed(std::string(line) + "\r\n\r\n");
        ASSERT_FALSE(request) << line;
        EXPECT_EQ(request.error().status, 400U) << line;
        EXPECT_THAT(request.error().message, testing::HasSubstr("CONNECT host:port")) << line;
    }
    EXPECT_EQ(refused_with("GET http://a.example/#x HTTP/1.1\r\n\r\n"), 400U);
    EXPECT_EQ(refused_with("TRACE http://a.example/ HTTP/1.1\r\n\r\n"), 405U);
    EXPECT_EQ(refused_with("connect a.example:443 HTTP/1.1\r\n\r\n"), 405U);
    EXPECT_EQ(refused_with("PRI * HTTP/2.0\r\n\r\n"), 505U);
    EXPECT_EQ(refused_with("GET http://a.example/ HTTP/1.1 \r\n\r\n"), 400U);
}

TEST(Cases, C86_HostsThatAreNoNamesAreRefusedInBothForms) {
    for (const char* host :
         {"127.0.0.1",
          "[::1]",
          "[::ffff:169.254.169.254]",
          "0x7f.1",
          "good.example.",
          "user:pass@good.example",
          "good.example@evil.example",
          "good%2eexample",
          "evil.example\\.good.example",
          ""}) {
        EXPECT_EQ(
            refused_with("CONNECT "s + (*host == 0 ? ":" : host) + ":443 HTTP/1.1\r\n\r\n"), 403U
        ) << host;
        EXPECT_EQ(refused_with("GET http://"s + host + "/ HTTP/1.1\r\n\r\n"), 403U) << host;
    }
}

// Whatever could make us and the server disagree about where a body ends.
TEST(EgressRequest, AmbiguousBodiesAreRefused) {
    const auto post = [](const std::string& fields) {
        return refused_with("POST http://a.example/ HTTP/1.1\r\n" + fields + "\r\n");
    };
    EXPECT_EQ(post("Content-Length: 3\r\n"), 0U);
    EXPECT_EQ(post("Transfer-Encoding: CHUNKED\r\n"), 0U);
    for (const char* fields :
         {"Content-Length: 3\r\nContent-Length: 4\r\n",
          "Content-Length: 3\r\ncontent-length: 3\r\n",
          "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
          "Content-Length: 3, 3\r\n",
          "Content-Length: +3\r\n",
          "Content-Length: -3\r\n",
          "Content-Length: 0x3\r\n",
          "Content-Length: 3 \t4\r\n",
          "Content-Length:\r\n",
          "Content-Length: 99999999999999999999\r\n",
          "Content-Length : 3\r\n",
          "Content-Length\t: 3\r\n",
          " Content-Length: 3\r\n",
          "A: b\r\n Content-Length: 3\r\n",
          "A: b\r\n\tc\r\n",
          "Host: a.example\r\nHost: b.example\r\n",
          ": x\r\n",
          "no colon\r\n",
          "\xc3\xbc: x\r\n"}) {
        EXPECT_EQ(post(fields), 400U) << fields;
    }
    for (const char* fields :
         {"Transfer-Encoding: gzip, chunked\r\n",
          "Transfer-Encoding: chunked, identity\r\n",
          "Transfer-Encoding: xchunked\r\n",
          "Transfer-Encoding: \"chunked\"\r\n",
          "Transfer-Encoding:\r\n"}) {
        EXPECT_EQ(post(fields), 501U) << fields;
    }
    EXPECT_EQ(
        refused_with("POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400U
    );
    EXPECT_EQ(refused_with("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 400U);
    EXPECT_EQ(
        refused_with("CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400U
    );
    EXPECT_EQ(refused_with("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), 0U);
}

TEST(EgressAnswer, GetsItsConnectionClosed) {
    EXPECT_EQ(
        closing_head("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nConnection: close\r\nA: b\r\n\r\n"
    );
    EXPECT_TRUE(is_interim_answer("HTTP/1.1 100 Continue\r\n\r\n"));
    EXPECT_FALSE(is_interim_answer("HTTP/1.1 101 Switching Protocols\r\n\r\n"));
    EXPECT_FALSE(is_interim_answer("HTTP/1.1 200 OK\r\n\r\n"));
    EXPECT_FALSE(is_interim_answer("HTTP/1.1"));
}

TEST(EgressAnswer, ItsHeadIsFoundHoweverTheBytesCome) {
    for (const std::string& head :
         {"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"s, "HTTP/1.1 200 OK\nA: b\n\n"s}) {
        const std::string all = head + "body\n\n";
        for (std::size_t looked_at = 0; looked_at < head.size(); ++looked_at) {
            EXPECT_EQ(answer_head_end(all, looked_at), head.size());
        }
        EXPECT_EQ(answer_head_end(head.substr(0, head.size() - 1), 0), std::string::npos);
    }
}

struct Unchunked {
    std::string data;
    std::string rest;
    ChunkedReader::State state = ChunkedReader::State::more;
};

Unchunked unchunked(std::string_view bytes, std::size_t step) {
    ChunkedReader reader;
    Unchunked out;
    while (!bytes.empty() && out.state == ChunkedReader::State::more) {
        std::string_view piece = bytes.substr(0, step);
        bytes.remove_prefix(piece.size());
        while (!piece.empty() && out.state == ChunkedReader::State::more) {
            std::string_view data;
            out.state = reader.next(piece, data);
            out.data += data;
        }
        out.rest = piece;
    }
    out.rest += bytes;
    return out;
}

TEST(ChunkedReader, GivesTheDataAndLeavesWhatFollows) {
    const std::string body =
        "4\r\nWiki\r\n5;name=\"v\"\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n"
        "0\r\nTrailer: x\r\n\r\nGET /next";
    for (std::size_t step = 1; step <= body.size(); ++step) {
        const Unchunked out = unchunked(body, step);
        EXPECT_EQ(out.state, ChunkedReader::State::done);
        EXPECT_EQ(out.data, "Wikipedia in\r\n\r\nchunks.");
        EXPECT_EQ(out.rest, "GET /next");
    }
    EXPECT_EQ(unchunked("0\r\n\r\n", 1).state, ChunkedReader::State::done);
    EXPECT_EQ(unchunked("0000\r\n\r\n", 1).state, ChunkedReader::State::done);
    EXPECT_EQ(unchunked("5\r\nhel", 1).state, ChunkedReader::State::more);
}

TEST(ChunkedReader, RefusesWhatOthersMayReadInAnotherWay) {
    for (const std::string& body :
         {"\r\n"s,
          "x\r\n"s,
          "-1\r\n"s,
          "+1\r\n"s,
          "0x1\r\n"s,
          " 1\r\n"s,
          "1 \r\n"s,
          "1\na\r\n"s,
          "1\r\na\n"s,
          "1\r\nab"s,
          "1;a\nb\r\n"s,
          "1;\0\r\n"s,
          "1\ra"s,
          "0\r\n\n"s,
          "0\r\nA: b\n\r\n"s,
          "0\r\nA: \0\r\n\r\n"s,
          "1000000000000000\r\n"s,
          "00000000000000001\r\n"s,
          "1;" + std::string(5000, 'x'),
          "0\r\n" + std::string(5000, 'x')}) {
        EXPECT_EQ(unchunked(body, 1).state, ChunkedReader::State::malformed)
            << testing::PrintToString(body);
        EXPECT_EQ(unchunked(body, body.size()).state, ChunkedReader::State::malformed);
    }
}

}  // namespace
}  // namespace ars::sandbox
