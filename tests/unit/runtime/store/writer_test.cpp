#include "runtime/store/writer.hpp"

#include "tests/unit/runtime/store/store_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <latch>
#include <map>
#include <random>
#include <thread>

namespace ars::store {
namespace {

namespace asio = base::asio;
using base::Result;
using base::Task;
namespace limits = base::limits;

using Change = std::function<Result<Seq>(WriteTxn&)>;

// Adds one message and gives its seq.
Change adding(ThreadNo thread, std::string content) {
    return [thread, content = std::move(content)](WriteTxn& txn) -> Result<Seq> {
        MessageRecord message;
        message.thread = thread;
        message.content = content;
        txn.add_message(message);
        return message.seq;
    };
}

class WriterTest : public StoreTest {
  protected:
    // Starts a write whose outcome comes into `results` when run_all() has run.
    void start(Change change) {
        results_.emplace_back();
        asio::co_spawn(io_, write_one(std::move(change), results_.size() - 1), asio::detached);
    }
    // The writer holds still until release(), so that all that is started meanwhile makes one
    // group.
    void hold() {
        start([this](WriteTxn&) -> Result<Seq> {
            held_.count_down();
            gate_.wait();
            return Seq{0};
        });
        io_.poll();
        held_.wait();
    }
    void release() { gate_.count_down(); }
    void run_all() {
        io_.restart();
        io_.run();
    }
    const Result<Seq>& result(std::size_t index) { return results_[index].value(); }
    std::size_t stored(ThreadNo thread) {
        return store_->read([&](const ReadTxn& txn) { return txn.messages(thread).size(); });
    }

    Task<void> write_one(Change change, std::size_t index) {
        auto result = co_await store_->write<Seq>(std::move(change));
        finished_on_ = std::this_thread::get_id();
        results_[index].emplace(std::move(result));
    }

    // Is cancelled in its sleep, and writes nevertheless.
    Task<void> write_after_sleep(Change change, boost::system::error_code* code) {
        try {
            co_await base::sleep_until(base::Deadline::after(std::chrono::minutes(1)));
        } catch (const boost::system::system_error&) {
        }
        try {
            co_await store_->write<Seq>(std::move(change));
        } catch (const boost::system::system_error& error) {
            *code = error.code();
        }
    }

