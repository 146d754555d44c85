// Runs that wait for a person: what stops, what goes on, and what a cancel or a second answer makes
// of it.
#include "tests/unit/runtime/runs/interrupts_fixture.hpp"

#include <gmock/gmock.h>

namespace ars::runs {
namespace {

TEST_F(Interrupts, S50SiblingsThatNeedNobodyFinishFirstAndNothingElseBegins) {
    const store::RunRecord run = waiting(calling(
        {{"write_file", kWriteA}, {"ls", "{}"}, {"ask_user_question", kAsk}, {"nope", "{}"}}
    ));
    const std::vector<Interrupt> open = pending(run.id);
    ASSERT_EQ(open.size(), 2U);
    EXPECT_EQ(open[0].call.name, "write_file");
    EXPECT_FALSE(open[0].is_question());
    EXPECT_TRUE(open[1].is_question());
    const auto counts = results(run.thread_id);
    EXPECT_EQ(std::ranges::count(counts, 1, [](const auto& one) { return one.second; }), 2);
    EXPECT_FALSE(exists(file(run.thread_id, "a.txt")));
    store_->read([&](const store::ReadTxn& txn) {
        EXPECT_EQ(txn.calls(run.no, 1).size(), 2U) << "what waits has no intent";
    });
    EXPECT_EQ(runs_->counts().running_roots, 0U) << "what waits holds no slot";
    EXPECT_EQ(run.finished_ms, 0);
}

TEST_F(Interrupts, K74aOneInterruptEventForEachAndThenTheEnd) {
    const store::RunRecord run =
        waiting(calling({{"write_file", kWriteA}, {"ask_user_question", kAsk}}));
    const std::vector<store::EventRecord> all = events(run.id);
    const std::vector<std::string> names = types(all);
    ASSERT_GE(names.size(), 3U);
    EXPECT_EQ(
        std::vector<std::string>(names.end() - 3, names.end()),
        (std::vector<std::string>{"interrupt", "interrupt", "end"})
    );
    const json::value approval = json::parse(all[all.size() - 3].payload);
    EXPECT_EQ(approval.at("reason"), "human_approval");
    EXPECT_EQ(approval.at_pointer("/chunk/action_requests/0/name"), "write_file");
    EXPECT_EQ(approval.at_pointer("/chunk/action_requests/0/args/content"), "a");
    EXPECT_EQ(approval.at_pointer("/interrupt/id").as_string(), pending(run.id)[0].id);
    const json::value question = json::parse(all[all.size() - 2].payload);
    EXPECT_EQ(question.at("reason"), "ask_user_question_required");
    EXPECT_EQ(question.at_pointer("/chunk/questions/0/question_id"), "colour");
    EXPECT_EQ(json::parse(all.back().payload).at("status"), "interrupted");
    EXPECT_FALSE(std::ranges::any_of(all, [](const store::EventRecord& event) {
        return event.payload.find("tool-started") != std::string::npos;
    })) << "nothing has started";
}

// Whoever looks between any two commits sees both or neither.
TEST_F(Interrupts, K72TheInterruptItsMessageAndTheStatusAreOneCommit) {
    script({calling({{"write_file", kWriteA}, {"ls", "{}"}}), saying("done")});
    const std::string id = submit("go")->run.id;
    int looks = 0;
    bool waits = false;
    run_until([&] {
        store_->read([&](const store::ReadTxn& txn) {
            const store::RunRecord run = txn.run_by_id(id).value();
            std::vector<std::string> seen = types(events::read(txn, run, {}, 1000));
            waits = run.status == store::RunStatus::interrupted;
            EXPECT_EQ(std::ranges::count(seen, "interrupt"), waits ? 1 : 0);
            EXPECT_EQ(std::ranges::count(seen, "end"), waits ? 1 : 0);
            const auto message = txn.message(run.output_message);
            EXPECT_EQ(message.has_value(), waits);
            EXPECT_TRUE(!waits || message->tool_calls.size() == 2);
        });
        ++looks;
        return waits;
    });
    EXPECT_GT(looks, 3);
}

TEST_F(Interrupts, S76TheSameCallTwiceIsTwoInterrupts) {
    const store::RunRecord run =
        waiting(calling({{"write_file", kWriteA}, {"write_file", kWriteA}}));
    const std::vector<Interrupt> open = pending(run.id);
    ASSERT_EQ(open.size(), 2U);
    EXPECT_NE(open[0].id, open[1].id);
}

TEST_F(Interrupts, InModeAlwaysTrustNobodyIsAsked) {
    script({calling({{"write_file", kWriteA}}), saying("done")});
    const auto submitted = submit("go", {}, true);
    EXPECT_EQ(settled(submitted->run.id).status, store::RunStatus::completed);
    EXPECT_EQ(get(file(submitted->run.thread_id, "a.txt")), "a");
}

TEST_F(Interrupts, AQuestionThatIsNoneIsAnErrorOfTheCallAndAsksNobody) {
    script({calling({{"ask_user_question", R"({"questions": []})"}}), saying("done")});
    const auto submitted = submit("go");
    EXPECT_EQ(settled(submitted->run.id).status, store::RunStatus::completed);
    expect_one_result_each(submitted->run.thread_id);
}

TEST_F(Interrupts, S79AnApprovedCallRunsInARunWithTheSameToolsModelAndMode) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    const auto resumed = resume(run.id, approve());
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(resumed->run.type, store::RunType::resume);
    EXPECT_EQ(resumed->run.parent, run.no);
    const store::RunRecord last = settled(resumed->run.id);
    EXPECT_EQ(last.status, store::RunStatus::completed) << last.error_message;
    EXPECT_EQ(last.model_spec, run.model_spec);
    EXPECT_EQ(last.approval_mode, run.approval_mode);
    EXPECT_EQ(get(file(run.thread_id, "a.txt")), "a");
    expect_one_result_each(run.thread_id);
    ASSERT_EQ(model_->requests.size(), 2U);
    std::vector<std::string> before;
    std::vector<std::string> after;
    for (const auto& tool : model_->requests[0].tools) {
        before.push_back(tool->name);
    }
    for (const auto& tool : model_->requests[1].tools) {
        after.push_back(tool->name);
    }
    EXPECT_EQ(before, after);
    EXPECT_THAT(before, testing::IsSupersetOf({"write_file", "edit_file", "execute"}));
    EXPECT_EQ(last.steps, 2U) << "one lineage, one budget of steps";
    EXPECT_EQ(record(run.id).status, store::RunStatus::interrupted);
    EXPECT_TRUE(pending(run.id).empty());
    EXPECT_TRUE(store_->read([](const store::ReadTxn& txn) { return txn.open_runs(); }).empty())
        << "a boot need not look at what was resumed";
}

TEST_F(Interrupts, ARejectedCallNeverRunsAndTheModelHearsWhy) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    const auto resumed = resume(run.id, reject());
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(settled(resumed->run.id).status, store::RunStatus::completed);
    EXPECT_FALSE(exists(file(run.thread_id, "a.txt")));
    const models::Message& told = model_->requests.back().messages.back();
    EXPECT_TRUE(told.is_error);
    EXPECT_NE(told.content.find("not today"), std::string::npos) << told.content;
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, AnAnswerIsTheResultOfItsQuestion) {
    const store::RunRecord run = waiting(calling({{"ask_user_question", kAsk}}));
    EXPECT_EQ(code(resume(run.id, {{"answers", {{"colour", "green"}}}})), "bad_answers");
    EXPECT_EQ(code(resume(run.id, {{"answers", json::object{}}})), "bad_answers");
    EXPECT_EQ(code(resume(run.id, approve())), "wrong_answer");
    const auto resumed = resume(run.id, {{"answers", {{"colour", "blue"}}}});
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(settled(resumed->run.id).status, store::RunStatus::completed);
    const json::value told = json::parse(model_->requests.back().messages.back().content);
    EXPECT_EQ(told.at_pointer("/answer/colour"), "blue");
    EXPECT_EQ(told.at_pointer("/questions/0/question"), "Which?");
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, S7ApprovedOneByOneEachCallRunsOnceWhenAllAreDecided) {
    const store::RunRecord run =
        waiting(calling({{"write_file", kWriteA}, {"write_file", kWriteB}}));
    const std::vector<Interrupt> open = pending(run.id);
    EXPECT_EQ(code(resume(run.id, approve())), "interrupt_id_required");
    const auto first = resume(run.id, {{open[0].id, approve()}});
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->run.status, store::RunStatus::interrupted);
    EXPECT_EQ(types(events(first->run.id)).back(), "end");
    EXPECT_FALSE(exists(file(run.thread_id, "a.txt"))) << "the other one is undecided";
    ASSERT_EQ(pending(first->run.id).size(), 1U);
    EXPECT_EQ(code(resume(run.id, {{open[1].id, approve()}})), "resume_superseded");
    EXPECT_EQ(code(resume(first->run.id, {{open[0].id, approve()}})), "unknown_interrupt");
    reboot();
    const auto second = resume(first->run.id, {{open[1].id, approve()}});
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(settled(second->run.id).status, store::RunStatus::completed);
    EXPECT_EQ(get(file(run.thread_id, "a.txt")), "a");
    EXPECT_EQ(get(file(run.thread_id, "b.txt")), "b");
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, K111AResumeNeedsAnInterruptedRunThatIsTheLatest) {
    EXPECT_EQ(code(resume("no-such-run", approve())), "run_not_found");
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    ResumeRun foreign;
    foreign.user = {"bob", agents::UserRole::user, {}};
    foreign.agent_slug = run.agent_slug;
    foreign.run_id = run.id;
    foreign.resume = approve();
    EXPECT_EQ(code(await(runs_->resume(foreign))), "run_not_found");
    EXPECT_EQ(code(resume(run.id, {{"decision", "edit"}})), "bad_resume") << "K113";
    EXPECT_EQ(code(resume(run.id, json::array{})), "bad_resume");
    EXPECT_EQ(code(resume(run.id, {{"nope", approve()}})), "unknown_interrupt");
    const auto resumed = resume(run.id, approve());
    ASSERT_TRUE(resumed);
    settled(resumed->run.id);
    EXPECT_EQ(code(resume(run.id, reject())), "resume_superseded");
    EXPECT_EQ(code(resume(resumed->run.id, approve())), "run_not_interrupted");
}

