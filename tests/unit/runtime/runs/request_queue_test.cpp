// The queue of a thread on the real store: intake, order, pauses, steers. What a run does in
// between is played by writing its status.
#include "runtime/runs/request_queue.hpp"

#include "base/clock.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/intake.hpp"
#include "runtime/runs/run_records.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

#include <gtest/gtest.h>

namespace ars::runs {
namespace {

using store::QueuePolicy;
using store::RequestStatus;
using store::RunStatus;

class Queue : public store::StoreTest {
  protected:
    void SetUp() override {
        StoreTest::SetUp();
        thread_ = new_thread();
    }

    base::Result<Submitted> submit(Intake intake) {
        base::Result<Submitted> out;
        const auto written =
            store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
                out = write_intake(txn, intake, bounds_);
                return out ? base::Result<void>() : std::unexpected(out.error());
            });
        EXPECT_EQ(written.has_value(), out.has_value());
        return out;
    }
    Intake intake(
        const std::string& query,
        QueuePolicy policy = QueuePolicy::enqueue,
        const std::string& request_id = {}
    ) const {
        Intake out;
        out.thread = thread_;
        out.query = query;
        out.run.uid = thread_.uid;
        out.run.agent_slug = thread_.agent_slug;
        out.run.request_id = request_id;
        out.run.body_digest = query;
        out.run.queue_policy = policy;
        out.run.model_spec = "model-of-" + query;
        out.run.approval_mode = "mode-of-" + query;
        out.run.agent_config = "{}";
        out.run.max_steps = 7;
        out.run.timeout_ms = 1234;
        return out;
    }
    Submitted send(
        const std::string& query,
        QueuePolicy policy = QueuePolicy::enqueue,
        const std::string& request_id = {}
    ) {
        base::Result<Submitted> out = submit(intake(query, policy, request_id));
        EXPECT_TRUE(out) << out.error().message;
        return out.value_or(Submitted{});
    }
    std::string refusal(const std::string& query, QueuePolicy policy = QueuePolicy::enqueue) {
        const base::Result<Submitted> out = submit(intake(query, policy));
        EXPECT_FALSE(out);
        return out ? std::string() : out.error().code;
    }
    void set_status(store::RunNo no, RunStatus status) {
        write([&](store::WriteTxn& txn) {
            store::RunRecord run = txn.run(no).value();
            if (store::is_terminal(status)) {
                run.finished_ms = base::now_ms();
            }
            run.status = status;
            txn.put_run(run);
        });
    }
    // The running run of the thread.
    Submitted begun(const std::string& query = "first") {
        const Submitted out = send(query);
        set_status(out.run.no, RunStatus::running);
        return out;
    }
    QueueState state() {
        return store_->read([&](const store::ReadTxn& txn) { return queue_state(txn, thread_.no); }
        );
    }
    std::optional<store::RunRecord> next() {
        std::optional<store::RunRecord> run;
        write([&](store::WriteTxn& txn) { run = dispatch_ready(txn, thread_.no); });
        return run;
    }
    std::string text_of(const store::RunRecord& run) {
        return store_->read([&](const store::ReadTxn& txn) {
            return txn.message(run.input_message).value().content;
        });
    }
    template <class R>
    base::Result<R> change(const std::function<base::Result<R>(store::WriteTxn&)>& what) {
        base::Result<R> out;
        (void)store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            out = what(txn);
            return out ? base::Result<void>() : std::unexpected(out.error());
        });
        return out;
    }
    base::Result<store::RunRecord> go_on() {
        return change<store::RunRecord>([&](store::WriteTxn& txn) {
            return dispatch_paused(txn, thread_.no);
        });
    }
    base::Result<store::RequestRecord> cancel(const Submitted& sent) {
        return change<store::RequestRecord>([&](store::WriteTxn& txn) {
            return withdraw(txn, sent.request.no);
        });
    }
    base::Result<store::RequestRecord> upgrade(const Submitted& sent) {
        return change<store::RequestRecord>([&](store::WriteTxn& txn) {
            return promote(txn, sent.request.no);
        });
    }
    std::size_t messages() {
        return store_->read([&](const store::ReadTxn& txn) {
            return txn.messages(thread_.no).size();
        });
    }

    store::ThreadRecord thread_;
    IntakeBounds bounds_;
};

