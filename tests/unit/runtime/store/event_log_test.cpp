#include "base/clock.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

#include <set>

namespace ars::store {
namespace {

class EventLog : public StoreTest {
  protected:
    std::vector<EventRecord> events(RunNo run, EventId after, std::size_t limit) {
        return store_->read([&](const ReadTxn& txn) { return txn.events(run, after, limit); });
    }
    std::optional<EventId> last(RunNo run) {
        return store_->read([&](const ReadTxn& txn) { return txn.last_event_id(run); });
    }
    // Many events of one millisecond each third, with those of another run between them.
    std::vector<EventRecord> fill(RunNo run, int count) {
        std::vector<EventRecord> out;
        write([&](WriteTxn& txn) {
            for (int i = 0; i < count; ++i) {
                EventRecord event;
                event.run = run;
                event.type = "messages";
                event.payload = std::to_string(i);
                event.created_ms = 1000 + i / 3;
                txn.add_event(event);
                out.push_back(event);
                EventRecord other;
                other.run = run + 1000;
                txn.add_event(other);
            }
        });
        return out;
    }
};

TEST_F(EventLog, AnEventComesBackAsItWasWritten) {
    const EventRecord event = add_event(7, 1234, "{\"a\":1}");
    EXPECT_EQ(event.id, (EventId{1234, 0}));
    const auto read = events(7, {}, 10);
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read[0].id, event.id);
    EXPECT_EQ(read[0].run, 7U);
    EXPECT_EQ(read[0].type, "messages");
    EXPECT_EQ(read[0].payload, "{\"a\":1}");
    EXPECT_EQ(read[0].created_ms, 1234);
}

TEST_F(EventLog, ARunWithoutEventsHasNoneAndNoLastId) {
    add_event(7, 1);
    EXPECT_TRUE(events(8, {}, 10).empty());
    EXPECT_TRUE(events(6, {}, 10).empty());
    EXPECT_FALSE(last(8));
}

TEST_F(EventLog, IdsRiseWithinOneMillisecondAndWhenTheClockStepsBack) {
    EXPECT_EQ(add_event(1, 500).id, (EventId{500, 0}));
    EXPECT_EQ(add_event(1, 500).id, (EventId{500, 1}));
    EXPECT_EQ(add_event(1, 100).id, (EventId{500, 2}));
    EXPECT_EQ(add_event(1, 501).id, (EventId{501, 0}));
    EXPECT_EQ(add_event(2, 100).id, (EventId{100, 0})) << "each run has ids of its own";
}

TEST_F(EventLog, IdsGoOnRisingAfterAReopenWithAnEarlierClock) {
    const std::int64_t future = base::now_ms() + 3'600'000;
    const EventId before = add_event(1, future).id;
    open();
    const EventId after = add_event(1, 0).id;  // 0 = the clock of now, an hour earlier
    EXPECT_GT(after, before);
    EXPECT_EQ(last(1), after);
    EXPECT_EQ(events(1, before, 10).size(), 1U);
}

TEST_F(EventLog, EveryCursorAndLimitGivesTheExactSliceInOrder) {
    const auto all = fill(3, 300);  // several marks, and a tail after the last one
    for (std::size_t from = 0; from <= all.size(); from += 7) {
        const EventId after = from == 0 ? EventId{} : all[from - 1].id;
        for (const std::size_t limit :
             {std::size_t{0},
              std::size_t{1},
              std::size_t{63},
              std::size_t{64},
              std::size_t{65},
              std::size_t{1000}}) {
            const auto read = events(3, after, limit);
            ASSERT_EQ(read.size(), std::min(limit, all.size() - from)) << from << " " << limit;
            for (std::size_t i = 0; i < read.size(); ++i) {
                ASSERT_EQ(read[i].id, all[from + i].id);
                ASSERT_EQ(read[i].payload, std::to_string(from + i));
            }
        }
    }
}

TEST_F(EventLog, ACursorBetweenAndBeyondIdsWorks) {
    add_event(1, 100);
    add_event(1, 200);
    EXPECT_EQ(events(1, {150, 9}, 10).size(), 1U);
    EXPECT_TRUE(events(1, {200, 0}, 10).empty());
    EXPECT_TRUE(events(1, {UINT64_MAX, UINT32_MAX}, 10).empty());
}

TEST_F(EventLog, ALogReadPageByPageIsComplete) {
    const auto all = fill(3, 1000);
    std::vector<EventRecord> read;
    for (auto page = events(3, {}, 90); !page.empty(); page = events(3, page.back().id, 90)) {
        read.insert(read.end(), page.begin(), page.end());
    }
    ASSERT_EQ(read.size(), all.size());
    std::set<EventId> ids;
    for (const auto& event : read) {
        EXPECT_TRUE(ids.empty() || event.id > *ids.rbegin());
        ids.insert(event.id);
    }
}

}  // namespace
}  // namespace ars::store
