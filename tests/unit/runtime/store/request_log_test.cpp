#include "tests/unit/runtime/store/store_fixture.hpp"

namespace ars::store {
namespace {

class Requests : public StoreTest {
  protected:
    RequestRecord queued(
        const ThreadRecord& thread, const std::string& id, QueuePolicy policy = QueuePolicy::enqueue
    ) {
        RequestRecord request;
        request.request_id = id;
        request.thread = thread.no;
        request.uid = thread.uid;
        request.content = "say " + id;
        request.policy = policy;
        write([&](WriteTxn& txn) { txn.put_request(request); });
        return request;
    }
    void set_status(RequestRecord& request, RequestStatus status) {
        request.status = status;
        write([&](WriteTxn& txn) { txn.put_request(request); });
    }
    std::vector<RequestNo> queue(const ThreadRecord& thread) {
        return store_->read([&](const ReadTxn& txn) { return txn.queue_of(thread.no); });
    }
    std::string fault(const std::function<void(WriteTxn&)>& change) {
        const auto result = try_write(change);
        EXPECT_FALSE(result);
        return result ? "" : result.error().message;
    }
};

TEST_F(Requests, OfAThreadAreQueuedAsTheyCameAndASteerGoesFirst) {
    const ThreadRecord thread = new_thread();
    const ThreadRecord other = new_thread();
    RequestRecord first = queued(thread, "a");
    const RequestRecord elsewhere = queued(other, "b");
    const RequestRecord second = queued(thread, "c");
    EXPECT_FALSE(store_->read([&](const ReadTxn& txn) { return txn.has_steer(thread.no); }));
    const RequestRecord steer = queued(thread, "d", QueuePolicy::steer);
    EXPECT_EQ(queue(thread), (std::vector<RequestNo>{steer.no, first.no, second.no}));
    EXPECT_EQ(queue(other), (std::vector<RequestNo>{elsewhere.no}));
    store_->read([&](const ReadTxn& txn) {
        EXPECT_TRUE(txn.has_steer(thread.no));
        EXPECT_FALSE(txn.has_steer(other.no));
        EXPECT_EQ(txn.queued_requests(), 4U);
        EXPECT_EQ(txn.queued_threads(), (std::vector<ThreadNo>{thread.no, other.no}));
    });
    set_status(first, RequestStatus::dispatched);
    EXPECT_EQ(queue(thread), (std::vector<RequestNo>{steer.no, second.no}));
    store_->read([&](const ReadTxn& txn) {
        EXPECT_EQ(txn.queued_requests(), 3U);
        EXPECT_EQ(txn.queued_threads(), (std::vector<ThreadNo>{other.no, thread.no}));
    });
}

TEST_F(Requests, AreFoundByIdAfterTheyLeftTheQueueAndAfterAnotherOpen) {
    const ThreadRecord thread = new_thread();
    RequestRecord request = queued(thread, std::string(300, 'k'));
    request.run = 7;
    set_status(request, RequestStatus::rejected);
    open();
    const auto found =
        store_->read([](const ReadTxn& txn) { return txn.request_by_id(std::string(300, 'k')); });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->no, request.no);
    EXPECT_EQ(found->run, 7U);
    EXPECT_EQ(found->status, RequestStatus::rejected);
    EXPECT_FALSE(store_->read([](const ReadTxn& txn) { return txn.request_by_id("other"); }));
    EXPECT_TRUE(queue(thread).empty());
}

TEST_F(Requests, NeverShareAnIdNorComeBackIntoTheQueue) {
    const ThreadRecord thread = new_thread();
    RequestRecord request = queued(thread, "a");
    RequestRecord twin = request;
    twin.no = 0;
    EXPECT_NE(fault([&](WriteTxn& txn) { txn.put_request(twin); }).find("id"), std::string::npos);
    set_status(request, RequestStatus::cancelled);
    request.status = RequestStatus::queued;
    EXPECT_NE(
        fault([&](WriteTxn& txn) { txn.put_request(request); }).find("left the queue"),
        std::string::npos
    );
    EXPECT_TRUE(queue(thread).empty());
}

TEST_F(Requests, AThreadHasOneOpenRun) {
    const ThreadRecord thread = new_thread();
    RunRecord first = new_run(thread, RunStatus::running);
    RunRecord second;
    second.thread = thread.no;
    EXPECT_NE(
        fault([&](WriteTxn& txn) { txn.put_run(second); }).find("open run"), std::string::npos
    );
    first.status = RunStatus::interrupted;
    write([&](WriteTxn& txn) { txn.put_run(first); });
    second.no = 0;
    second.id.clear();
    write([&](WriteTxn& txn) { txn.put_run(second); });
    first.status = RunStatus::running;
    EXPECT_NE(
        fault([&](WriteTxn& txn) { txn.put_run(first); }).find("open run"), std::string::npos
    );
}

}  // namespace
}  // namespace ars::store
