#include "tests/unit/runtime/store/store_fixture.hpp"

namespace ars::store {
namespace {

class Registry : public StoreTest {
  protected:
    std::string keys(
        std::string_view prefix, std::string_view after = {}, std::size_t limit = SIZE_MAX
    ) {
        std::string out;
        for (const auto& entry :
             store_->read([&](const ReadTxn& txn) { return txn.entries(prefix, after, limit); })) {
            out += entry.key + "=" + entry.value + " ";
        }
        return out;
    }
    std::string last(std::string_view prefix) {
        const auto entry = store_->read([&](const ReadTxn& txn) { return txn.last_entry(prefix); });
        return entry ? entry->key : "none";
    }
};

TEST_F(Registry, HoldsEntriesInTheOrderOfTheirKeysAlsoAfterARestart) {
    write([](WriteTxn& txn) {
        txn.put_entry("user/b", "{2}");
        txn.put_entry("user/a", "{1}");
        txn.put_entry("key/z", "{9}");
        txn.put_entry("user/a", "{3}");
        txn.put_entry("user0", "{0}");
    });
    open();
    EXPECT_EQ(keys("user/"), "user/a={3} user/b={2} ");
    EXPECT_EQ(keys("user/", "user/a"), "user/b={2} ");
    EXPECT_EQ(keys("user/", "user/b"), "");
    EXPECT_EQ(keys("user/", {}, 1), "user/a={3} ");
    EXPECT_EQ(keys(""), "key/z={9} user/a={3} user/b={2} user0={0} ");
    EXPECT_EQ(store_->read([](const ReadTxn& txn) { return txn.entry("user/b"); }), "{2}");
    EXPECT_FALSE(store_->read([](const ReadTxn& txn) { return txn.entry("user/"); }));
}

TEST_F(Registry, FindsTheGreatestKeyOfAPrefix) {
    EXPECT_EQ(last("user/"), "none");
    write([](WriteTxn& txn) {
        for (const char* key : {"user/a", "user/b", "user0", "tool/x"}) {
            txn.put_entry(key, "{}");
        }
    });
    EXPECT_EQ(last("user/"), "user/b");
    EXPECT_EQ(last("key/"), "none");
    EXPECT_EQ(last("v/"), "none");
    write([](WriteTxn& txn) {
        txn.erase_entry("user/b");
        txn.erase_entry("user/b");
    });
    EXPECT_EQ(last("user/"), "user/a");
}

TEST_F(Registry, RefusesAKeyThatTheDatabaseCouldNotHold) {
    for (const std::string& key : {std::string(), std::string(501, 'k')}) {
        EXPECT_FALSE(try_write([&](WriteTxn& txn) { txn.put_entry(key, "{}"); }));
    }
    EXPECT_TRUE(try_write([](WriteTxn& txn) { txn.put_entry(std::string(500, 'k'), "{}"); }));
}

}  // namespace
}  // namespace ars::store
