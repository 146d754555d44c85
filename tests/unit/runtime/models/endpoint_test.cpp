#include "runtime/models/endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::models {
namespace {

TEST(Endpoint, ComesApart) {
    const auto plain = parse_endpoint("http://127.0.0.1:9000/v1/");
    ASSERT_TRUE(plain);
    EXPECT_FALSE(plain->tls);
    EXPECT_EQ(plain->host, "127.0.0.1");
    EXPECT_EQ(plain->port, 9000);
    EXPECT_EQ(plain->path, "/v1");
    EXPECT_EQ(plain->authority(), "127.0.0.1:9000");
    const auto secure = parse_endpoint("https://api.example.com");
    ASSERT_TRUE(secure);
    EXPECT_TRUE(secure->tls);
    EXPECT_EQ(secure->port, 443);
    EXPECT_EQ(secure->path, "");
    EXPECT_EQ(secure->text(), "https://api.example.com");
    const auto six = parse_endpoint("http://[::1]:8080/a/b");
    ASSERT_TRUE(six);
    EXPECT_EQ(six->host, "::1");
    EXPECT_EQ(six->text(), "http://[::1]:8080/a/b");
}

TEST(Endpoint, RefusesWhatIsNoBaseUrl) {
    for (const char* url :
         {"",
          "ftp://x",
          "localhost:80",
          "http://",
          "http://:80",
          "http://h:0",
          "http://h:99999",
          "http://h:8x",
          "http://[::1",
          "http://[::1]8",
          "http://h/a b",
          "http://h/v1?x=1",
          "http://h/#f",
          "http://h\r\nX: y"}) {
        const auto endpoint = parse_endpoint(url);
        ASSERT_FALSE(endpoint) << url;
        EXPECT_EQ(endpoint.error().code, "bad_url");
    }
}

TEST(Endpoint, NeverShowsACredentialOfAUrl) {
    const auto endpoint = parse_endpoint("https://me:secret@host/v1");
    ASSERT_FALSE(endpoint);
    EXPECT_THAT(endpoint.error().message, testing::Not(testing::HasSubstr("secret")));
}

}  // namespace
}  // namespace ars::models
