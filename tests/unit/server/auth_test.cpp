#include "server/auth.hpp"

#include "base/digest.hpp"

#include <gtest/gtest.h>

namespace ars::server {
namespace {

agents::User user_named(std::string uid) {
    agents::User user;
    user.uid = std::move(uid);
    return user;
}

HttpRequest with(std::initializer_list<std::pair<std::string_view, std::string_view>> headers) {
    HttpRequest request;
    request.start(Method::get, "/", true);
    for (const auto& [name, value] : headers) {
        request.add_header(name, value);
    }
    return request;
}

Authenticator with_keys() {
    return Authenticator(
        {{.name = "a", .sha256 = base::sha256_hex("one"), .user = user_named("alice")},
         {.name = "old",
          .sha256 = base::sha256_hex("two"),
          .user = user_named("bob"),
          .expires_ms = 1000}},
        {},
        "10.0.0.1"
    );
}

TEST(Authenticator, TakesTheKeyFromEitherHeader) {
    const Authenticator auth = with_keys();
    EXPECT_EQ(auth.authenticate(with({{"Authorization", "Bearer one"}}))->uid, "alice");
    EXPECT_EQ(auth.authenticate(with({{"authorization", "bearer one"}}))->uid, "alice");
    EXPECT_EQ(auth.authenticate(with({{"X-Api-Key", "one"}}))->uid, "alice");
}

TEST(Authenticator, RefusesMissingWrongAndExpiredKeys) {
    const Authenticator auth = with_keys();
    EXPECT_EQ(auth.authenticate(with({})).error().code, "missing_key");
    EXPECT_EQ(
        auth.authenticate(with({{"Authorization", "Basic one"}})).error().code, "missing_key"
    );
    EXPECT_EQ(auth.authenticate(with({{"Authorization", "Bearer "}})).error().code, "missing_key");
    for (const char* key : {"One", "onex", "on", "two"}) {
        const auto user = auth.authenticate(with({{"X-Api-Key", key}}));
        ASSERT_FALSE(user) << key;
        EXPECT_EQ(user.error().code, "invalid_key");
        EXPECT_EQ(user.error().kind, base::ErrorKind::unauthorized);
    }
    EXPECT_FALSE(auth.authenticate(with({{"X-Api-Key", std::string(100'000, 'x')}})));
}

TEST(Authenticator, DoesNotLookAtHostOnceThereAreKeys) {
    const auto user = with_keys().authenticate(
        with({{"Host", "ars.example"}, {"Origin", "https://ui.example"}, {"X-Api-Key", "one"}})
    );
    EXPECT_TRUE(user);
}

TEST(Authenticator, WithoutKeysEverybodyOnLoopbackIsTheLocalUser) {
    const Authenticator auth({}, user_named("local"), "127.0.0.1");
    for (const char* host :
         {"localhost", "LocalHost:5050", "127.0.0.1:5050", "127.1.2.3", "[::1]:5050", "[::1]"}) {
        const auto user = auth.authenticate(with({{"Host", host}}));
        ASSERT_TRUE(user) << host;
        EXPECT_EQ(user->uid, "local");
    }
    EXPECT_TRUE(
        auth.authenticate(with({{"Host", "localhost:5050"}, {"Origin", "http://localhost:5050"}}))
    );
}

TEST(Authenticator, WithoutKeysForeignHostsAndPagesAreRefused) {
    const Authenticator auth({}, user_named("local"), "127.0.0.1");
    for (const char* host :
         {"evil.example",
          "127.0.0.1.evil.example",
          "localhost.evil.example",
          "192.168.0.1",
          "",
          "[::2]",
          "127..0.1",
          "127.0.0"}) {
        const auto user = auth.authenticate(with({{"Host", host}}));
        ASSERT_FALSE(user) << host;
        EXPECT_EQ(user.error().code, "foreign_host");
        EXPECT_EQ(user.error().kind, base::ErrorKind::forbidden);
    }
    for (const char* origin :
         {"https://evil.example", "null", "http://localhost:3000", "https://localhost:5050"}) {
        const auto user = auth.authenticate(with({{"Host", "localhost:5050"}, {"Origin", origin}}));
        ASSERT_FALSE(user) << origin;
        EXPECT_EQ(user.error().code, "foreign_origin");
    }
}

}  // namespace
}  // namespace ars::server
