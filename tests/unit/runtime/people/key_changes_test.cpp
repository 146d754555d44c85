#include "tests/unit/runtime/people/people_fixture.hpp"

#include <boost/json/serialize.hpp>

namespace ars::people {
namespace {

using KeyChanges = PeopleTest;
constexpr std::int64_t kHour = 3600 * 1000;

TEST_F(KeyChanges, ANewKeyWorksAtOnceAndAfterARestart) {
    const CreatedKey made =
        make_key(alice_, {.name = "laptop", .expires_ms = base::now_ms() + kHour});
    EXPECT_EQ(made.secret.substr(0, 4), "ars_");
    EXPECT_EQ(made.secret.size(), 4 + 64U);
    EXPECT_EQ(made.key.prefix, made.secret.substr(0, 12));
    EXPECT_EQ(made.key.uid, "alice");
    EXPECT_EQ(made.key.created_by, "alice");
    EXPECT_NE(use(made.secret), nullptr);
    open(declared());
    const ApiKey* key = use(made.secret);
    ASSERT_NE(key, nullptr);
    EXPECT_EQ(key->name, "laptop");
    EXPECT_EQ(key->id, made.key.id);
    EXPECT_EQ(key->expires_ms, made.key.expires_ms);
    const auto lines = audit();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].at("action"), "key.create");
    EXPECT_EQ(lines[0].at("target"), boost::json::value(made.key.id));
    EXPECT_EQ(boost::json::serialize(lines[0]).find(made.secret.substr(12)), std::string::npos);
}

TEST_F(KeyChanges, ARepeatedRequestShowsTheKeyButNotTheSecret) {
    const NewKey wanted{.name = "ci", .request_id = "request-1"};
    const CreatedKey made = make_key(alice_, wanted);
    const CreatedKey again = make_key(alice_, wanted);
    EXPECT_EQ(again.key.id, made.key.id);
    EXPECT_TRUE(again.secret.empty());
    EXPECT_EQ(
        code(wait(people_->create_key(alice_, {.name = "other", .request_id = "request-1"}))),
        "request_id_conflict"
    );
    // Another user's ids are his own.
    EXPECT_NE(make_key(root_, wanted).key.id, made.key.id);
    open(declared());
    EXPECT_EQ(make_key(alice_, wanted).key.id, made.key.id);
    EXPECT_EQ(audit().size(), 2U);
}

TEST_F(KeyChanges, TwoRequestsWithOneIdAtTheSameTimeMakeOneKey) {
    const NewKey wanted{.name = "ci", .request_id = "request-1"};
    std::vector<std::string> ids;
    std::size_t secrets = 0;
    for (int i = 0; i < 5; ++i) {
        base::asio::co_spawn(
            io_,
            people_->create_key(alice_, wanted),
            [&](std::exception_ptr error, base::Result<CreatedKey> made) {
                ASSERT_FALSE(error);
                ASSERT_TRUE(made);
                ids.push_back(made->key.id);
                secrets += made->secret.empty() ? 0 : 1;
            }
        );
    }
    io_.run();
    ASSERT_EQ(ids.size(), 5U);
    EXPECT_EQ(std::ranges::count(ids, ids.front()), 5);
    EXPECT_EQ(secrets, 1U);
}

TEST_F(KeyChanges, WhoMayMakeAKeyForWhom) {
    const auto attempt = [this](const Caller& by, NewKey wanted) {
        return code(wait(people_->create_key(by, std::move(wanted))));
    };
    EXPECT_EQ(attempt(alice_, {.name = "x", .uid = "root"}), "admins_only");
    EXPECT_EQ(attempt(alice_, {.name = "x", .act_for = {"*"}}), "admins_only");
    EXPECT_EQ(attempt(adam_, {.name = "x", .uid = "root"}), "role_too_low");
    EXPECT_EQ(attempt(adam_, {.name = "x", .uid = "nobody"}), "user_not_found");
    EXPECT_EQ(attempt(root_, {.name = "x", .expires_ms = 1000}), "expired");
    Caller acting = alice_;
    acting.key_uid = "root";
    EXPECT_EQ(attempt(acting, {.name = "x"}), "acting_not_allowed");
    EXPECT_TRUE(audit().empty());
    EXPECT_EQ(attempt(adam_, {.name = "x", .uid = "alice", .act_for = {"bob"}}), "ok");
    EXPECT_EQ(attempt(alice_, {.name = "x", .uid = "alice"}), "ok");
    EXPECT_EQ(audit().size(), 2U);
}