    asio::io_context io_{1};
    std::vector<std::optional<Result<Seq>>> results_;
    std::thread::id finished_on_;
    std::latch gate_{1};
    std::latch held_{1};
};

TEST_F(WriterTest, AWriteGivesItsValueOnTheExecutorOfItsCaller) {
    start(adding(1, "x"));
    run_all();
    ASSERT_TRUE(result(0));
    EXPECT_EQ(*result(0), 1U);
    EXPECT_EQ(finished_on_, std::this_thread::get_id());
}

TEST_F(WriterTest, AThousandWritesAtOnceShareAFewCommits) {
    const std::uint64_t before = store_->commits();
    hold();
    for (int i = 0; i < 1000; ++i) {
        start(adding(1, std::to_string(i)));
    }
    io_.poll();
    release();
    run_all();
    EXPECT_EQ(stored(1), 1000U);
    // The held one, then groups of at most kStoreGroup.
    EXPECT_EQ(
        store_->commits() - before, 1 + (1000 + limits::kStoreGroup - 1) / limits::kStoreGroup
    );
    for (std::size_t i = 1; i <= 1000; ++i) {
        ASSERT_TRUE(result(i));
        EXPECT_EQ(*result(i), i) << "in the order of their calls";
    }
}

TEST_F(WriterTest, AFailingClosureUndoesOnlyItself) {
    hold();
    start(adding(1, "before"));
    start([](WriteTxn& txn) -> Result<Seq> {
        MessageRecord message;
        message.thread = 1;
        txn.add_message(message);
        return base::fail(base::ErrorKind::conflict, "run_busy", "no");
    });
    start([](WriteTxn& txn) -> Result<Seq> {
        MessageRecord message;
        message.thread = 1;
        txn.add_message(message);
        throw std::runtime_error("thrown");
    });
    start([](WriteTxn&) -> Result<Seq> { throw 5; });
    start(adding(1, "after"));
    io_.poll();
    release();
    run_all();
    EXPECT_TRUE(result(1));
    ASSERT_FALSE(result(2));
    EXPECT_EQ(result(2).error().code, "run_busy");
    ASSERT_FALSE(result(3));
    EXPECT_EQ(result(3).error().kind, base::ErrorKind::internal);
    EXPECT_NE(result(3).error().message.find("thrown"), std::string::npos);
    ASSERT_FALSE(result(4));
    ASSERT_TRUE(result(5));
    EXPECT_EQ(stored(1), 2U);
    EXPECT_EQ(*result(5), 2U) << "an undone seq is used again";
}

TEST_F(WriterTest, AClosureThatFailsAloneLeavesNothing) {
    start([](WriteTxn& txn) -> Result<Seq> {
        MessageRecord message;
        message.thread = 1;
        txn.add_message(message);
        return base::fail(base::ErrorKind::conflict, "run_busy", "no");
    });
    run_all();
    EXPECT_FALSE(result(0));
    EXPECT_EQ(stored(1), 0U);
}

TEST_F(WriterTest, AFullMapFailsOneClosureAndTheStoreWorksOn) {
    open(1 * limits::kMiB);
    const std::uint64_t before = store_->commits();
    hold();
    start(adding(1, "small"));
    start(adding(1, std::string(2 * limits::kMiB, 'x')));
    // One that hides the failure from the writer, which must still not commit its broken
    // transaction.
    start([](WriteTxn& txn) -> Result<Seq> {
        MessageRecord message;
        message.thread = 1;
        message.content.assign(2 * limits::kMiB, 'x');
        try {
            txn.add_message(message);
        } catch (const std::exception&) {
        }
        return Seq{0};
    });
    start(adding(1, "small too"));
    io_.poll();
    release();
    run_all();
    EXPECT_TRUE(result(1));
    ASSERT_FALSE(result(2));
    EXPECT_EQ(result(2).error().code, "store_full");
    EXPECT_EQ(result(2).error().kind, base::ErrorKind::unavailable);
    ASSERT_FALSE(result(3));
    EXPECT_EQ(result(3).error().code, "store_failed");
    EXPECT_TRUE(result(4));
    EXPECT_EQ(store_->commits() - before, 2U) << "the good ones shared a commit";
    EXPECT_EQ(stored(1), 2U);
    write([](WriteTxn& txn) {
        MessageRecord message;
        message.thread = 1;
        txn.add_message(message);
    });
    EXPECT_EQ(stored(1), 3U);
}

TEST_F(WriterTest, AMapFilledToTheBrimKeepsAllThatWasAcknowledged) {
    open(1 * limits::kMiB);
    std::size_t acknowledged = 0;
    std::string code;
    for (int i = 0; i < 100'000 && code.empty(); ++i) {
        const auto result = try_write([](WriteTxn& txn) {
            MessageRecord message;
            message.thread = 1;
            message.content.assign(700, 'x');
            txn.add_message(message);
        });
        if (result) {
            ++acknowledged;
        } else {
            code = result.error().code;
        }
    }
    EXPECT_EQ(code, "store_full");
    EXPECT_GT(acknowledged, 100U);
    EXPECT_EQ(stored(1), acknowledged);
    open(8 * limits::kMiB);
    EXPECT_EQ(stored(1), acknowledged);
    write([](WriteTxn& txn) {
        MessageRecord message;
        message.thread = 1;
        txn.add_message(message);
    });
    EXPECT_EQ(stored(1), acknowledged + 1);
}

TEST_F(WriterTest, AFullQueueAnswersBusyAtOnce) {
    hold();
    for (std::size_t i = 0; i < limits::kStoreQueue + 3; ++i) {
        start(adding(1, "x"));
    }
    io_.poll();
    release();
    run_all();
    std::size_t busy = 0;
    for (std::size_t i = 1; i < results_.size(); ++i) {
        if (!result(i)) {
            EXPECT_EQ(result(i).error().code, "store_busy");
            EXPECT_EQ(result(i).error().kind, base::ErrorKind::exhausted);
            ++busy;
        }
    }
    EXPECT_EQ(busy, 3U);
    EXPECT_EQ(stored(1), limits::kStoreQueue);
}

TEST_F(WriterTest, ManyLargeRecordsAreSplitIntoSeveralCommits) {
    const std::uint64_t before = store_->commits();
    hold();
    for (int i = 0; i < 9; ++i) {
        start(adding(1, std::string(8 * limits::kMiB, 'x')));
    }
    io_.poll();
    release();
    run_all();
    EXPECT_EQ(stored(1), 9U);
    EXPECT_EQ(store_->commits() - before, 4U) << "1 held, then 32 MiB at a time";
}

TEST_F(WriterTest, AWriteUnderWayIsNotCancelled) {
    hold();
    asio::cancellation_signal signal;
    results_.emplace_back();
    asio::co_spawn(
        io_,
        write_one(adding(1, "x"), 1),
        asio::bind_cancellation_slot(signal.slot(), asio::detached)
    );
    io_.poll();
    signal.emit(asio::cancellation_type::terminal);
    io_.poll();
    EXPECT_FALSE(results_[1]) << "its caller waits until it knows";
    release();
    run_all();
    ASSERT_TRUE(results_[1]);
    EXPECT_TRUE(result(1));
    EXPECT_EQ(stored(1), 1U);
}

TEST_F(WriterTest, ACallerThatIsCancelledAlreadyWritesNothing) {
    asio::cancellation_signal signal;
    boost::system::error_code code;
    asio::co_spawn(
        io_,
        write_after_sleep(adding(1, "x"), &code),
        asio::bind_cancellation_slot(signal.slot(), asio::detached)
    );
    io_.poll();
    signal.emit(asio::cancellation_type::terminal);
    run_all();
    EXPECT_EQ(code, asio::error::operation_aborted);
    EXPECT_EQ(stored(1), 0U);
}

TEST_F(WriterTest, CapturesAreReleasedBeforeTheCallerGoesOn) {
    auto token = std::make_shared<int>(1);
    std::weak_ptr<int> seen = token;
    const auto written =
        store_->write_blocking([held = std::move(token)](WriteTxn&) -> Result<void> {
            EXPECT_EQ(*held, 1);
            return {};
        });
    EXPECT_TRUE(written);
    EXPECT_TRUE(seen.expired());
}

TEST_F(WriterTest, ClosingWritesWhatIsQueued) {
    hold();
    for (int i = 0; i < 100; ++i) {
        start(adding(1, "x"));
    }
    io_.poll();
    release();
    open();  // closes first
    EXPECT_EQ(stored(1), 100U);
    run_all();
    EXPECT_TRUE(result(100));
}

// Nested transactions that end in every way, against a model in memory.
TEST_F(WriterTest, RandomSuccessesAndFailuresLeaveExactlyTheSuccesses) {
    std::mt19937 random(7);
    std::map<ThreadNo, std::vector<std::string>> model;
    for (int round = 0; round < 40; ++round) {
        std::vector<std::pair<ThreadNo, std::string>> tried;
        const std::size_t first = results_.size();
        for (int i = 0; i < 60; ++i) {
            const ThreadNo thread = 1 + random() % 5;
            const std::string content(random() % 6000, static_cast<char>('a' + random() % 26));
            const unsigned fate = random() % 4;
            tried.emplace_back(thread, content);
            start([=](WriteTxn& txn) -> Result<Seq> {
                MessageRecord message;
                message.thread = thread;
                message.content = content;
                txn.add_message(message);
                EventRecord event;
                event.run = thread;
                txn.add_event(event);
                if (fate == 0) {
                    return base::fail(base::ErrorKind::conflict, "no", "no");
                }
                if (fate == 1) {
                    throw std::runtime_error("no");
                }
                return message.seq;
            });
        }
        run_all();
        for (std::size_t i = 0; i < tried.size(); ++i) {
            if (result(first + i)) {
                model[tried[i].first].push_back(tried[i].second);
            }
        }
    }
    open();
    for (const auto& [thread, contents] : model) {
        const auto messages =
            store_->read([&](const ReadTxn& txn) { return txn.messages(thread); });
        ASSERT_EQ(messages.size(), contents.size());
        for (std::size_t i = 0; i < contents.size(); ++i) {
            ASSERT_EQ(messages[i].content, contents[i]);
        }
        const auto events =
            store_->read([&](const ReadTxn& txn) { return txn.events(thread, {}, SIZE_MAX); });
        EXPECT_EQ(events.size(), contents.size());
    }
}

}  // namespace
}  // namespace ars::store
