// What is settled on the head of a request alone.
#include "tests/unit/server/server_fixture.hpp"

namespace ars::server {
namespace {

using PeopleRoutes = testing::ServerTest;

TEST_F(PeopleRoutes, OverItsRateAKeyIsRefusedBeforeItsBodyIsRead) {
    rate_ = people::RateLimit{.requests = 1, .per = std::chrono::hours(1)};
    start({}, two_keys());
    const std::string alice = "x-api-key: " + std::string(testing::kAliceKey) + "\r\n";
    EXPECT_EQ(get("/api/user/me", alice).status, 200);
    testing::RawClient client = connect();
    client.send(
        "POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\n" + alice +
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    );
    const testing::RawResponse refused = client.read_response();  // no byte of the body was sent
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.code(), "rate_limited");
}

}  // namespace
}  // namespace ars::server
