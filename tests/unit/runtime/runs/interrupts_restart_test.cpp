// Runs that wait for a person, over restarts, deaths at every commit, and with children.
#include "tests/unit/runtime/runs/interrupts_fixture.hpp"

#include <gmock/gmock.h>

namespace ars::runs {
namespace {

TEST_F(Interrupts, S15S78ARestartChangesNothingOfWhatIsPending) {
    const store::RunRecord run =
        waiting(calling({{"write_file", kWriteA}, {"ask_user_question", kAsk}}));
    const auto shown = [&] {
        return store_->read([&](const store::ReadTxn& txn) {
            return interrupts_to_json(txn, *txn.run_by_id(run.id));
        });
    };
    const json::array before = shown();
    reboot();
    reboot();
    EXPECT_EQ(shown(), before);
    EXPECT_EQ(record(run.id).attempt, 1U);
    const auto resumed = resume(
        run.id,
        {{before[0].at("id").as_string(), approve()},
         {before[1].at("id").as_string(), {{"answers", {{"colour", "red"}}}}}}
    );
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(settled(resumed->run.id).status, store::RunStatus::completed);
    EXPECT_EQ(get(file(run.thread_id, "a.txt")), "a");
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, ChildrenGoOnWhileTheirParentWaitsAndBelongToTheRunThatGoesOn) {
    std::string child;
    answer_with(starting_a_child(child));
    base::Notifier gate(io_->get_executor());
    model_->gate = &gate;
    model_->gated_agent = agents::kGeneralPurpose;
    const auto submitted = submit("go");
    const store::RunRecord run = settled(submitted->run.id);
    ASSERT_EQ(run.status, store::RunStatus::interrupted) << run.error_message;
    EXPECT_EQ(record(child).status, store::RunStatus::running) << "an interrupt closes no child";
    gate.notify_all();
    model_->gate = nullptr;
    run_until([&] { return store::is_terminal(record(child).status); });
    EXPECT_EQ(types(events(run.id)).back(), "end") << "nothing comes after a waiting run's end";
    const auto resumed = resume(run.id, approve());
    ASSERT_TRUE(resumed) << resumed.error().message;
    const store::RunRecord last = settled(resumed->run.id);
    ASSERT_EQ(last.status, store::RunStatus::completed) << last.error_message;
    const auto outcome = runs_->outcome(alice_, last.id);
    EXPECT_NE(outcome->output.find("the child's answer"), std::string::npos) << outcome->output;
}

TEST_F(Interrupts, AtBootAChildEndsWithTheRunThatWentOnFromItsParent) {
    std::string child;
    answer_with(starting_a_child(child));
    base::Notifier gate(io_->get_executor());
    model_->gate = &gate;
    model_->gated_agent = agents::kGeneralPurpose;
    const store::RunRecord run = settled(submit("go")->run.id);
    ASSERT_EQ(run.status, store::RunStatus::interrupted) << run.error_message;
    model_->gated_agent = run.agent_slug;
    const std::size_t asked = model_->requests.size();
    const std::string next = resume(run.id, approve())->run.id;
    run_until([&] { return model_->requests.size() > asked; });
    // What a server leaves that dies between a cancel's commit and its work.
    const auto cancelled = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        store::RunRecord record = txn.run_by_id(next).value();
        record.status = store::RunStatus::cancel_requested;
        txn.put_run(record);
        return {};
    });
    ASSERT_TRUE(cancelled);
    reboot();
    EXPECT_EQ(record(next).status, store::RunStatus::cancelled);
    EXPECT_EQ(record(child).status, store::RunStatus::cancelled);
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, AnswersBeyondTheSlotsAreRefusedAndCanBeSentAgain) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    base::Notifier gate(io_->get_executor());
    model_->gate = &gate;
    model_->gated_agent = run.agent_slug;
    std::vector<std::string> busy;
    for (int i = 0; i < 4; ++i) {
        busy.push_back(submit("busy")->run.id);
    }
    EXPECT_EQ(code(resume(run.id, approve())), "runs_full");
    EXPECT_EQ(pending(run.id).size(), 1U);
    for (const std::string& id : busy) {
        cancel(id);
        run_until([&] { return store::is_terminal(record(id).status); });
    }
    model_->gate = nullptr;
    run_until([&] { return runs_->counts().running_roots == 0; });
    const auto resumed = resume(run.id, approve());
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(settled(resumed->run.id).status, store::RunStatus::completed);
}

// The process dies after the n-th commit, for every n there is; whoever answers sends the answer
// again.
TEST_F(Interrupts, AfterADeathAtAnyCommitEachCallHasOneResultAndRunsOnce) {
    script(
        {calling({{"write_file", kWriteA}, {"ls", "{}"}, {"ask_user_question", kAsk}}),
         saying("done")}
    );
    int deaths = 0;
    for (std::uint64_t die_at = 1; deaths == static_cast<int>(die_at) - 1; ++die_at) {
        const std::uint64_t begun = store_->commits();
        bool dead = false;
        const auto step_until = [&](auto condition) {
            run_until([&] {
                if (!dead && store_->commits() >= begun + die_at) {
                    dead = true;
                    ++deaths;
                }
                return dead || condition();
            });
        };
        SubmitRun request;
        request.user = alice_;
        request.agent_slug = std::string(agents::kDefaultAgent);
        request.query = "go";
        request.request_id = "death-" + std::to_string(die_at);
        const std::string id = await(runs_->submit(request))->run.id;
        const auto waits = [&] { return record(id).status == store::RunStatus::interrupted; };
        step_until(waits);
        if (dead) {
            reboot();
            run_until(waits);
        }
        const std::vector<Interrupt> open = pending(id);
        json::object answers;
        if (!open.empty()) {
            answers[open[0].id] = approve();
            answers[open[1].id] = {{"answers", {{"colour", "red"}}}};
        }
        auto resumed = resume(id, answers);
        ASSERT_TRUE(resumed) << resumed.error().message;
        const auto ended = [&] { return store::is_terminal(record(resumed->run.id).status); };
        step_until(ended);
        if (dead) {
            reboot();
            resumed = resume(id, answers);
            ASSERT_TRUE(resumed) << resumed.error().message;
            run_until(ended);
        }
        const store::RunRecord last = settled(resumed->run.id);
        EXPECT_EQ(last.status, store::RunStatus::completed) << last.error_message << die_at;
        EXPECT_EQ(get(file(last.thread_id, "a.txt")), "a") << die_at;
        expect_one_result_each(last.thread_id);
        EXPECT_EQ(results(last.thread_id).size(), 3U);
        EXPECT_EQ(types(events(last.id)).back(), "end");
        EXPECT_EQ(std::ranges::count(types(events(last.id)), "end"), 1);
    }
    EXPECT_GE(deaths, 6) << "intake, start, reply, result, interrupt, resume...";
}

}  // namespace
}  // namespace ars::runs
