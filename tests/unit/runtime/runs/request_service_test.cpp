#include "runtime/runs/request_service.hpp"

#include "base/clock.hpp"
#include "runtime/runs/intake.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <optional>

namespace ars::runs {
namespace {

using namespace std::chrono_literals;
using store::QueuePolicy;
using store::RequestStatus;
using store::RunStatus;

class Requests : public store::StoreTest {
  protected:
    void SetUp() override {
        StoreTest::SetUp();
        restart();
    }
    // As a new process on the same store.
    void restart() {
        service_ = std::make_unique<RequestService>(
            *store_,
            io_.get_executor(),
            store::quiet_log(),
            [this](store::RunRecord run) { launched_.push_back(std::move(run)); }
        );
        launched_.clear();
    }
    template <class R>
    R await(base::Task<R> task) {
        std::optional<R> out;
        base::asio::co_spawn(io_, std::move(task), [&out](std::exception_ptr error, R result) {
            if (error) {
                std::rethrow_exception(error);
            }
            out.emplace(std::move(result));
        });
        io_.restart();
        io_.run();
        return std::move(out.value());
    }
    void await(base::Task<void> task) {
        base::asio::co_spawn(io_, std::move(task), [](std::exception_ptr error) {
            if (error) {
                std::rethrow_exception(error);
            }
        });
        io_.restart();
        io_.run();
    }
    Submitted send(
        const store::ThreadRecord& thread,
        const std::string& query,
        QueuePolicy policy = QueuePolicy::enqueue
    ) {
        Intake intake;
        intake.thread = thread;
        intake.query = query;
        intake.run.uid = thread.uid;
        intake.run.agent_slug = thread.agent_slug;
        intake.run.queue_policy = policy;
        Submitted out;
        write([&](store::WriteTxn& txn) { out = write_intake(txn, intake, {}).value(); });
        return out;
    }
    void set_status(store::RunNo no, RunStatus status) {
        write([&](store::WriteTxn& txn) {
            store::RunRecord run = txn.run(no).value();
            run.status = status;
            run.finished_ms = store::is_terminal(status) ? base::now_ms() : 0;
            txn.put_run(run);
        });
    }
    static agents::User alice() {
        agents::User user;
        user.uid = "alice";
        return user;
    }
    static agents::User bob() {
        agents::User user;
        user.uid = "bob";
        return user;
    }