TEST_F(Interrupts, K112S77TheSameAnswersTwiceAreOneRun) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    const auto first = resume(run.id, approve());
    ASSERT_TRUE(first);
    const auto again = resume(run.id, approve());
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->replayed);
    EXPECT_EQ(again->run.id, first->run.id);
    settled(first->run.id);
    reboot();
    EXPECT_EQ(resume(run.id, approve())->run.id, first->run.id);
    EXPECT_EQ(model_->requests.size(), 0U);
    EXPECT_EQ(code(resume(run.id, reject(), first->run.request_id)), "request_id_conflict");
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, K94S39AMessageToAnInterruptedThreadIsRefusedAndNothingIsStored) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    const std::size_t before = history(run.thread_id).size();
    EXPECT_EQ(code(submit("never mind", run.thread_id)), "run_interrupted");
    EXPECT_EQ(history(run.thread_id).size(), before);
    EXPECT_EQ(pending(run.id).size(), 1U);
}

TEST_F(Interrupts, S37S38ACancelAnswersTheCallsAndFreesTheThreadWithoutASecondEnd) {
    const store::RunRecord run =
        waiting(calling({{"write_file", kWriteA}, {"ask_user_question", kAsk}}));
    const std::size_t logged = events(run.id).size();
    EXPECT_EQ(cancel(run.id).status, store::RunStatus::cancelled);
    EXPECT_EQ(cancel(run.id).status, store::RunStatus::cancelled);
    EXPECT_EQ(events(run.id).size(), logged);
    expect_one_result_each(run.thread_id);
    EXPECT_EQ(code(resume(run.id, approve())), "run_not_interrupted");
    script({saying("hello")});
    const auto next = submit("hello", run.thread_id);
    ASSERT_TRUE(next) << next.error().message;
    const store::RunRecord last = settled(next->run.id);
    EXPECT_EQ(last.status, store::RunStatus::completed) << last.error_message;
    EXPECT_FALSE(exists(file(run.thread_id, "a.txt")));
}