template <class R>
std::string code_of(const base::Result<R>& result) {
    return result ? "ok" : result.error().code;
}

TEST_F(Queue, K87MessagesSayWhatBecameOfThem) {
    const Submitted first = begun();
    EXPECT_EQ(first.request.status, RequestStatus::dispatched);
    EXPECT_EQ(first.request.no, 0U) << "a run that began at once leaves no record of waiting";
    EXPECT_EQ(first.position, 0U);
    const Submitted second = send("second");
    EXPECT_EQ(second.request.status, RequestStatus::queued);
    EXPECT_EQ(second.position, 1U);
    EXPECT_EQ(second.run.no, 0U);
    EXPECT_FALSE(second.request.request_id.empty());
    EXPECT_FALSE(second.message_id.empty());
    EXPECT_EQ(send("third").position, 2U);
    EXPECT_EQ(messages(), 1U) << "a queued message is not in the thread yet";
}

TEST_F(Queue, K90ServesInOrderOneAtATimeWithWhatWasTrueAtIntake) {
    const Submitted first = begun();
    const Submitted second = send("second");
    send("third");
    EXPECT_FALSE(next()) << "the thread is busy";
    set_status(first.run.no, RunStatus::completed);
    const auto run = next();
    ASSERT_TRUE(run);
    EXPECT_EQ(run->request_id, second.request.request_id);
    EXPECT_EQ(run->status, RunStatus::pending);
    EXPECT_EQ(run->model_spec, "model-of-second");
    EXPECT_EQ(run->approval_mode, "mode-of-second");
    EXPECT_EQ(run->max_steps, 7U);
    EXPECT_EQ(run->timeout_ms, 1234);
    EXPECT_EQ(run->scope_id, thread_.id);
    EXPECT_EQ(run->root, run->no);
    EXPECT_EQ(text_of(*run), "second");
    EXPECT_FALSE(next()) << "one at a time";
    const auto stored = store_->read([&](const store::ReadTxn& txn) {
        return txn.request_by_id(second.request.request_id);
    });
    EXPECT_EQ(stored->status, RequestStatus::dispatched);
    EXPECT_EQ(stored->run, run->no);
    EXPECT_EQ(stored->content, "") << "its text is in the thread now";
    const auto message = store_->read([&](const store::ReadTxn& txn) {
        return txn.message(run->input_message).value();
    });
    EXPECT_EQ(message.id, second.message_id);
    EXPECT_EQ(message.created_ms, second.request.created_ms);
    EXPECT_EQ(
        store_->read([&](const store::ReadTxn& txn) { return events::read(txn, *run, {}, 9); })[0]
            .type,
        "metadata"
    );
    set_status(run->no, RunStatus::completed);
    EXPECT_EQ(text_of(next().value()), "third");
    EXPECT_EQ(state().status, QueueStatus::running);
}

TEST_F(Queue, K90AMessageNeverOvertakesAQueueThatIsAboutToGoOn) {
    const Submitted first = begun();
    send("second");
    set_status(first.run.no, RunStatus::completed);
    EXPECT_EQ(state().status, QueueStatus::ready);
    EXPECT_EQ(send("third").position, 2U);
    EXPECT_EQ(text_of(next().value()), "second");
}

