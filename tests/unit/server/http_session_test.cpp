#include "server/http_session.hpp"

#include "tests/unit/server/server_fixture.hpp"

namespace ars::server::testing {
namespace {

using HttpSessionTest = ServerTest;

constexpr std::string_view kHealth = "GET /api/system/health HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST_F(HttpSessionTest, OneConnectionServesManyRequests) {
    start();
    RawClient client = connect();
    for (int i = 0; i < 5; ++i) {
        client.send(kHealth);
        const RawResponse response = client.read_response();
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.json().at("status").as_string(), "ok");
        EXPECT_FALSE(response.headers.contains("connection"));
    }
}

TEST_F(HttpSessionTest, PipelinedRequestsAreAnsweredInOrder) {
    start();
    RawClient client = connect();
    std::string bytes;
    for (int i = 0; i < 200; ++i) {
        bytes += kHealth;
        bytes +=
            "GET /api/agent/none-" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
        bytes += "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
    }
    client.send(bytes);
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(client.read_response().status, 200);
        ASSERT_EQ(client.read_response().code(), "agent_not_found");
        ASSERT_EQ(client.read_response().body, R"({"detail":"Not Found"})");
    }
}

TEST_F(HttpSessionTest, ARequestMayArriveByteByByte) {
    start();
    RawClient client = connect();
    for (const char c : kHealth) {
        client.send({&c, 1});
    }
    EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(HttpSessionTest, HeadGivesTheHeadOfGet) {
    start();
    RawClient client = connect();
    client.request("GET /api/system/discovery");
    const RawResponse whole = client.read_response();
    client.request("HEAD /api/system/discovery");
    const RawResponse head = client.read_response(false);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("content-length"), whole.headers.at("content-length"));
    client.request("GET /nowhere");
    EXPECT_EQ(client.read_response().status, 404);
}

