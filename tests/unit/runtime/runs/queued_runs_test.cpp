// The queue with runs that are really served: who is next, what a steer makes of the run ahead, and
// what a restart between two of them leaves.
#include "tests/unit/runtime/runs/runs_fixture.hpp"

#include <gmock/gmock.h>

namespace ars::runs {
namespace {

using store::QueuePolicy;
using store::RequestStatus;
using store::RunStatus;

constexpr const char* kWrite = R"({"file_path": "a.txt", "content": "a"})";

class QueuedRuns : public RunsTest {
  protected:
    QueuedRuns() {
        answer_with([](const models::ModelRequest& request) {
            return saying("done: " + request.messages.back().content);
        });
    }
    // The model does not answer until open().
    void hold() {
        gate_ = std::make_unique<base::Notifier>(io_->get_executor());
        model_->gate = gate_.get();
        model_->gated_agent = agents::kDefaultAgent;
    }
    void open() {
        model_->gate = nullptr;
        gate_->notify_all();
    }
    base::Result<Submitted> send(
        const std::string& query, QueuePolicy policy = QueuePolicy::enqueue, bool trusted = true
    ) {
        SubmitRun request;
        request.user = alice_;
        request.agent_slug = std::string(agents::kDefaultAgent);
        request.query = query;
        request.thread_id = thread_;
        request.queue_policy = policy;
        if (trusted) {
            request.approval_mode = agents::ApprovalMode::always_trust;
        }
        base::Result<Submitted> out = await(runs_->submit(std::move(request)));
        if (out) {
            thread_ = out->request.thread_id;
        }
        return out;
    }
    // A run that waits for its model.
    Submitted begun(const std::string& query = "first") {
        hold();
        const Submitted first = send(query).value();
        wait_for_calls(1);
        return first;
    }
    void wait_for_calls(std::size_t count) {
        run_until([&] { return model_->requests.size() >= count; });
    }
    store::RequestRecord request(const Submitted& sent) {
        return runs_->requests().find(alice_, sent.request.request_id).value();
    }
    // Serves until nothing of the thread waits or works.
    void serve_all() {
        run_until([&] {
            const auto queue = runs_->requests().queue(alice_, thread_, "");
            return queue->state.status != QueueStatus::running &&
                   queue->state.status != QueueStatus::ready && runs_->counts().running_roots == 0;
        });
    }
    std::vector<std::string> said() {
        std::vector<std::string> out;
        for (const store::MessageRecord& message : history(thread_)) {
            if (message.role != store::Role::tool && !message.content.empty()) {
                out.push_back(message.content);
            }
        }
        return out;
    }

    std::string thread_;
    std::unique_ptr<base::Notifier> gate_;
};

TEST_F(QueuedRuns, K90AreServedOneAfterTheOther) {
    begun();
    send("second");
    send("third");
    open();
    serve_all();
    EXPECT_EQ(
        said(),
        (std::vector<std::string>{
            "first", "done: first", "second", "done: second", "third", "done: third"
        })
    );
    EXPECT_EQ(model_->requests.size(), 3U);
}

TEST_F(QueuedRuns, K107ARestartGoesOnInTheOldOrder) {
    const Submitted first = begun();
    const Submitted second = send("second").value();
    send("third");
    stop();
    gate_.reset();
    // The first goes on before the second: seen when its model is asked, as it may be over when
    // boot() returns.
    std::optional<RequestStatus> seen;
    answer_ = [&](const models::ModelRequest& asked) {
        seen = seen.value_or(request(second).status);
        return saying("done: " + asked.messages.back().content);
    };
    boot();
    serve_all();
    EXPECT_EQ(seen, RequestStatus::queued);
    EXPECT_EQ(record(first.run.id).attempt, 2U);
    EXPECT_EQ(
        said(),
        (std::vector<std::string>{
            "first", "done: first", "second", "done: second", "third", "done: third"
        })
    );
}

TEST_F(QueuedRuns, K107ABootServesAHeadWhoseRunAheadHadEndedJustBefore) {
    const Submitted first = begun();
    const Submitted second = send("second").value();
    // Killed after the end of the first was on disk, and before the second was dispatched.
    stop();
    gate_.reset();
    {
        auto store = store::Store::open(
            {.directory = directory_.path() + "/store",
             .max_size = std::size_t{256} << 20U,
             .sync = false},
            log_
        );
        ASSERT_TRUE(store);
        const auto written =
            (*store)->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
                store::RunRecord run = txn.run(first.run.no).value();
                run.status = RunStatus::completed;
                run.finished_ms = run.created_ms + 1;
                txn.put_run(run);
                return {};
            });
        ASSERT_TRUE(written);
    }
    boot();
    serve_all();
    EXPECT_EQ(request(second).status, RequestStatus::dispatched);
    EXPECT_EQ(said().back(), "done: second");
}

