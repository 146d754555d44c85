#include "runtime/people/audit.hpp"

#include "tests/unit/runtime/people/people_fixture.hpp"

#include <boost/json/serialize.hpp>

namespace ars::people {
namespace {

class AuditTest : public PeopleTest {
  protected:
    void put(const AuditEntry& entry, int times = 1) {
        const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            for (int i = 0; i < times; ++i) {
                put_audit(txn, entry);
            }
            return {};
        });
        ASSERT_TRUE(done) << done.error().message;
    }
};

TEST_F(AuditTest, ALineSaysWhoDidWhatToWhomAndForWhom) {
    Caller acting = caller("bob", UserRole::user);
    acting.key_uid = "orchestrator";
    put({acting, "agent.create", "helper", {{"version", 1}}});
    put({root_, "user.delete", "bob", {}});
    const auto lines = audit();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].at("seq"), 1);
    EXPECT_EQ(lines[0].at("action"), "agent.create");
    EXPECT_EQ(lines[0].at("actor"), "orchestrator");
    EXPECT_EQ(lines[0].at("key"), "k");
    EXPECT_EQ(lines[0].at("acting_for"), "bob");
    EXPECT_EQ(lines[0].at("target"), "helper");
    EXPECT_EQ(lines[0].at("detail").at("version"), 1);
    EXPECT_TRUE(lines[0].at("at").as_string().ends_with("Z"));
    EXPECT_EQ(lines[1].at("seq"), 2);
    EXPECT_EQ(lines[1].at("actor"), "root");
    EXPECT_TRUE(lines[1].at("acting_for").is_null());
}

TEST_F(AuditTest, AChangeThatIsNotCommittedLeavesNoLine) {
    const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        put_audit(txn, {root_, "user.create", "bob", {}});
        return base::fail(base::ErrorKind::conflict, "no", "no");
    });
    EXPECT_FALSE(done);
    EXPECT_TRUE(audit().empty());
}

TEST_F(AuditTest, IsReadInPagesOldestFirst) {
    put({root_, "user.create", "bob", {}}, 25);
    EXPECT_EQ(audit(0, 10).size(), 10U);
    EXPECT_EQ(audit(10, 10).front().at("seq"), 11);
    EXPECT_EQ(audit(20, 10).size(), 5U);
    EXPECT_TRUE(audit(25).empty());
    EXPECT_TRUE(audit(UINT64_MAX).empty());
}

TEST_F(AuditTest, KeepsTheNewestEntriesOnly) {
    constexpr int kMore = 30;
    put({root_, "user.create", "bob", {}}, static_cast<int>(kAuditEntries) + kMore);
    const auto lines = audit();
    ASSERT_EQ(lines.size(), kAuditEntries);
    EXPECT_EQ(lines.front().at("seq"), kMore + 1);
    EXPECT_EQ(lines.back().at("seq"), kAuditEntries + kMore);
}

}  // namespace
}  // namespace ars::people