TEST_F(KeyChanges, ForeignKeysAreMissing) {
    const CreatedKey alices = make_key(alice_, {.name = "alice's"});
    const CreatedKey roots = make_key(root_, {.name = "root's"});
    const Caller bob = caller("bob", UserRole::user);
    EXPECT_EQ(code(people_->key_for(bob, alices.key.id)), "key_not_found");
    EXPECT_EQ(code(wait(people_->revoke_key(bob, alices.key.id))), "key_not_found");
    EXPECT_EQ(code(wait(people_->change_key(bob, alices.key.id, {}))), "key_not_found");
    EXPECT_EQ(code(people_->key_for(adam_, roots.key.id)), "key_not_found");
    EXPECT_EQ(code(people_->key_for(adam_, alices.key.id)), "ok");
    EXPECT_EQ(people_->keys_for(alice_, "").size(), 2U);  // and the declared one
    EXPECT_EQ(people_->keys_for(adam_, "").size(), 2U);
    EXPECT_EQ(people_->keys_for(root_, "").size(), 4U);
    EXPECT_EQ(people_->keys_for(root_, "alice").size(), 2U);
    EXPECT_EQ(people_->keys_for(alice_, "root").size(), 0U);
    EXPECT_NE(use(alices.secret), nullptr);
}

TEST_F(KeyChanges, ADeclaredKeyIsChangedInItsFileOnly) {
    const std::string id = declared_key_id("a");
    const auto changed = wait(people_->change_key(alice_, id, {.enabled = false}));
    EXPECT_EQ(code(changed), "key_locked");
    EXPECT_NE(changed.error().message.find("/etc/appliance.yaml"), std::string::npos);
    EXPECT_EQ(code(wait(people_->revoke_key(root_, id))), "key_locked");
    EXPECT_NE(use(kAliceSecret), nullptr);
}

TEST_F(KeyChanges, DisabledKeysRestAndRevokedOnesAreGoneForGood) {
    const CreatedKey made = make_key(alice_, {.name = "laptop"});
    const std::string& id = made.key.id;
    ASSERT_TRUE(wait(people_->change_key(alice_, id, {.name = "desk", .enabled = false})));
    EXPECT_EQ(use(made.secret), nullptr);
    ASSERT_TRUE(wait(people_->change_key(alice_, id, {.enabled = true})));
    ASSERT_NE(use(made.secret), nullptr);
    EXPECT_EQ(use(made.secret)->name, "desk");
    EXPECT_EQ(code(wait(people_->change_key(alice_, id, {.expires_ms = 1}))), "expired");
    ASSERT_TRUE(wait(people_->change_key(alice_, id, {.expires_ms = base::now_ms() + kHour})));
    EXPECT_EQ(people_->use_key(made.key.sha256, base::now_ms() + kHour), nullptr);
    ASSERT_TRUE(wait(people_->change_key(alice_, id, {.expires_ms = 0})));
    EXPECT_NE(people_->use_key(made.key.sha256, base::now_ms() + kHour), nullptr);

    const auto revoked = wait(people_->revoke_key(alice_, id));
    ASSERT_TRUE(revoked);
    EXPECT_GT(revoked->revoked_ms, 0);
    EXPECT_EQ(use(made.secret), nullptr);
    const std::size_t lines = audit().size();
    EXPECT_EQ(wait(people_->revoke_key(alice_, id))->revoked_ms, revoked->revoked_ms);
    EXPECT_EQ(audit().size(), lines);
    EXPECT_EQ(code(wait(people_->change_key(alice_, id, {.enabled = true}))), "key_revoked");
    open(declared());
    EXPECT_EQ(use(made.secret), nullptr);
    EXPECT_GT(people_->key_for(alice_, id)->revoked_ms, 0);
}

TEST_F(KeyChanges, WhenThereAreTooManyTheOldestRevokedOneGivesWay) {
    const CreatedKey first = make_key(root_, {.name = "first"});
    ASSERT_TRUE(wait(people_->revoke_key(root_, first.key.id)));
    const auto done = store_->write_blocking([](store::WriteTxn& txn) -> base::Result<void> {
        for (std::size_t i = 1; i < kMaxKeys; ++i) {
            ApiKey key;
            key.id = std::to_string(i);
            key.sha256 = base::sha256_hex(key.id);
            key.uid = "root";
            put_key(txn, key);
        }
        return {};
    });
    ASSERT_TRUE(done);
    open(declared());
    EXPECT_EQ(code(people_->key_for(root_, first.key.id)), "ok");
    make_key(root_, {.name = "one more"});
    EXPECT_EQ(code(people_->key_for(root_, first.key.id)), "key_not_found");
    EXPECT_EQ(code(wait(people_->create_key(root_, {.name = "too much"}))), "too_many_keys");
    open(declared());
    EXPECT_EQ(code(people_->key_for(root_, first.key.id)), "key_not_found");
}

}  // namespace
}  // namespace ars::people
