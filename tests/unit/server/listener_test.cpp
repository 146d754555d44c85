#include "server/listener.hpp"

#include "tests/unit/server/server_fixture.hpp"

namespace ars::server::testing {
namespace {

using std::chrono::milliseconds;
using ListenerTest = ServerTest;

TEST(ParseListenAddress, KnowsAddressesAndLoopback) {
    const auto v4 = parse_listen_address("127.0.0.1:5050");
    ASSERT_TRUE(v4);
    EXPECT_EQ(v4->host, "127.0.0.1");
    EXPECT_EQ(v4->port, 5050);
    EXPECT_TRUE(v4->loopback);
    EXPECT_EQ(parse_listen_address("[::1]:80")->host, "::1");
    EXPECT_TRUE(parse_listen_address("localhost:0")->loopback);
    EXPECT_FALSE(parse_listen_address("0.0.0.0:1")->loopback);
}

TEST(ParseListenAddress, RefusesWhatIsNone) {
    for (const char* text :
         {"",
          "5050",
          "127.0.0.1",
          "127.0.0.1:",
          "127.0.0.1:x",
          "127.0.0.1:65536",
          "::1:80",
          "example.com:80",
          ":80",
          "127.0.0.1:-1"}) {
        const auto parsed = parse_listen_address(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, "bad_listen_address");
    }
}

TEST_F(ListenerTest, ATakenPortIsAnErrorWithARemedy) {
    start();
    const auto second =
        Listener::open(io_.get_executor(), {"127.0.0.1", port_, true}, *api_, *router_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, "listen_failed");
    EXPECT_NE(second.error().message.find("--listen"), std::string::npos);
}

TEST_F(ListenerTest, StopClosesIdleConnections) {
    start();
    RawClient idle = connect();
    RawClient used = connect();
    used.request("GET /api/system/health");
    EXPECT_EQ(used.read_response().status, 200);
    ASSERT_TRUE(eventually([this] { return listener_->connections() == 2; }));
    stop();
    EXPECT_TRUE(idle.at_end());
    EXPECT_TRUE(used.at_end());
    EXPECT_EQ(stats_.connections, 0U);
}

TEST_F(ListenerTest, StopEndsStreamsWithoutAnEndEvent) {
    start();
    const auto run = make_run(2, store::RunStatus::running);
    RawClient reader = connect();
    reader.request("GET " + events_path(run));
    ASSERT_EQ(reader.read_head().status, 200);
    EXPECT_EQ(parse_frames(reader.read_chunk()).size(), 2U);
    ASSERT_TRUE(eventually([this] { return runs_->waiting == 1; }));
    stop();
    EXPECT_EQ(reader.read_to_end(), "0\r\n\r\n");
}

TEST_F(ListenerTest, StopCutsAHalfSentRequestAfterTheGrace) {
    start();
    RawClient client = connect();
    client.send("POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\n");
    ASSERT_TRUE(eventually([this] { return listener_->connections() == 1; }));
    stop(milliseconds(50));
    EXPECT_TRUE(client.at_end());
}

TEST_F(ListenerTest, AConnectionOverTheBoundGets503) {
    HttpLimits limits;
    limits.connections = 2;
    start(limits);
    RawClient first = connect();
    RawClient second = connect();
    ASSERT_TRUE(eventually([this] { return listener_->connections() == 2; }));
    RawClient third = connect();
    const RawResponse refused = third.read_response();
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.code(), "too_many_connections");
    first.close();
    ASSERT_TRUE(eventually([this] { return listener_->connections() == 1; }));
    EXPECT_EQ(get("/api/system/health").status, 200);
}

TEST_F(ListenerTest, AnIdleConnectionIsClosed) {
    HttpLimits limits;
    limits.idle_timeout = milliseconds(60);
    start(limits);
    RawClient client = connect();
    EXPECT_TRUE(client.at_end());
    EXPECT_TRUE(eventually([this] { return listener_->connections() == 0; }));
}

TEST_F(ListenerTest, ASlowHeadAndASlowBodyGet408) {
    HttpLimits limits;
    limits.read_timeout = milliseconds(80);
    start(limits);
    RawClient head = connect();
    head.send("GET /api/system/hea");
    EXPECT_EQ(head.read_response().status, 408);
    RawClient body = connect();
    body.send(
        "POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 100\r\n\r\n{\"query\""
    );
    const RawResponse response = body.read_response();
    EXPECT_EQ(response.status, 408);
    EXPECT_EQ(response.code(), "request_timeout");
    EXPECT_TRUE(body.at_end());
}

}  // namespace
}  // namespace ars::server::testing