TEST_F(Interrupts, ACancelOfTheInterruptedRunStopsTheOneThatWentOnFromIt) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    base::Notifier gate(io_->get_executor());
    model_->gate = &gate;
    model_->gated_agent = run.agent_slug;
    const auto resumed = resume(run.id, approve());
    ASSERT_TRUE(resumed);
    run_until([&] { return model_->requests.size() == 2; });
    EXPECT_EQ(cancel(run.id).status, store::RunStatus::cancelled);
    EXPECT_EQ(settled(resumed->run.id).status, store::RunStatus::cancelled);
    expect_one_result_each(run.thread_id);
    EXPECT_EQ(types(events(resumed->run.id)).back(), "end");
}

TEST_F(Interrupts, ACancelBeforeTheApprovedCallBeganAnswersIt) {
    const store::RunRecord run = waiting(calling({{"write_file", kWriteA}}));
    const auto resumed = resume(run.id, approve());
    ASSERT_TRUE(resumed);
    cancel(resumed->run.id);
    EXPECT_EQ(settled(resumed->run.id).status, store::RunStatus::cancelled);
    EXPECT_EQ(record(run.id).status, store::RunStatus::cancelled);
    expect_one_result_each(run.thread_id);
}

TEST_F(Interrupts, K68ACancelOfARunThatWaitsForASlotAnswersItsApprovedCalls) {
    script({calling({{"write_file", kWriteA}}), saying("done")});
    base::Notifier gate(io_->get_executor());
    model_->gate = &gate;
    model_->gated_agent = agents::kDefaultAgent;
    const std::string busy = submit("busy")->run.id;
    run_until([&] { return model_->requests.size() == 1; });
    model_->gate = nullptr;
    const auto submitted = submit("go");
    run_until([&] { return record(submitted->run.id).status == store::RunStatus::interrupted; });
    // Committed, and the server died before it could launch it.
    ResumeRun request;
    request.user = alice_;
    request.agent_slug = submitted->run.agent_slug;
    request.run_id = submitted->run.id;
    request.resume = approve();
    const auto resumption = check_resumption(std::move(request));
    ASSERT_TRUE(resumption);
    std::string next;
    ASSERT_TRUE(store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        next = write_resumption(txn, *resumption).value().run.id;
        return {};
    }));
    slots_ = 1;
    reboot();
    base::Notifier again(io_->get_executor());
    model_->gate = &again;
    model_->gated_agent = agents::kDefaultAgent;
    run_until([&] { return model_->requests.size() == 1; });
    ASSERT_EQ(record(busy).status, store::RunStatus::running) << "it has the only slot";
    ASSERT_EQ(record(next).status, store::RunStatus::pending);
    EXPECT_EQ(cancel(next).status, store::RunStatus::cancelled);
    expect_one_result_each(submitted->run.thread_id);
    cancel(busy);
    settled(busy);
}

}  // namespace
}  // namespace ars::runs
