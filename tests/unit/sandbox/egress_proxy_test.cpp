#include "sandbox/egress_proxy.hpp"

#include "tests/support/name_server.hpp"
#include "tests/unit/sandbox/egress_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include <fcntl.h>

namespace ars::sandbox {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Peer;
using ::testing::StartsWith;
using testing::Upstream;
using tests::NameServer;

// A proxy on a port of this machine, on a thread of its own.
class ProxyUnderTest {
  public:
    ProxyUnderTest(
        const std::vector<std::string>& allowed, const NameServer& names, EgressLimits limits = {}
    )
        : log_(2, base::LogLevel::off) {
        auto listening = testing::listen_somewhere();
        port_ = listening.port;
        proxy_ = std::make_unique<EgressProxy>(
            io_.get_executor(),
            std::move(listening.socket),
            EgressRules::parse(allowed).value(),
            names.name(),
            1,
            log_,
            counts_,
            limits
        );
        proxy_->start();
        thread_ = std::thread([this] { io_.run(); });
    }
    ~ProxyUnderTest() {
        close();
        guard_.reset();
        thread_.join();
    }
    ProxyUnderTest(const ProxyUnderTest&) = delete;
    ProxyUnderTest& operator=(const ProxyUnderTest&) = delete;

    void close() {
        if (proxy_) {
            boost::asio::co_spawn(io_, proxy_->close(), boost::asio::use_future).get();
            proxy_.reset();
        }
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] Peer client() const { return Peer::to(port_); }
    [[nodiscard]] EgressCounts counts() {
        auto read = [this] { return *counts_; };
        return boost::asio::post(io_, std::packaged_task<EgressCounts()>(read)).get();
    }
    // All that one request gets.
    std::string ask(const std::string& request) {
        Peer peer = client();
        EXPECT_TRUE(peer.send(request));
        return peer.receive_all();
    }
    std::string get(const std::string& url) { return ask("GET " + url + " HTTP/1.1\r\n\r\n"); }