TEST_F(QueuedRuns, K102ASteeredRunFinishesItsToolsAndAsksNoMore) {
    script({calling({{"write_file", kWrite}, {"ls", "{}"}}), saying("never asked")});
    const Submitted first = begun();
    const Submitted steer = send("steer", QueuePolicy::steer).value();
    answer_with([script = answer_](const models::ModelRequest& request) {
        return request.messages.back().content == "steer" ? saying("steered") : script(request);
    });
    open();
    serve_all();
    const store::RunRecord ended = record(first.run.id);
    EXPECT_EQ(ended.status, RunStatus::completed);
    EXPECT_NE(ended.output_message, 0U) << "completed has an answer, be it empty";
    EXPECT_EQ(ended.steps, 1U);
    EXPECT_EQ(said(), (std::vector<std::string>{"first", "steer", "steered"}));
    EXPECT_EQ(model_->requests.size(), 2U);
    EXPECT_EQ(results(thread_).size(), 2U);
    for (const auto& [call, count] : results(thread_)) {
        EXPECT_EQ(count, 1) << call;
    }
    std::size_t seen = 0;
    for (const models::Message& message : model_->requests.back().messages) {
        seen += message.role == models::Role::tool ? 1U : 0U;
    }
    EXPECT_EQ(seen, 2U) << "K104: it sees what the tools said";
    EXPECT_EQ(request(steer).status, RequestStatus::dispatched);
    EXPECT_EQ(events(first.run.id).back().type, "end");
}

TEST_F(QueuedRuns, K103ASteerDuringTheLastAnswerKeepsTheAnswerAndHandsOver) {
    const Submitted first = begun();
    send("older");
    send("steer", QueuePolicy::steer);
    open();
    serve_all();
    EXPECT_EQ(
        said(),
        (std::vector<std::string>{
            "first", "done: first", "steer", "done: steer", "older", "done: older"
        })
    );
    EXPECT_EQ(record(first.run.id).steps, 1U);
}

TEST_F(QueuedRuns, K69ACancelBeatsASteer) {
    const Submitted first = begun();
    const Submitted steer = send("steer", QueuePolicy::steer).value();
    cancel(first.run.id);
    open();
    serve_all();
    EXPECT_EQ(record(first.run.id).status, RunStatus::cancelled);
    EXPECT_EQ(request(steer).status, RequestStatus::queued) << "paused with the queue";
    ASSERT_TRUE(await(runs_->requests().go_on(alice_, thread_, "")));
    serve_all();
    EXPECT_EQ(said().back(), "done: steer");
}

TEST_F(QueuedRuns, K99AResumedRunIsNotSteered) {
    script({calling({{"write_file", kWrite}}), saying("done")});
    const Submitted first = send("go", QueuePolicy::enqueue, false).value();
    ASSERT_EQ(settled(first.run.id).status, RunStatus::interrupted);
    for (const QueuePolicy policy :
         {QueuePolicy::enqueue, QueuePolicy::reject, QueuePolicy::steer}) {
        EXPECT_EQ(send("hello", policy).error().code, "run_interrupted");
    }
    hold();
    const auto resumed = resume(first.run.id, boost::json::object{{"decision", "approve"}});
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(resumed->request.status, RequestStatus::dispatched);
    wait_for_calls(2);
    EXPECT_EQ(send("steer", QueuePolicy::steer).error().code, "run_not_steerable");
    const Submitted queued = send("queued").value();
    EXPECT_EQ(queued.request.status, RequestStatus::queued);
    open();
    serve_all();
    EXPECT_EQ(record(resumed->run.id).status, RunStatus::completed);
    EXPECT_EQ(request(queued).status, RequestStatus::dispatched) << "after the resumed run";
}

TEST_F(QueuedRuns, S38ACancelOfAWaitingRunFreesItsThreadAndPausesWhatWaited) {
    script({calling({{"write_file", kWrite}}), saying("done")});
    hold();
    const Submitted first = send("go", QueuePolicy::enqueue, false).value();
    wait_for_calls(1);
    const Submitted queued = send("queued").value();
    open();
    ASSERT_EQ(settled(first.run.id).status, RunStatus::interrupted);
    EXPECT_EQ(await(runs_->requests().go_on(alice_, thread_, "")).error().code, "run_interrupted");
    EXPECT_EQ(cancel(first.run.id).status, RunStatus::cancelled);
    EXPECT_EQ(runs_->requests().queue(alice_, thread_, "")->state.status, QueueStatus::paused);
    answer_with([](const models::ModelRequest&) { return saying("at last"); });
    ASSERT_TRUE(await(runs_->requests().go_on(alice_, thread_, "")));
    serve_all();
    EXPECT_EQ(request(queued).status, RequestStatus::dispatched);
    EXPECT_EQ(said().back(), "at last") << "and its history has a result for each call";
}

TEST_F(QueuedRuns, AQueueNeedsNoSlotUntilItsTurnAndOtherThreadsAreServedMeanwhile) {
    const Submitted first = begun();
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(send("queued").value().request.status, RequestStatus::queued);
    }
    EXPECT_EQ(runs_->counts().running_roots, 1U);
    EXPECT_EQ(runs_->counts().queued_requests, 10U);
    const std::string busy = std::exchange(thread_, "");
    EXPECT_EQ(send("elsewhere").value().request.status, RequestStatus::dispatched);
    thread_ = busy;
    open();
    serve_all();
    EXPECT_EQ(runs_->counts().queued_requests, 0U);
    EXPECT_EQ(record(first.run.id).status, RunStatus::completed);
}

}  // namespace
}  // namespace ars::runs