TEST_F(Queue, K88K89TheSameRequestIdIsTheSameRequestInEveryState) {
    const Submitted first = send("first", QueuePolicy::enqueue, "id-1");
    set_status(first.run.no, RunStatus::running);
    const Submitted queued = send("second", QueuePolicy::enqueue, "id-2");
    const Submitted again = send("second", QueuePolicy::enqueue, "id-2");
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.request.no, queued.request.no);
    EXPECT_EQ(again.message_id, queued.message_id);
    EXPECT_EQ(again.position, 1U);
    EXPECT_EQ(
        code_of(submit(intake("other", QueuePolicy::enqueue, "id-2"))), "request_id_conflict"
    );
    Intake foreign = intake("second", QueuePolicy::enqueue, "id-2");
    foreign.run.uid = "bob";
    EXPECT_EQ(code_of(submit(foreign)), "request_id_conflict");
    set_status(first.run.no, RunStatus::completed);
    const auto run = next();
    ASSERT_TRUE(run);
    const Submitted dispatched = send("second", QueuePolicy::enqueue, "id-2");
    EXPECT_TRUE(dispatched.replayed);
    EXPECT_EQ(dispatched.run.no, run->no);
    EXPECT_EQ(dispatched.position, 0U);
    const Submitted begun_at_once = send("first", QueuePolicy::enqueue, "id-1");
    EXPECT_TRUE(begun_at_once.replayed);
    EXPECT_EQ(begun_at_once.run.no, first.run.no);
    EXPECT_EQ(messages(), 2U);
}

TEST_F(Queue, K91RejectStoresTheRefusalAndItsReplayStaysRejected) {
    const Submitted first = begun();
    const Submitted refused = send("second", QueuePolicy::reject, "id-2");
    EXPECT_EQ(refused.request.status, RequestStatus::rejected);
    EXPECT_EQ(refused.request.error_type, "run_busy");
    EXPECT_EQ(refused.run.no, first.run.no) << "the run in its way";
    EXPECT_EQ(refused.request.content, "");
    set_status(first.run.no, RunStatus::completed);
    EXPECT_EQ(state().status, QueueStatus::idle);
    const Submitted again = send("second", QueuePolicy::reject, "id-2");
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.request.status, RequestStatus::rejected);
    const Submitted now = send("third", QueuePolicy::reject);
    EXPECT_EQ(now.request.status, RequestStatus::dispatched) << "on a free thread it is a run";
    EXPECT_EQ(now.run.queue_policy, QueuePolicy::reject);
}

TEST_F(Queue, K92RejectDoesNotWakeAPausedQueue) {
    const Submitted first = begun();
    send("second");
    set_status(first.run.no, RunStatus::failed);
    const Submitted refused = send("third", QueuePolicy::reject);
    EXPECT_EQ(refused.request.status, RequestStatus::rejected);
    EXPECT_EQ(refused.request.error_type, "queue_paused");
    EXPECT_EQ(state().status, QueueStatus::paused);
}

TEST_F(Queue, K93AFailurePausesWhatWaitedThenAndNotWhatComesLater) {
    const Submitted first = begun();
    const Submitted older = send("older");
    set_status(first.run.no, RunStatus::failed);
    EXPECT_EQ(state().status, QueueStatus::paused);
    EXPECT_EQ(state().blocker->no, first.run.no);
    EXPECT_FALSE(next());
    EXPECT_EQ(send("later").position, 2U);
    EXPECT_EQ(state().status, QueueStatus::paused) << "its head still is the older one";
    ASSERT_TRUE(cancel(older));
    EXPECT_EQ(state().status, QueueStatus::ready);
    EXPECT_EQ(text_of(next().value()), "later");
}

TEST_F(Queue, K93AMessageAfterAFailureIsLaterAlsoWithinTheSameMillisecond) {
    const Submitted first = begun();
    const Submitted older = send("older");
    write([&](store::WriteTxn& txn) {
        store::RunRecord run = txn.run(first.run.no).value();
        run.status = RunStatus::failed;
        run.finished_ms = base::now_ms() + 1000;
        txn.put_run(run);
    });
    send("later");
    ASSERT_TRUE(cancel(older));
    EXPECT_EQ(state().status, QueueStatus::ready);
}

TEST_F(Queue, K94NothingIsStoredWhileARunWaitsForAPerson) {
    const Submitted first = begun();
    send("second");
    set_status(first.run.no, RunStatus::interrupted);
    EXPECT_EQ(state().status, QueueStatus::interrupted);
    for (const QueuePolicy policy :
         {QueuePolicy::enqueue, QueuePolicy::reject, QueuePolicy::steer}) {
        EXPECT_EQ(refusal("third", policy), "run_interrupted");
    }
    EXPECT_EQ(store_->read([](const store::ReadTxn& txn) { return txn.queued_requests(); }), 1U);
    EXPECT_EQ(code_of(go_on()), "run_interrupted");
    EXPECT_FALSE(next());
    set_status(first.run.no, RunStatus::cancelled);
    EXPECT_EQ(state().status, QueueStatus::paused);
}

