#include "base/clock.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

namespace ars::store {
namespace {

class EventExpiry : public StoreTest {
  protected:
    RunRecord run_with_events(RunStatus status, int count, std::int64_t last_ms) {
        RunRecord run = new_run(new_thread(), status);
        write([&](WriteTxn& txn) {
            for (int i = 0; i < count; ++i) {
                EventRecord event;
                event.run = run.no;
                event.type = "messages";
                event.payload = std::string(500, 'x');
                event.created_ms = last_ms;
                txn.add_event(event);
            }
        });
        return run;
    }
    std::vector<RunNo> old_logs(std::int64_t before_ms, std::size_t limit = 1000) {
        return store_->read([&](const ReadTxn& txn) {
            return txn.old_logs(0, before_ms, limit).old;
        });
    }
    std::size_t count(const RunRecord& run) {
        return store_->read([&](const ReadTxn& txn) {
            return txn.events(run.no, {}, 100'000).size();
        });
    }
    int expire(const RunRecord& run, std::size_t limit) {
        int transactions = 0;
        for (bool done = false; !done; ++transactions) {
            write([&](WriteTxn& txn) { done = txn.expire_log(run.no, limit); });
        }
        return transactions;
    }
};

TEST_F(EventExpiry, OldLogsAreThoseOfRunsThatAreOver) {
    const RunRecord over = run_with_events(RunStatus::completed, 3, 1000);
    run_with_events(RunStatus::running, 3, 1000);
    run_with_events(RunStatus::interrupted, 3, 1000);  // waits for a person
    const RunRecord later = run_with_events(RunStatus::failed, 3, 2000);
    EXPECT_TRUE(old_logs(1000).empty());
    EXPECT_EQ(old_logs(1001), std::vector<RunNo>{over.no});
    EXPECT_EQ(old_logs(5000), (std::vector<RunNo>{over.no, later.no}));
    const auto first = store_->read([](const ReadTxn& txn) { return txn.old_logs(0, 5000, 1); });
    EXPECT_EQ(first.old, std::vector<RunNo>{over.no});
    EXPECT_EQ(first.next, over.no + 1);
    EXPECT_FALSE(try_write([&](WriteTxn& txn) { txn.expire_log(over.no + 1, 10); }))
        << "a run that is not over keeps its log";
}

TEST_F(EventExpiry, ALogGoesAtOnceForReadersAndInBoundedStepsOnDisk) {
    const RunRecord run = run_with_events(RunStatus::completed, 1000, 1000);
    const RunRecord other = run_with_events(RunStatus::completed, 200, 9000);
    const auto last = store_->read([&](const ReadTxn& txn) { return txn.last_event_id(run.no); });
    write([&](WriteTxn& txn) { EXPECT_FALSE(txn.expire_log(run.no, 300)); });
    EXPECT_EQ(count(run), 0U);
    // What a crash leaves is found again.
    open();
    EXPECT_EQ(count(run), 0U);
    EXPECT_EQ(old_logs(5000), std::vector<RunNo>{run.no});
    EXPECT_EQ(expire(run, 300), 3);
    EXPECT_TRUE(old_logs(5000).empty());
    EXPECT_EQ(count(other), 200U);
    store_->read([&](const ReadTxn& txn) {
        EXPECT_TRUE(txn.log_expired(run.no));
        EXPECT_FALSE(txn.log_expired(other.no));
        EXPECT_EQ(txn.last_event_id(run.no), last) << "tells who had everything";
    });
    EXPECT_EQ(expire(run, 300), 1) << "again is fine";
}

TEST_F(EventExpiry, MessagesStayAndTheirSpaceIsUsedAgain) {
    MessageRecord message;
    std::size_t used = 0;
    for (int round = 0; round < 20; ++round) {
        const RunRecord run = run_with_events(RunStatus::completed, 2000, 1000);
        message = {};
        message.thread = run.thread;
        message.content = "kept " + std::to_string(round);
        write([&](WriteTxn& txn) { txn.add_message(message); });
        expire(run, 500);
        store_->read([&](const ReadTxn& txn) {
            EXPECT_EQ(txn.messages(run.thread).at(0).content, message.content);
        });
        if (round == 4) {
            used = store_->used_bytes();
        }
    }
    EXPECT_LT(store_->used_bytes(), used + used / 2);
}

}  // namespace
}  // namespace ars::store