    base::asio::io_context io_{1};
    std::vector<store::RunRecord> launched_;
    std::unique_ptr<RequestService> service_;
};

TEST_F(Requests, TheNextOneIsServedWhenItsThreadIsFreeAndNotBeforeItIsOpen) {
    const store::ThreadRecord thread = new_thread();
    const Submitted first = send(thread, "first");
    const Submitted second = send(thread, "second");
    service_->open();
    await(service_->advance(thread.no));
    EXPECT_TRUE(launched_.empty());
    set_status(first.run.no, RunStatus::completed);
    service_->close();
    await(service_->advance(thread.no));
    EXPECT_TRUE(launched_.empty()) << "a shutdown leaves it to the next boot";
    service_->open();
    await(service_->advance(thread.no));
    ASSERT_EQ(launched_.size(), 1U);
    EXPECT_EQ(launched_[0].request_id, second.request.request_id);
    await(service_->advance(thread.no));
    EXPECT_EQ(launched_.size(), 1U);
}

TEST_F(Requests, K107ABootServesEveryThreadThatMayGoOnInTheOldOrder) {
    std::vector<store::ThreadRecord> threads;
    std::vector<Submitted> heads;
    for (int i = 0; i < 4; ++i) {
        threads.push_back(new_thread());
        heads.push_back(send(threads.back(), "head"));
    }
    std::vector<Submitted> queued;
    for (const int i : {2, 0, 3, 1}) {
        queued.push_back(send(threads[static_cast<std::size_t>(i)], "queued"));
    }
    set_status(heads[2].run.no, RunStatus::completed);
    set_status(heads[0].run.no, RunStatus::completed);
    set_status(heads[1].run.no, RunStatus::failed);  // pauses; 3 still runs
    open();
    restart();
    service_->open();
    await(service_->advance_all());
    ASSERT_EQ(launched_.size(), 2U);
    EXPECT_EQ(launched_[0].request_id, queued[0].request.request_id);
    EXPECT_EQ(launched_[1].request_id, queued[1].request.request_id);
}

TEST_F(Requests, K107OneBrokenThreadDoesNotStopOthers) {
    const store::ThreadRecord broken = new_thread();
    const store::ThreadRecord sound = new_thread();
    const Submitted first = send(broken, "first");
    send(broken, "queued");
    const Submitted other = send(sound, "first");
    const Submitted queued = send(sound, "queued");
    set_status(other.run.no, RunStatus::completed);
    write([&](store::WriteTxn& txn) {
        store::RunRecord run = txn.run(first.run.no).value();
        run.status = RunStatus::failed;  // without a time: what it means for the queue is unknown
        txn.put_run(run);
    });
    service_->open();
    await(service_->advance_all());
    ASSERT_EQ(launched_.size(), 1U);
    EXPECT_EQ(launched_[0].request_id, queued.request.request_id);
}

TEST_F(Requests, OfOthersLookMissing) {
    const store::ThreadRecord thread = new_thread();
    const Submitted first = send(thread, "first");
    const Submitted queued = send(thread, "queued");
    service_->open();
    for (const std::string& id : {first.request.request_id, queued.request.request_id}) {
        EXPECT_TRUE(service_->find(alice(), id));
        EXPECT_EQ(service_->find(bob(), id).error().code, "request_not_found");
        EXPECT_EQ(await(service_->cancel(bob(), id)).error().code, "request_not_found");
        EXPECT_EQ(await(service_->steer(bob(), id)).error().code, "request_not_found");
    }
    EXPECT_EQ(service_->queue(bob(), thread.id, "").error().code, "thread_not_found");
    EXPECT_EQ(service_->queue(alice(), thread.id, "writer").error().code, "thread_not_found");
    EXPECT_EQ(await(service_->go_on(bob(), thread.id, "")).error().code, "thread_not_found");
    EXPECT_EQ(service_->active_run(bob(), thread.id).error().code, "thread_not_found");
    const auto queue = service_->queue(alice(), thread.id, thread.agent_slug);
    ASSERT_TRUE(queue);
    ASSERT_EQ(queue->requests.size(), 1U);
    EXPECT_EQ(queue->requests[0].content, "queued");
}

TEST_F(Requests, ContinueServesWhatItDispatched) {
    const store::ThreadRecord thread = new_thread();
    const Submitted first = send(thread, "first");
    send(thread, "queued");
    set_status(first.run.no, RunStatus::failed);
    EXPECT_EQ(await(service_->go_on(alice(), thread.id, "")).error().code, "not_accepting");
    service_->open();
    await(service_->advance(thread.no));
    EXPECT_TRUE(launched_.empty());
    const auto run = await(service_->go_on(alice(), thread.id, ""));
    ASSERT_TRUE(run);
    ASSERT_EQ(launched_.size(), 1U);
    EXPECT_EQ(launched_[0].no, run->no);
    EXPECT_EQ(service_->active_run(alice(), thread.id)->value().no, run->no);
}

TEST_F(Requests, K97CancelOfARunThatNeverWaitedNamesItsState) {
    const store::ThreadRecord thread = new_thread();
    const Submitted first = send(thread, "first");
    EXPECT_EQ(
        await(service_->cancel(alice(), first.request.request_id)).error().code,
        "request_already_dispatched"
    );
    EXPECT_EQ(
        await(service_->steer(alice(), first.request.request_id)).error().code, "request_not_queued"
    );
}

TEST_F(Requests, WhoWaitsIsWokenByItsOwnThreadOnly) {
    const store::ThreadRecord thread = new_thread();
    const store::ThreadRecord other = new_thread();
    int woken = 0;
    int timed_out = 0;
    const auto wait = [&](const store::ThreadRecord& which, base::milliseconds limit) {
        base::asio::co_spawn(
            io_,
            service_->wait(which.no, base::Deadline::after(limit)),
            [&](std::exception_ptr, bool notified) { ++(notified ? woken : timed_out); }
        );
    };
    wait(thread, 60s);
    wait(thread, 60s);
    wait(other, 50ms);
    base::asio::post(io_, [&] { service_->notify(thread.no); });
    io_.run();
    EXPECT_EQ(woken, 2);
    EXPECT_EQ(timed_out, 1);
}

}  // namespace
}  // namespace ars::runs