TEST_F(Queue, K95ContinueDispatchesOneHeadOfAPausedQueueAndNothingElse) {
    EXPECT_EQ(code_of(go_on()), "queue_empty");
    const Submitted first = begun();
    EXPECT_EQ(code_of(go_on()), "queue_empty");
    send("second");
    send("third");
    EXPECT_EQ(code_of(go_on()), "run_active");
    set_status(first.run.no, RunStatus::cancelled);
    const auto run = go_on();
    ASSERT_TRUE(run);
    EXPECT_EQ(text_of(*run), "second");
    EXPECT_EQ(code_of(go_on()), "run_active");
    set_status(run->no, RunStatus::completed);
    EXPECT_EQ(code_of(go_on()), "queue_not_paused");
    EXPECT_EQ(text_of(next().value()), "third") << "after a success the queue goes on by itself";
}

TEST_F(Queue, K95AQueueThatFailsAgainPausesAgain) {
    const Submitted first = begun();
    send("second");
    send("third");
    set_status(first.run.no, RunStatus::failed);
    const auto run = go_on();
    ASSERT_TRUE(run);
    set_status(run->no, RunStatus::failed);
    EXPECT_EQ(state().status, QueueStatus::paused);
    EXPECT_EQ(state().blocker->no, run->no);
}

TEST_F(Queue, K96AnEndedRunWithoutATimeOfItsEndRaises) {
    const Submitted first = begun();
    send("second");
    write([&](store::WriteTxn& txn) {
        store::RunRecord run = txn.run(first.run.no).value();
        run.status = RunStatus::failed;
        txn.put_run(run);
    });
    EXPECT_THROW(state(), std::logic_error);
}

TEST_F(Queue, K97CancelTakesARequestOutOnceAndARunNever) {
    const Submitted first = begun();
    const Submitted second = send("second");
    const Submitted third = send("third");
    const auto cancelled = cancel(second);
    ASSERT_TRUE(cancelled);
    EXPECT_EQ(cancelled->status, RequestStatus::cancelled);
    EXPECT_EQ(cancelled->content, "");
    EXPECT_EQ(cancel(second)->status, RequestStatus::cancelled) << "idempotent";
    set_status(first.run.no, RunStatus::completed);
    EXPECT_EQ(text_of(next().value()), "third");
    EXPECT_EQ(code_of(cancel(third)), "request_already_dispatched");
}

TEST_F(Queue, K98ASteerGoesFirstAndThereIsOne) {
    const Submitted first = begun();
    const Submitted older = send("older");
    const Submitted steer = send("steer", QueuePolicy::steer);
    EXPECT_EQ(steer.request.status, RequestStatus::queued);
    EXPECT_EQ(steer.position, 1U);
    store_->read([&](const store::ReadTxn& txn) {
        EXPECT_EQ(queue_position(txn, older.request), 2U);
    });
    EXPECT_EQ(refusal("another", QueuePolicy::steer), "steer_already_pending");
    EXPECT_EQ(code_of(upgrade(older)), "steer_already_pending");
    set_status(first.run.no, RunStatus::completed);
    EXPECT_EQ(text_of(next().value()), "steer");
}

