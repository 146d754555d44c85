#include "tests/unit/runtime/people/people_fixture.hpp"

namespace ars::people {
namespace {

using DirectoryTest = PeopleTest;
constexpr std::int64_t kHour = 3600 * 1000;

TEST_F(DirectoryTest, KnowsDeclaredKeysByTheirDigest) {
    const ApiKey* key = use(kAliceSecret);
    ASSERT_NE(key, nullptr);
    EXPECT_EQ(key->name, "a");
    EXPECT_EQ(key->uid, "alice");
    EXPECT_EQ(use("another secret"), nullptr);
    EXPECT_FALSE(people_->keyless());
}

TEST_F(DirectoryTest, AKeyIsRefusedOnceItHasExpired) {
    Declaration wanted = declared();
    wanted.keys[1].expires_ms = 5000;
    open(wanted);
    const std::string digest = base::sha256_hex(kAliceSecret);
    EXPECT_NE(people_->use_key(digest, 4999), nullptr);
    EXPECT_EQ(people_->use_key(digest, 5000), nullptr);
}

TEST_F(DirectoryTest, ARemovedKeyStopsAtTheReloadAndAnAddedOneWorks) {
    Declaration wanted = declared();
    wanted.keys.pop_back();
    wanted.keys.push_back({.name = "n", .sha256 = base::sha256_hex("new one"), .uid = "adam"});
    ASSERT_TRUE(people_->declare(wanted));
    EXPECT_EQ(use(kAliceSecret), nullptr);
    ASSERT_NE(use("new one"), nullptr);
    EXPECT_EQ(use("new one")->uid, "adam");
    EXPECT_NE(use(kRootSecret), nullptr);
}

TEST_F(DirectoryTest, AReloadKeepsIdLastUseAndRateOfAKey) {
    Declaration wanted = declared();
    wanted.rate_limit = RateLimit{.requests = 1, .per = std::chrono::hours(1), .burst = 1};
    open(wanted);
    const ApiKey* key = use(kAliceSecret);
    const std::string id = key->id;
    const auto now = TokenBucket::TimePoint() + std::chrono::hours(1);
    EXPECT_FALSE(people_->take_request(*key, now));
    const std::int64_t used = people_->last_use_ms(id);
    EXPECT_GT(used, 0);
    ASSERT_TRUE(people_->declare(wanted));
    key = use(kAliceSecret);
    EXPECT_EQ(key->id, id);
    EXPECT_GE(people_->last_use_ms(id), used);
    EXPECT_TRUE(people_->take_request(*key, now));
}

TEST_F(DirectoryTest, AKeysOwnRateComesBeforeTheServers) {
    Declaration wanted = declared();
    wanted.rate_limit = RateLimit{.requests = 1, .per = std::chrono::hours(1)};
    wanted.keys[0].rate_limit = RateLimit{.requests = 3, .per = std::chrono::hours(1)};
    open(wanted);
    const auto now = TokenBucket::TimePoint() + std::chrono::hours(1);
    const auto served = [&](const char* secret) {
        int count = 0;
        while (count < 100 && !people_->take_request(*use(secret), now)) {
            ++count;
        }
        return count;
    };
    EXPECT_EQ(served(kRootSecret), 3);
    EXPECT_EQ(served(kAliceSecret), 1);
    wanted.rate_limit.reset();
    open(wanted);
    EXPECT_EQ(served(kAliceSecret), 100);
}

TEST_F(DirectoryTest, WithoutKeysEverybodyIsTheFirstDeclaredUserElseLocal) {
    Declaration wanted = declared();
    wanted.keys.clear();
    open(wanted);
    EXPECT_TRUE(people_->keyless());
    EXPECT_EQ(people_->local_user().uid, "root");
    open({});
    EXPECT_EQ(people_->local_user().uid, "local");
    EXPECT_EQ(people_->local_user().role, UserRole::superadmin);
    EXPECT_FALSE(people_->find_user("local"));
}

TEST_F(DirectoryTest, AStoredKeyAloneIsEnoughToDemandKeys) {
    const std::string secret = make_key(root_, {.name = "mine"}).secret;
    Declaration wanted = declared();
    wanted.keys.clear();
    open(wanted);
    EXPECT_FALSE(people_->keyless());
    EXPECT_NE(use(secret), nullptr);
    // Its user is nowhere: nobody could use it.
    open({});
    EXPECT_TRUE(people_->keyless());
}

// Else the last key to expire, or a reload, would open the server to everybody.
TEST_F(DirectoryTest, AServerThatDemandsKeysGoesOnWithItToItsEnd) {
    const CreatedKey made = make_key(root_, {.name = "mine"});
    Declaration wanted = declared();
    wanted.keys.clear();
    open(wanted);
    ASSERT_TRUE(wait(people_->revoke_key(root_, made.key.id)));
    EXPECT_EQ(use(made.secret), nullptr);
    EXPECT_FALSE(people_->keyless());
    ASSERT_TRUE(people_->declare({}));
    EXPECT_FALSE(people_->keyless());
    open(wanted);
    EXPECT_TRUE(people_->keyless());
    ASSERT_TRUE(people_->declare(declared()));
    EXPECT_FALSE(people_->keyless());
}

TEST_F(DirectoryTest, MakesNoKeyWhereNoneIsDemanded) {
    Declaration wanted = declared();
    wanted.keys.clear();
    open(wanted);
    const auto made = wait(people_->create_key(root_, {.name = "mine"}));
    EXPECT_EQ(code(made), "keyless");
    EXPECT_NE(made.error().message.find("/etc/appliance.yaml"), std::string::npos);
    EXPECT_TRUE(audit().empty());
}

TEST_F(DirectoryTest, ListsUsersOfBothKindsByUid) {
    ASSERT_TRUE(wait(people_->create_user(root_, {"bob", UserRole::user, "sales"})));
    const auto uids = [this](std::size_t offset, std::size_t limit) {
        std::string out;
        for (const UserEntry& entry : people_->users(offset, limit)) {
            out += entry.user.uid + (entry.declared ? "* " : " ");
        }
        return out;
    };
    EXPECT_EQ(uids(0, 10), "adam* alice* bob root* ");
    EXPECT_EQ(uids(1, 2), "alice* bob ");
    EXPECT_EQ(people_->user_count(), 4U);
    // A declared user stands before a stored one of the same name, which is there again without it.
    Declaration wanted = declared();
    wanted.users.push_back({"bob", UserRole::admin, ""});
    ASSERT_TRUE(people_->declare(wanted));
    EXPECT_EQ(people_->find_user("bob")->role, UserRole::admin);
    EXPECT_EQ(people_->user_count(), 4U);
    ASSERT_TRUE(people_->declare(declared()));
    EXPECT_EQ(people_->find_user("bob")->role, UserRole::user);
}

TEST_F(DirectoryTest, WhereThereIsOneWorkspaceThereIsOneUser) {
    EXPECT_EQ(code(people_->restrict_to_one_user()), "one_user_only");
    Declaration wanted;
    wanted.users = {{"root", UserRole::superadmin, ""}};
    wanted.keys.push_back({.name = "r", .sha256 = base::sha256_hex(kRootSecret), .uid = "root"});
    open(wanted);
    ASSERT_TRUE(people_->restrict_to_one_user());
    EXPECT_EQ(
        code(wait(people_->create_user(root_, {"bob", UserRole::user, ""}))), "one_user_only"
    );
    EXPECT_EQ(code(people_->declare(declared())), "one_user_only");
    EXPECT_EQ(people_->user_count(), 1U);
    EXPECT_NE(use(kRootSecret), nullptr);
    EXPECT_TRUE(people_->declare(wanted));
}

TEST_F(DirectoryTest, LastUsesAreWrittenAtTheStopAndNotBefore) {
    const CreatedKey made = make_key(root_, {.name = "mine"});
    const std::uint64_t commits = store_->commits();
    for (int i = 0; i < 100; ++i) {
        ASSERT_NE(use(made.secret), nullptr);
        ASSERT_NE(use(kAliceSecret), nullptr);
    }
    EXPECT_EQ(store_->commits(), commits);
    const std::int64_t used = people_->last_use_ms(made.key.id);
    const std::int64_t used_declared = people_->last_use_ms(declared_key_id("a"));
    EXPECT_GT(used, 0);
    wait(people_->stop());
    EXPECT_EQ(store_->commits(), commits + 1);
    open(declared());
    EXPECT_EQ(people_->last_use_ms(made.key.id), used);
    EXPECT_EQ(people_->last_use_ms(declared_key_id("a")), used_declared);
    EXPECT_EQ(people_->last_use_ms(declared_key_id("r")), 0);
    // Nothing was used since: nothing is written.
    const std::uint64_t idle = store_->commits();
    wait(people_->stop());
    EXPECT_EQ(store_->commits(), idle);
}

TEST_F(DirectoryTest, ARecordOfANewerProgramIsNamed) {
    make_key(root_, {.name = "mine", .expires_ms = base::now_ms() + kHour});
    people_.reset();
    const auto done = store_->write_blocking([](store::WriteTxn& txn) -> base::Result<void> {
        txn.put_entry("user/zoe", R"({"version":2,"record":{}})");
        return {};
    });
    ASSERT_TRUE(done);
    const auto opened = Directory::open(io_.get_executor(), *store_, log_, declared());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, "people_unreadable");
    EXPECT_NE(opened.error().message.find("user/zoe"), std::string::npos);
    EXPECT_NE(opened.error().message.find("newer"), std::string::npos);
}

}  // namespace
}  // namespace ars::people
