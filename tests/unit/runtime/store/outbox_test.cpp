// The outbox: an end is in it with the commit that ended the run.
#include "runtime/store/store.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include <stdlib.h>

namespace ars::store {
namespace {

class OutboxTest : public ::testing::Test {
  protected:
    OutboxTest() {
        char name[] = "/tmp/ars-outbox-test-XXXXXX";
        directory_ = ::mkdtemp(name);
    }
    ~OutboxTest() override {
        store_.reset();
        for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
            std::filesystem::remove(entry.path());
        }
        std::filesystem::remove(directory_);
    }
    void open(bool outbox) {
        store_.reset();
        auto opened = Store::open(
            {.directory = directory_,
             .max_size = std::size_t{1} << 28U,
             .sync = false,
             .outbox = outbox},
            log_
        );
        ASSERT_TRUE(opened) << opened.error().message;
        store_ = std::move(*opened);
    }
    template <class Change>
    void write(Change change) {
        const auto done = store_->write_blocking([&](WriteTxn& txn) -> base::Result<void> {
            change(txn);
            return {};
        });
        ASSERT_TRUE(done) << done.error().message;
    }
    RunRecord add_run(RunNo parent = 0) {
        RunRecord run;
        write([&](WriteTxn& txn) {
            ThreadRecord thread;
            thread.uid = "alice";
            txn.put_thread(thread);
            run.thread = thread.no;
            run.parent = parent;
            txn.put_run(run);
        });
        return run;
    }
    void set_status(RunRecord& run, RunStatus status) {
        write([&](WriteTxn& txn) {
            run.status = status;
            txn.put_run(run);
        });
    }
    [[nodiscard]] std::vector<RunNo> runs(std::uint64_t queue, std::int64_t until = INT64_MAX)
        const {
        return store_->read([&](const ReadTxn& txn) {
            std::vector<RunNo> out;
            for (const OutboxRecord& record : txn.outbox(queue, until, 100)) {
                out.push_back(record.run);
            }
            return out;
        });
    }
    using Runs = std::vector<RunNo>;

    base::Log log_{2, base::LogLevel::off};
    std::string directory_;
    std::unique_ptr<Store> store_;
};

TEST_F(OutboxTest, HoldsTheEndsOfRootRunsOnce) {
    open(true);
    RunRecord root = add_run();
    RunRecord child = add_run(root.no);
    RunRecord asked = add_run();
    set_status(root, RunStatus::running);
    set_status(asked, RunStatus::interrupted);
    EXPECT_EQ(runs(0), Runs{});
    set_status(child, RunStatus::completed);
    EXPECT_EQ(runs(0), Runs{});
    set_status(root, RunStatus::failed);
    set_status(asked, RunStatus::cancelled);
    EXPECT_EQ(runs(0), (Runs{root.no, asked.no}));
    set_status(root, RunStatus::failed);  // the same again
    EXPECT_EQ(runs(0).size(), 2U);
    open(true);
    EXPECT_EQ(runs(0), (Runs{root.no, asked.no}));
}

TEST_F(OutboxTest, KeepsNothingWhereNobodyIsToBeTold) {
    open(false);
    RunRecord run = add_run();
    set_status(run, RunStatus::completed);
    EXPECT_EQ(runs(0), Runs{});
}

TEST_F(OutboxTest, AnEndOfATransactionThatFailsIsInNoOutbox) {
    open(true);
    RunRecord run = add_run();
    const auto failed = store_->write_blocking([&](WriteTxn& txn) -> base::Result<void> {
        RunRecord changed = run;
        changed.status = RunStatus::completed;
        txn.put_run(changed);
        return base::fail(base::ErrorKind::conflict, "no", "no");
    });
    EXPECT_FALSE(failed);
    EXPECT_EQ(runs(0), Runs{});
}

TEST_F(OutboxTest, QueuesAreApartAndInTheOrderOfTheirTimes) {
    open(true);
    const std::uint64_t a = outbox_queue("a");
    const std::uint64_t b = outbox_queue("b");
    EXPECT_NE(a, b);
    write([&](WriteTxn& txn) {
        txn.put_outbox({a, 300, 1, 2});
        txn.put_outbox({a, 100, 2, 0});
        txn.put_outbox({b, 50, 3, 0});
        txn.put_outbox({a, 200, 3, 7});
    });
    EXPECT_EQ(runs(a), (Runs{2, 3, 1}));
    EXPECT_EQ(runs(a, 200), (Runs{2, 3}));
    EXPECT_EQ(runs(b), Runs{3});
    const auto first = store_->read([&](const ReadTxn& txn) { return txn.outbox(a, 300, 2); });
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(first[1].attempts, 7U);
    write([&](WriteTxn& txn) { txn.erase_outbox(first[0]); });
    EXPECT_EQ(runs(a), (Runs{3, 1}));
    EXPECT_EQ(runs(0), Runs{});
}

}  // namespace
}  // namespace ars::store