  private:
    base::Log log_;
    std::shared_ptr<EgressCounts> counts_ = std::make_shared<EgressCounts>();
    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
        io_.get_executor()
    };
    std::unique_ptr<EgressProxy> proxy_;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

const NameServer::Table kNames = {
    {"good.test", {"127.0.0.1"}},
    {"two.test", {"10.1.1.1", "127.0.0.1", "fd00::1"}},
    {"metadata.test", {"169.254.169.254"}},
    {"private.test", {"10.0.0.1", "::1", "::ffff:127.0.0.1"}},
    {"nowhere.test", {}},
};

std::string at(const char* host, const Upstream& upstream) {
    return host + ":"s + std::to_string(upstream.port());
}
std::string on_loopback(const char* host, const Upstream& upstream) {
    return at(host, upstream) + "=127.0.0.0/8";
}

class EgressProxyTest : public ::testing::Test {
  protected:
    NameServer names_{kNames};
};

TEST_F(EgressProxyTest, PassesAPlainRequestOnAndClosesAfterItsAnswer) {
    const Upstream upstream(testing::serve_page);
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    const std::string answer = proxy.ask(
        "GET http://GOOD.test:" + std::to_string(upstream.port()) +
        "/a?b HTTP/1.1\r\nHost: evil.test\r\nX: y\r\nConnection: keep-alive\r\n\r\n"
    );
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nConnection: close\r\n"));
    EXPECT_THAT(
        answer,
        HasSubstr(
            "page of GET /a?b HTTP/1.1\r\nHost: " + at("good.test", upstream) +
            "\r\nX: y\r\nConnection: close\r\n\r\n"
        )
    );
    EXPECT_EQ(proxy.counts().connections, 1U);
    EXPECT_EQ(proxy.counts().refused, 0U);
}

TEST_F(EgressProxyTest, TunnelsBothWaysAndKeepsWhatCameEarly) {
    const Upstream upstream([](Peer& peer) {
        peer.send("hello ");
        peer.send("you said " + peer.receive_until("!"));
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    client.send("CONNECT " + at("good.test", upstream) + " HTTP/1.1\r\n\r\nearly");
    const std::string start = client.receive_until("hello ");
    EXPECT_THAT(start, StartsWith("HTTP/1.1 200 Connection established\r\n\r\n"));
    client.send(" bytes!");
    EXPECT_EQ(client.receive_all(), "you said early bytes!");
}

TEST_F(EgressProxyTest, ATunnelCanBeHalfClosed) {
    const Upstream upstream([](Peer& peer) {
        const std::string all = peer.receive_all();  // until the client has ended its side
        peer.send("got " + std::to_string(all.size()));
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    client.send("CONNECT " + at("good.test", upstream) + " HTTP/1.1\r\n\r\n");
    client.receive_until("\r\n\r\n");
    client.send(std::string(1'000'000, 'x'));
    client.end_sending();
    EXPECT_EQ(client.receive_all(), "got 1000000");
}

// C85: a name that is not allowed is refused before anybody is asked for its address.
TEST_F(EgressProxyTest, C85_ANameOutsideTheListIsNeverLookedUp) {
    const Upstream upstream(testing::serve_page);
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    for (const std::string& request :
         {"GET http://secret.evil.test/ HTTP/1.1\r\n\r\n"s,
          "CONNECT secret.evil.test:443 HTTP/1.1\r\n\r\n"s,
          "CONNECT good.test:22 HTTP/1.1\r\n\r\n"s}) {
        const std::string answer = proxy.ask(request);
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
        EXPECT_THAT(
            answer.substr(0, answer.find("\r\n")),
            HasSubstr("is not in this policy's allowed_hosts")
        );
        EXPECT_THAT(answer, HasSubstr("allowed: " + at("good.test", upstream)));
    }
    EXPECT_THAT(names_.asked(), ::testing::IsEmpty());
    EXPECT_EQ(proxy.counts().refused, 3U);
    EXPECT_EQ(upstream.connections(), 0);
}

TEST_F(EgressProxyTest, AnEmptyListRefusesEverything) {
    ProxyUnderTest proxy({}, names_);
    EXPECT_THAT(proxy.get("http://good.test/"), HasSubstr("nothing can be reached"));
    EXPECT_THAT(names_.asked(), ::testing::IsEmpty());
}

// C86: an allowed name whose owner points it at this machine or at metadata.
TEST_F(EgressProxyTest, C86_ANameThatLeadsToAPrivateAddressIsRefused) {
    const Upstream upstream(testing::serve_page);
    ProxyUnderTest proxy(
        {at("good.test", upstream), "metadata.test", "private.test", "*.localhost", "localhost"},
        names_
    );
    const std::string answer = proxy.get("http://" + at("good.test", upstream) + "/");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
    EXPECT_THAT(answer, HasSubstr("good.test leads to 127.0.0.1, which is loopback"));
    EXPECT_THAT(proxy.get("http://metadata.test/latest"), HasSubstr("169.254.169.254"));
    EXPECT_THAT(proxy.get("http://private.test/"), StartsWith("HTTP/1.1 403 "));
    EXPECT_THAT(proxy.get("http://localhost/"), StartsWith("HTTP/1.1 403 "));
    EXPECT_THAT(proxy.get("http://a.localhost/"), StartsWith("HTTP/1.1 403 "));
    EXPECT_EQ(upstream.connections(), 0);
}

TEST_F(EgressProxyTest, C86_OfSeveralAddressesOnlyTheAllowedOnesAreDialled) {
    const Upstream upstream(testing::serve_page);
    ProxyUnderTest proxy({on_loopback("two.test", upstream)}, names_);
    EXPECT_THAT(proxy.get("http://" + at("two.test", upstream) + "/"), StartsWith("HTTP/1.1 200 "));
    // Once for each family: what was checked is what is dialled.
    EXPECT_THAT(names_.asked(), ::testing::ElementsAre("two.test", "two.test"));
}

// C86: an answer that sends the client elsewhere is only an answer; the next request is checked.
TEST_F(EgressProxyTest, C86_ARedirectToMetadataEndsAtTheNextRequest) {
    const Upstream upstream([](Peer& peer) {
        peer.receive_until("\r\n\r\n");
        peer.send(
            "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\n"
            "Content-Length: 0\r\n\r\n"
        );
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    EXPECT_THAT(
        proxy.get("http://" + at("good.test", upstream) + "/"),
        HasSubstr("Location: http://169.254.169.254/latest")
    );
    const std::string answer = proxy.get("http://169.254.169.254/latest");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
    EXPECT_THAT(answer, HasSubstr("addresses are not accepted"));
}

TEST_F(EgressProxyTest, TellsWhatIsWrongWithAServer) {
    ProxyUnderTest proxy({"missing.test", "nowhere.test", "good.test:1=127.0.0.0/8"}, names_);
    EXPECT_THAT(proxy.get("http://missing.test/"), StartsWith("HTTP/1.1 502 "));
    EXPECT_THAT(proxy.get("http://missing.test/"), HasSubstr("can't be resolved"));
    EXPECT_THAT(proxy.get("http://nowhere.test/"), StartsWith("HTTP/1.1 502 "));
    EXPECT_THAT(proxy.get("http://good.test:1/"), HasSubstr("does not accept the connection"));
    const Upstream silent([](Peer& peer) { peer.receive_until("\r\n\r\n"); });
    ProxyUnderTest second({on_loopback("good.test", silent)}, names_);
    EXPECT_THAT(
        second.get("http://" + at("good.test", silent) + "/"),
        HasSubstr("502 the server closed the connection without an answer")
    );
    EXPECT_EQ(proxy.counts().refused + second.counts().refused, 0U);
}

TEST_F(EgressProxyTest, ANameServerThatSaysNothingIsWaitedForOnlySoLong) {
    const NameServer silent(kNames, true);
    ProxyUnderTest proxy({"good.test"}, silent, {.connect = 200ms});
    EXPECT_THAT(proxy.get("http://good.test/"), StartsWith("HTTP/1.1 504 "));
}

TEST_F(EgressProxyTest, AHeadMayComeByteByByte) {
    const Upstream upstream(testing::serve_page);
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    for (const char c : "GET http://" + at("good.test", upstream) + "/ HTTP/1.1\r\n\r\n") {
        client.send({&c, 1});
    }
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(EgressProxyTest, AHeadThatIsTooLongTooSlowOrNoHttpEndsTheConnection) {
    ProxyUnderTest proxy({"good.test"}, names_, {.head = 200ms, .linger = 200ms});
    EXPECT_THAT(
        proxy.ask("GET http://good.test/" + std::string(1'000'000, 'a')),
        StartsWith("HTTP/1.1 431 ")
    );
    Peer slow = proxy.client();
    slow.send("GET http://good.");
    EXPECT_EQ(slow.receive_all(), "");
    EXPECT_THAT(proxy.ask("\x16\x03\x01\x02"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(proxy.ask("SSH-2.0-OpenSSH_9\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

// A second request on the connection would be one that nobody checked.
TEST_F(EgressProxyTest, WhatFollowsARequestReachesNobody) {
    std::promise<std::string> received;
    const Upstream upstream([&](Peer& peer) {
        std::string all = peer.receive_until("12345");
        peer.send("HTTP/1.1 200 OK\r\n\r\nfirst");
        peer.end_sending();
        received.set_value(all + peer.receive_all());
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_, {.linger = 200ms});
    const std::string url = "http://" + at("good.test", upstream);
    const std::string answer = proxy.ask(
        "POST " + url + "/first HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345" +  //
        "GET " + url + "/second HTTP/1.1\r\n\r\n"
    );
    EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\nfirst"));
    EXPECT_THAT(received.get_future().get(), Not(HasSubstr("second")));
}

TEST_F(EgressProxyTest, AChunkedBodyIsPutTogetherAnew) {
    std::promise<std::string> received;
    const Upstream upstream([&](Peer& peer) {
        received.set_value(peer.receive_until("\r\n0\r\n\r\n"));
        peer.send("HTTP/1.1 204 No Content\r\n\r\n");
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    client.send(
        "POST http://" + at("good.test", upstream) +
        "/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0004;x=\"y\"\r\nabcd\r\n"
    );
    std::this_thread::sleep_for(20ms);
    client.send("0\r\nTrailer: dropped\r\n\r\nGET http://other/");
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 204 "));
    EXPECT_THAT(
        received.get_future().get(),
        ::testing::EndsWith("Connection: close\r\n\r\n4\r\nabcd\r\n0\r\n\r\n")
    );
}

TEST_F(EgressProxyTest, ABrokenChunkedBodyNeverLooksWhole) {
    std::promise<std::string> received;
    const Upstream upstream([&](Peer& peer) { received.set_value(peer.receive_all()); });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    proxy.ask(
        "POST http://" + at("good.test", upstream) +
        "/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcdX0\r\n\r\n"
    );
    EXPECT_THAT(received.get_future().get(), Not(HasSubstr("0\r\n\r\n")));
}

TEST_F(EgressProxyTest, AClientThatBreaksOffItsBodyIsSeenAsSuch) {
    std::promise<std::string> received;
    const Upstream upstream([&](Peer& peer) { received.set_value(peer.receive_all()); });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    client.send(
        "POST http://" + at("good.test", upstream) + "/ HTTP/1.1\r\nContent-Length: 10\r\n\r\n1234"
    );
    client.close();
    auto seen = received.get_future();
    ASSERT_EQ(seen.wait_for(15s), std::future_status::ready) << "the server was not told";
    EXPECT_THAT(seen.get(), ::testing::EndsWith("\r\n\r\n1234"));
}

TEST_F(EgressProxyTest, ALargeBodyAndALargeAnswerPass) {
    const std::string large(20'000'000, 'z');
    const Upstream upstream([&](Peer& peer) {
        const std::string request = peer.receive_until("end");
        peer.send("HTTP/1.1 200 OK\r\nX-Got: " + std::to_string(request.size()) + "\r\n\r\n");
        peer.send(large);
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    const std::string answer = proxy.ask(
        "PUT http://" + at("good.test", upstream) + "/ HTTP/1.1\r\nContent-Length: " +
        std::to_string(large.size() + 3) + "\r\n\r\n" + large + "end"
    );
    EXPECT_GT(answer.size(), large.size());
}

TEST_F(EgressProxyTest, InterimAnswersPassAndTheLastOneCloses) {
    const Upstream upstream([](Peer& peer) {
        peer.receive_until("\r\n\r\n");
        peer.send("HTTP/1.1 100 Continue\r\n\r\n");
        const std::string body = peer.receive_until("body");
        peer.send("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n" + body);
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    client.send(
        "POST http://" + at("good.test", upstream) +
        "/ HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    );
    EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body");
    EXPECT_EQ(
        client.receive_all(),
        "HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\n\r\nbody"
    );
}

TEST_F(EgressProxyTest, AnAnswerBeforeTheEndOfTheBodyIsNotLost) {
    const Upstream upstream([](Peer& peer) {
        peer.receive_until("\r\n\r\n");
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    Peer client = proxy.client();
    client.send(
        "PUT http://" + at("good.test", upstream) +
        "/ HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n" + std::string(100'000, 'x')
    );
    EXPECT_THAT(client.receive_until("\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
}

// Neither a server that never stops nor a client that never reads makes the proxy hold more than
// its buffers.
TEST_F(EgressProxyTest, AClientThatNeverReadsHoldsTheServerBackAndIsCut) {
    std::promise<std::size_t> sent;
    const Upstream upstream([&](Peer& peer) {
        const std::string piece(64UL * 1024, 'x');
        std::size_t bytes = 0;
        while (peer.send(piece)) {
            bytes += piece.size();
        }
        sent.set_value(bytes);
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_, {.idle = 300ms});
    Peer client = proxy.client();
    client.send("CONNECT " + at("good.test", upstream) + " HTTP/1.1\r\n\r\n");
    EXPECT_LT(sent.get_future().get(), 64U << 20U);  // what the kernel's socket buffers take
}

TEST_F(EgressProxyTest, AQuietConnectionIsCut) {
    std::promise<void> ended;
    const Upstream upstream([&](Peer& peer) {
        peer.receive_all();
        ended.set_value();
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_, {.idle = 100ms});
    Peer client = proxy.client();
    client.send("CONNECT " + at("good.test", upstream) + " HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 200 "));
    ended.get_future().get();
}

TEST_F(EgressProxyTest, ConnectionsOverTheBoundAreToldSoAndLaterOnesServed) {
    const Upstream upstream(testing::serve_page);
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_, {.connections = 8});
    {
        std::vector<Peer> idle;
        for (int i = 0; i < 8; ++i) {
            idle.push_back(proxy.client());
        }
        for (int i = 0; i < 500; ++i) {
            EXPECT_THAT(proxy.client().receive_all(), StartsWith("HTTP/1.1 503 "));
        }
        EXPECT_EQ(proxy.counts().open, 8U);
    }
    while (proxy.counts().open > 0) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_THAT(
        proxy.get("http://" + at("good.test", upstream) + "/"), StartsWith("HTTP/1.1 200 ")
    );
}

TEST_F(EgressProxyTest, ClosingCutsWhateverIsGoingOn) {
    const NameServer silent(kNames, true);
    std::promise<void> ended;
    const Upstream upstream([&](Peer& peer) {
        peer.receive_all();
        ended.set_value();
    });
    ProxyUnderTest proxy({on_loopback("good.test", upstream)}, names_);
    ProxyUnderTest waiting({"good.test"}, silent);
    Peer head = proxy.client();
    head.send("GET http");
    Peer tunnel = proxy.client();
    tunnel.send("CONNECT " + at("good.test", upstream) + " HTTP/1.1\r\n\r\n");
    tunnel.receive_until("\r\n\r\n");
    Peer look_up = waiting.client();
    look_up.send("GET http://good.test/ HTTP/1.1\r\n\r\n");
    while (silent.asked().empty()) {
        std::this_thread::sleep_for(1ms);
    }
    const Peer untouched = proxy.client();
    proxy.close();
    waiting.close();
    ended.get_future().get();
    EXPECT_EQ(head.receive_all(), "");
    EXPECT_EQ(tunnel.receive_all(), "");
    EXPECT_EQ(look_up.receive_all(), "");
    EXPECT_EQ(proxy.counts().open + waiting.counts().open, 0U);
}

}  // namespace
}  // namespace ars::sandbox