TEST_F(Queue, K99ASteerNeedsARunningRunOfAChat) {
    const Submitted first = send("first");
    EXPECT_EQ(refusal("steer", QueuePolicy::steer), "run_not_steerable") << "pending";
    set_status(first.run.no, RunStatus::running);
    set_status(first.run.no, RunStatus::cancel_requested);
    EXPECT_EQ(refusal("steer", QueuePolicy::steer), "run_not_steerable");
    set_status(first.run.no, RunStatus::cancelled);
    for (const bool resumed : {true, false}) {
        Intake other = intake("other");
        other.run.type = resumed ? store::RunType::resume : store::RunType::chat;
        other.run.source = resumed ? "chat" : "agent_call";
        const auto run = submit(other);
        ASSERT_TRUE(run);
        set_status(run->run.no, RunStatus::running);
        EXPECT_EQ(refusal("steer", QueuePolicy::steer), "run_not_steerable") << resumed;
        set_status(run->run.no, RunStatus::completed);
    }
    EXPECT_EQ(store_->read([](const store::ReadTxn& txn) { return txn.queued_requests(); }), 0U);
    EXPECT_EQ(send("free", QueuePolicy::steer).request.status, RequestStatus::dispatched)
        << "on a free thread it is a message like any other";
}

TEST_F(Queue, K98ASteerWakesAPausedQueueAndGoesFirst) {
    const Submitted first = begun();
    send("older");
    set_status(first.run.no, RunStatus::failed);
    const Submitted steer = send("steer", QueuePolicy::steer);
    EXPECT_EQ(steer.request.status, RequestStatus::queued);
    EXPECT_EQ(text_of(next().value()), "steer");
}

TEST_F(Queue, K100AnUpgradeToSteerKeepsMessageTimeAndText) {
    const Submitted first = begun();
    send("second");
    const Submitted third = send("third");
    const auto steered = upgrade(third);
    ASSERT_TRUE(steered);
    EXPECT_EQ(steered->policy, QueuePolicy::steer);
    EXPECT_EQ(steered->message_id, third.message_id);
    EXPECT_EQ(steered->created_ms, third.request.created_ms);
    EXPECT_EQ(steered->content, "third");
    EXPECT_TRUE(upgrade(third)) << "idempotent";
    set_status(first.run.no, RunStatus::completed);
    EXPECT_EQ(text_of(next().value()), "third");
    EXPECT_EQ(code_of(upgrade(third)), "request_not_queued");
}

TEST_F(Queue, K100AnUpgradeNeedsARunningRun) {
    const Submitted first = begun();
    const Submitted second = send("second");
    set_status(first.run.no, RunStatus::failed);
    EXPECT_EQ(code_of(upgrade(second)), "run_not_steerable");
}

TEST_F(Queue, K101APendingSteerIsTakenBackOnlyWhenItsRunHasEnded) {
    const Submitted first = begun();
    const Submitted steer = send("steer", QueuePolicy::steer);
    EXPECT_EQ(code_of(cancel(steer)), "steer_in_progress");
    set_status(first.run.no, RunStatus::failed);
    EXPECT_EQ(cancel(steer)->status, RequestStatus::cancelled);
}

TEST_F(Queue, IsBoundedOverAllThreads) {
    bounds_.max_queued = 2;
    begun();
    send("a", QueuePolicy::enqueue, "id-a");
    thread_ = new_thread();
    begun("elsewhere");
    send("b");
    const auto full = submit(intake("c"));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, "queue_full");
    EXPECT_EQ(full.error().kind, base::ErrorKind::exhausted);
    EXPECT_EQ(send("d", QueuePolicy::reject).request.status, RequestStatus::rejected)
        << "what does not wait needs no room";
}

TEST_F(Queue, AFullPoolOfRunsRefusesNewThreadsAndQueuesBusyOnes) {
    begun();
    bounds_.no_slot = true;
    EXPECT_EQ(send("second").request.status, RequestStatus::queued);
    thread_ = new_thread();
    EXPECT_EQ(refusal("third"), "runs_full");
}

TEST_F(Queue, SurvivesAnotherOpenInItsOrder) {
    const Submitted first = begun();
    send("second");
    send("third");
    const Submitted steer = send("steer", QueuePolicy::steer);
    open();
    set_status(first.run.no, RunStatus::completed);
    const auto run = next();
    ASSERT_TRUE(run);
    EXPECT_EQ(run->request_id, steer.request.request_id);
    set_status(run->no, RunStatus::completed);
    EXPECT_EQ(text_of(next().value()), "second");
}

}  // namespace
}  // namespace ars::runs