TEST_F(HttpSessionTest, ConnectionCloseIsHonoured) {
    start();
    RawClient client = connect();
    client.request("GET /api/system/health", "Connection: close\r\n");
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionTest, Http10IsAnsweredAndClosed) {
    start();
    RawClient client = connect();
    client.send("GET /api/system/health HTTP/1.0\r\n\r\n");
    EXPECT_EQ(client.read_response().status, 200);
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionTest, MalformedRequestsGet400AndClose) {
    start();
    for (const char* bytes :
         {"nonsense\r\n\r\n",
          "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
          "GET /api/system/health HTTP/3.7\r\nHost: localhost\r\n\r\n",
          "GET /api/system/health HTTP/1.1\r\n\r\n",
          "GET /api/system/health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
          "POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
          "POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
          "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "\x16\x03\x01\x02\r\n\r\n"}) {
        RawClient client = connect();
        client.send(bytes);
        EXPECT_EQ(client.read_response().status, 400) << bytes;
        EXPECT_TRUE(client.at_end()) << bytes;
    }
}

TEST_F(HttpSessionTest, AnUnknownTransferCodingGets400) {
    start();
    RawClient client = connect();
    client.request("POST /api/agent/runs", "Transfer-Encoding: gzip, chunked\r\n");
    EXPECT_EQ(client.read_response().code(), "unsupported_transfer_encoding");
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionTest, HeadsOverTheBoundGet431) {
    start();
    const std::size_t bound = base::limits::kRequestHeadBytes;
    RawClient fits = connect();
    fits.request("GET /api/system/health", "X-Pad: " + std::string(bound - 200, 'a') + "\r\n");
    EXPECT_EQ(fits.read_response().status, 200);
    RawClient one = connect();
    one.request("GET /api/system/health", "X-Pad: " + std::string(bound, 'a') + "\r\n");
    EXPECT_EQ(one.read_response().status, 431);
    EXPECT_TRUE(one.at_end());
    RawClient endless = connect();
    endless.send("GET /" + std::string(bound * 4, 'a'));
    EXPECT_EQ(endless.read_response().status, 431);
}

TEST_F(HttpSessionTest, BodiesOverTheBoundGet413) {
    HttpLimits limits;
    limits.body_bytes = 1000;
    start(limits);
    RawClient stated = connect();
    stated.request("POST /api/agent/runs", {}, std::string(1001, ' '));
    const RawResponse refused = stated.read_response();
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(refused.code(), "body_too_large");
    RawClient chunked = connect();
    chunked.request(
        "POST /api/agent/runs", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    );
    chunked.send("3e9\r\n" + std::string(1001, ' ') + "\r\n0\r\n\r\n");
    EXPECT_EQ(chunked.read_response().status, 413);
}

// Clients that never end their bodies must not fill the memory together.
TEST_F(HttpSessionTest, AllBodiesTogetherHaveABound) {
    HttpLimits limits;
    limits.all_bodies_bytes = 300'000;
    start(limits);
    const std::string large(200'000, ' ');
    const auto post = [&](const std::string& body) {
        RawClient client = connect();
        client.request("POST /api/agent/runs", "", body);
        return client.read_response();
    };
    const auto post_until = [&](const std::string& code) {
        RawResponse response = post(large);
        while (response.code() != code) {  // ctest's limit ends it
            response = post(large);
        }
        return response;
    };
    EXPECT_EQ(post(large).code(), "invalid_json");
    RawClient hoarder = connect();
    hoarder.send(
        "POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 250001\r\n\r\n" +
        std::string(250'000, ' ')
    );
    EXPECT_EQ(post_until("bodies_busy").status, 503);
    EXPECT_EQ(post(" ").code(), "invalid_json") << "a small one is not refused";
    hoarder.close();
    EXPECT_EQ(post_until("invalid_json").status, 400);
}

TEST_F(HttpSessionTest, ALargeBodyThatFitsArrivesWhole) {
    start();
    const std::string query(900'000, 'q');
    const RawResponse response =
        post("/api/agent/runs", R"({"agent_slug":"default-chatbot","query":")" + query + "\"}");
    EXPECT_EQ(response.status, 202);
    EXPECT_EQ(runs_->last_submit.query, query);
}

TEST_F(HttpSessionTest, AChunkedBodyIsRead) {
    start();
    RawClient client = connect();
    client.request(
        "POST /api/agent/runs", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    );
    client.send("1f\r\n{\"agent_slug\":\"default-chatbot\"\r\n");
    client.send("e\r\n,\"query\":\"hi\"}\r\n0\r\n\r\n");
    EXPECT_EQ(client.read_response().status, 202);
    EXPECT_EQ(runs_->last_submit.query, "hi");
    client.send(kHealth);
    EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(HttpSessionTest, Expect100IsContinuedOnlyWhenTheHeadIsAccepted) {
    start({}, two_keys());
    const std::string body = R"({"agent_slug":"default-chatbot","query":"hi"})";
    const std::string head =
        "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n";
    RawClient known = connect();
    known.request("POST /api/agent/runs", head + "x-api-key: " + kAliceKey + "\r\n");
    EXPECT_EQ(known.read_head().status, 100);
    known.send(body);
    EXPECT_EQ(known.read_response().status, 202);
    RawClient unknown = connect();
    unknown.request("POST /api/agent/runs", head);
    EXPECT_EQ(unknown.read_response().status, 401);
    EXPECT_TRUE(unknown.at_end());
}

TEST_F(HttpSessionTest, OtherMethodsGet405WithAllow) {
    start();
    RawClient client = connect();
    client.request("DELETE /api/agent/runs/x");
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.headers.at("allow"), "GET, HEAD");
    client.request("OPTIONS /api/agent/runs/x/cancel");
    EXPECT_EQ(client.read_response().headers.at("allow"), "POST");
    client.request("BREW /api/agent");
    EXPECT_EQ(client.read_response().status, 405);
}

TEST_F(HttpSessionTest, UnknownPathsGet404) {
    start();
    for (const char* path :
         {"/",
          "/api",
          "/api/agents",
          "/api/agent/",
          "/api/agent/%zz",
          "/api/agent/%ff",
          "/api//agent",
          "/api/agent/runs/x/events/y",
          "*",
          "nothing"}) {
        EXPECT_EQ(get(path).body, R"({"detail":"Not Found"})") << path;
    }
    EXPECT_EQ(get("/api/agent/" + std::string(2000, 'a')).status, 404);
}

TEST_F(HttpSessionTest, AQueryWithABrokenEscapeGets400) {
    start();
    RawClient client = connect();
    for (const char* query : {"limit=%zz", "limit=1&offset=%", "%2=1", "q=a%2"}) {
        client.request("GET /api/chat/threads?" + std::string(query));
        EXPECT_EQ(client.read_response().code(), "bad_query") << query;
    }
    client.request("GET /api/chat/threads?agent_id=%FF+%00");
    EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(HttpSessionTest, BodiesThatAreNotJsonGet415) {
    start();
    RawClient client = connect();
    client.request("POST /api/agent/runs", "Content-Type: text/plain\r\nContent-Length: 2\r\n");
    client.send("{}");
    EXPECT_EQ(client.read_response().status, 415);
}

TEST_F(HttpSessionTest, MalformedJsonGets400WithItsPlace) {
    start();
    const RawResponse response = post("/api/agent/runs", "{\"query\": \"a\",\n \"agent_slug\" 1}");
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.code(), "invalid_json");
    EXPECT_EQ(response.json().at("detail").at("line").as_int64(), 2);
    EXPECT_EQ(response.json().at("detail").at("column").as_int64(), 15);
    RawClient empty = connect();
    empty.request("POST /api/agent/runs");
    EXPECT_EQ(empty.read_response().code(), "invalid_json");
}

TEST_F(HttpSessionTest, WithoutAKeyOrWithAWrongOneIs401) {
    start({}, two_keys());
    for (const char* path : {"/api/agent", "/api/chat/threads", "/metrics"}) {
        const RawResponse none = get(path);
        EXPECT_EQ(none.status, 401) << path;
        EXPECT_EQ(none.headers.at("www-authenticate"), "Bearer");
        EXPECT_EQ(none.code(), "missing_key");
        EXPECT_EQ(get(path, "Authorization: Bearer wrong\r\n").code(), "invalid_key") << path;
        EXPECT_EQ(get(path, "x-api-key: bob-secret\r\n").status, 200) << path;
    }
    EXPECT_EQ(get("/api/system/health").status, 200);
    EXPECT_EQ(get("/api/system/ready").status, 200);
    EXPECT_EQ(get("/api/system/discovery").status, 200);
}

TEST_F(HttpSessionTest, WithoutKeysABrowsersPageIsRefused) {
    start();
    RawClient rebound = connect();
    rebound.send("GET /api/agent HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    const RawResponse response = rebound.read_response();
    EXPECT_EQ(response.status, 403);
    EXPECT_EQ(response.code(), "foreign_host");
    EXPECT_EQ(
        post("/api/agent/runs/x/cancel", "{}", "Origin: https://evil.example\r\n").status, 403
    );
}

TEST_F(HttpSessionTest, AnExceptionIsA500AndTheConnectionGoesOn) {
    start();
    on_server([this] {
        runs_->submit_error = base::Error{base::ErrorKind::io, "disk_full", "/secret/path is full"};
    });
    RawClient client = connect();
    client.request("POST /api/agent/runs", {}, R"({"agent_slug":"a","query":"b"})");
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 500);
    EXPECT_EQ(response.code(), "disk_full");
    EXPECT_EQ(response.body.find("secret"), std::string::npos);
    client.send(kHealth);
    EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(HttpSessionTest, ErrorKindsHaveTheirStatus) {
    start();
    const auto status_for = [this](base::ErrorKind kind) {
        on_server([this, kind] { runs_->submit_error = base::Error{kind, "some_code", "text"}; });
        return post("/api/agent/runs", R"({"agent_slug":"a","query":"b"})");
    };
    EXPECT_EQ(status_for(base::ErrorKind::conflict).status, 409);
    EXPECT_EQ(status_for(base::ErrorKind::not_found).status, 404);
    EXPECT_EQ(status_for(base::ErrorKind::invalid).status, 422);
    const RawResponse full = status_for(base::ErrorKind::exhausted);
    EXPECT_EQ(full.status, 429);
    EXPECT_TRUE(full.headers.contains("retry-after"));
    EXPECT_EQ(full.code(), "some_code");
}

}  // namespace
}  // namespace ars::server::testing
