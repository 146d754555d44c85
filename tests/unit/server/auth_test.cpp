#include "server/auth.hpp"

#include "tests/unit/runtime/people/people_fixture.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace ars::server {
namespace {

using people::UserRole;
using Headers = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class AuthenticatorTest : public people::PeopleTest {
  protected:
    // "bob" (user), "alice" (user) and "root" (superadmin); key "one" is alice's, "boss" is root's.
    void SetUp() override { open_with(true); }

    void open_with(bool keys) {
        people::Declaration wanted;
        wanted.users = {
            {"alice", UserRole::user, "research"},
            {"bob", UserRole::user, "sales"},
            {"root", UserRole::superadmin, ""}
        };
        if (keys) {
            wanted.keys = {
                {.name = "a", .sha256 = base::sha256_hex("one"), .uid = "alice", .act_for = act_for_
                },
                {.name = "r", .sha256 = base::sha256_hex("boss"), .uid = "root", .act_for = {"*"}},
                {.name = "old", .sha256 = base::sha256_hex("two"), .uid = "bob", .expires_ms = 1000}
            };
        }
        wanted.rate_limit = rate_;
        open(std::move(wanted));
        authenticator_ = std::make_unique<Authenticator>(*people_, "10.0.0.1");
    }

    // Who called; the status and code of a refusal as the uid.
    people::Caller admit(Headers headers) {
        HttpRequest request;
        request.start(Method::get, "/", true);
        for (const auto& [name, value] : headers) {
            request.add_header(name, value);
        }
        refusal_ = authenticator_->admit(request);
        if (refusal_) {
            const auto detail = boost::json::parse(refusal_->body).at("detail");
            const auto code = std::string(detail.at("code").as_string());
            return {{std::to_string(refusal_->status) + " " + code, {}, {}}, {}, {}};
        }
        return request.caller();
    }
    std::string uid(Headers headers) { return admit(headers).user.uid; }
    std::string header(std::string_view name) const {
        for (const auto& [key, value] : refusal_->headers) {
            if (key == name) {
                return value;
            }
        }
        return {};
    }

    std::vector<std::string> act_for_;
    std::optional<people::RateLimit> rate_;
    std::unique_ptr<Authenticator> authenticator_;
    std::optional<HttpResponse> refusal_;
};

TEST_F(AuthenticatorTest, TakesTheKeyFromEitherHeader) {
    EXPECT_EQ(uid({{"Authorization", "Bearer one"}}), "alice");
    EXPECT_EQ(uid({{"authorization", "bearer one"}}), "alice");
    EXPECT_EQ(uid({{"X-Api-Key", "one"}}), "alice");
    const people::Caller caller = admit({{"X-Api-Key", "one"}});
    EXPECT_EQ(caller.user.department, "research");
    EXPECT_EQ(caller.key_name, "a");
    EXPECT_EQ(caller.key_uid, "alice");
    EXPECT_FALSE(caller.is_acting());
}

TEST_F(AuthenticatorTest, RefusesMissingWrongAndExpiredKeys) {
    EXPECT_EQ(uid({}), "401 missing_key");
    EXPECT_EQ(header("WWW-Authenticate"), "Bearer");
    EXPECT_EQ(uid({{"Authorization", "Basic one"}}), "401 missing_key");
    EXPECT_EQ(uid({{"Authorization", "Bearer "}}), "401 missing_key");
    for (const char* key : {"One", "onex", "on", "two"}) {
        EXPECT_EQ(uid({{"X-Api-Key", key}}), "401 invalid_key") << key;
        EXPECT_EQ(header("WWW-Authenticate"), "Bearer");
    }
    EXPECT_EQ(uid({{"X-Api-Key", std::string(100'000, 'x')}}), "401 invalid_key");
}

TEST_F(AuthenticatorTest, DoesNotLookAtHostOnceThereAreKeys) {
    EXPECT_EQ(
        uid({{"Host", "ars.example"}, {"Origin", "https://ui.example"}, {"X-Api-Key", "one"}}),
        "alice"
    );
}

TEST_F(AuthenticatorTest, WithoutKeysEverybodyOnLoopbackIsTheLocalUser) {
    open_with(false);
    for (const char* host :
         {"localhost", "LocalHost:5050", "127.0.0.1:5050", "127.1.2.3", "[::1]:5050", "[::1]"}) {
        EXPECT_EQ(uid({{"Host", host}}), "alice") << host;
    }
    EXPECT_EQ(uid({{"Host", "localhost:5050"}, {"Origin", "http://localhost:5050"}}), "alice");
    EXPECT_FALSE(admit({{"Host", "localhost"}}).is_acting());
    EXPECT_EQ(uid({{"Host", "localhost"}, {"X-Acting-For", "bob"}}), "403 acting_not_allowed");
}

TEST_F(AuthenticatorTest, WithoutKeysForeignHostsAndPagesAreRefused) {
    open_with(false);
    for (const char* host :
         {"evil.example",
          "127.0.0.1.evil.example",
          "localhost.evil.example",
          "192.168.0.1",
          "",
          "[::2]",
          "127..0.1",
          "127.0.0"}) {
        EXPECT_EQ(uid({{"Host", host}}), "403 foreign_host") << host;
    }
    for (const char* origin :
         {"https://evil.example", "null", "http://localhost:3000", "https://localhost:5050"}) {
        EXPECT_EQ(uid({{"Host", "localhost:5050"}, {"Origin", origin}}), "403 foreign_origin")
            << origin;
    }
}

TEST_F(AuthenticatorTest, AKeyActsForThoseThatItNamesOnly) {
    act_for_ = {"bob", "root", "nobody"};
    open_with(true);
    const people::Caller caller = admit({{"X-Api-Key", "one"}, {"X-Acting-For", "bob"}});
    EXPECT_EQ(caller.user.uid, "bob");
    EXPECT_EQ(caller.user.department, "sales");
    EXPECT_EQ(caller.key_name, "a");
    EXPECT_EQ(caller.key_uid, "alice");
    EXPECT_TRUE(caller.is_acting());
    const auto acting = [this](std::string_view key, std::string_view who) {
        return uid({{"X-Api-Key", key}, {"X-Acting-For", who}});
    };
    EXPECT_EQ(acting("one", "nobody"), "403 unknown_user");
    EXPECT_EQ(acting("one", "root"), "403 acting_not_allowed");  // a higher role
    EXPECT_EQ(acting("one", "carl"), "403 acting_not_allowed");  // not named: nothing is told
    EXPECT_EQ(acting("one", ""), "403 acting_not_allowed");
    EXPECT_EQ(acting("one", "*"), "403 acting_not_allowed");
    EXPECT_EQ(acting("boss", "bob"), "bob");
    EXPECT_EQ(acting("boss", "root"), "root");
    EXPECT_EQ(acting("boss", "carl"), "403 unknown_user");
    EXPECT_EQ(acting("wrong", "bob"), "401 invalid_key");
    EXPECT_EQ(
        uid({{"X-Api-Key", "boss"}, {"X-Acting-For", "bob"}, {"X-Acting-For", "root"}}),
        "403 acting_not_allowed"
    );
}

TEST_F(AuthenticatorTest, OverItsRateAKeyIsToldWhenToComeBack) {
    rate_ = people::RateLimit{.requests = 2, .per = std::chrono::hours(1)};
    open_with(true);
    EXPECT_EQ(uid({{"X-Api-Key", "one"}}), "alice");
    // A refused act is a request too.
    EXPECT_EQ(uid({{"X-Api-Key", "one"}, {"X-Acting-For", "bob"}}), "403 acting_not_allowed");
    EXPECT_EQ(uid({{"X-Api-Key", "one"}}), "429 rate_limited");
    const int wait = std::stoi(header("Retry-After"));
    EXPECT_GE(wait, 1);
    EXPECT_LE(wait, 1800);
    EXPECT_EQ(
        std::ranges::count(
            refusal_->headers, "Retry-After", [](const auto& entry) { return entry.first; }
        ),
        1
    );
    EXPECT_EQ(uid({{"X-Api-Key", "boss"}}), "root");
}

}  // namespace
}  // namespace ars::server
