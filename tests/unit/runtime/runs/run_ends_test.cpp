// What may stand at the end of a run, what a stop leaves of it, and what one tool can do to it.
#include "runtime/runs/run_records.hpp"
#include "runtime/runs/run_view.hpp"
#include "tests/unit/runtime/runs/runs_fixture.hpp"

namespace ars::runs {
namespace {

class RunEnds : public RunsTest {};

TEST_F(RunEnds, K71K115AnOutputThatIsAnotherRunsIsNone) {
    script({saying("mine")});
    const auto first = submit("one");
    ASSERT_TRUE(first);
    const store::RunRecord one = settled(first->run.id);
    const auto second = submit("two", first->run.thread_id);
    ASSERT_TRUE(second);
    const store::RunRecord two = settled(second->run.id);
    const auto output = [this](const store::RunRecord& run) {
        return store_->read([&](const store::ReadTxn& txn) { return output_of(txn, run); });
    };
    EXPECT_EQ(output(one), "mine");
    store::RunRecord wrong = one;
    wrong.output_message = two.output_message;
    EXPECT_EQ(output(wrong), "");
    wrong.output_message = 0;
    EXPECT_EQ(output(wrong), "") << "the thread's latest message is no substitute";
    wrong = one;
    wrong.status = store::RunStatus::failed;
    EXPECT_EQ(output(wrong), "");
}

TEST_F(RunEnds, K70ARunIsCompletedByAnAnswerOfItsOwnOrNotAtAll) {
    script({saying("the other one's")});
    const store::RunRecord other = settled(submit("one")->run.id);
    bool asked = false;
    base::Notifier gate(io_->get_executor());
    model_->gate = &gate;
    model_->gated_agent = std::string(agents::kDefaultAgent);
    answer_with([&asked](const models::ModelRequest&) {
        asked = true;
        return saying("mine");
    });
    const auto open = submit("two");
    run_until([&] { return record(open->run.id).status == store::RunStatus::running; });
    const std::size_t events_before = events(open->run.id).size();
    const store::RunRecord run = record(open->run.id);
    for (const store::Seq output : {store::Seq(0), run.input_message, other.output_message}) {
        const auto ended = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            store::RunRecord wrong = run;
            wrong.output_message = output;
            write_end(txn, wrong, RunEnd{}, "");
            return {};
        });
        ASSERT_FALSE(ended) << output;
        EXPECT_EQ(ended.error().kind, base::ErrorKind::internal);
        EXPECT_EQ(record(run.id).status, store::RunStatus::running);
        EXPECT_EQ(events(run.id).size(), events_before);
    }
    EXPECT_FALSE(asked);
    gate.notify_all();
    EXPECT_EQ(settled(run.id).status, store::RunStatus::completed);
}

// The run was taken from it while the model spoke: what it said is nobody's.
TEST_F(RunEnds, K72WhoNoLongerOwnsTheRunLeavesNoMessage) {
    answer_with([&](const models::ModelRequest&) {
        EXPECT_TRUE(store_->write_blocking([](store::WriteTxn& txn) -> base::Result<void> {
            store::RunRecord run = txn.run(txn.open_runs().front()).value();
            run.status = store::RunStatus::cancel_requested;
            txn.put_run(run);
            return {};
        }));
        return saying("too late");
    });
    const store::RunRecord run = settled(submit("go")->run.id);
    EXPECT_EQ(run.status, store::RunStatus::cancelled);
    EXPECT_EQ(run.output_message, 0U);
    for (const store::MessageRecord& message : history(run.thread_id)) {
        EXPECT_NE(message.role, store::Role::assistant) << message.content;
    }
    EXPECT_EQ(events(run.id).back().type, "end");
}

TEST_F(RunEnds, K109TheMessageIsStoredBeforeTheModelIsAsked) {
    std::vector<std::string> stored;
    answer_with([&](const models::ModelRequest&) {
        store_->read([&](const store::ReadTxn& txn) {
            const store::RunRecord run = txn.run(txn.open_runs().front()).value();
            const auto message = txn.message(run.input_message);
            stored.push_back(message && message->run == run.no ? message->content : "nothing");
        });
        return saying("heard");
    });
    EXPECT_EQ(settled(submit("first")->run.id).status, store::RunStatus::completed);
    EXPECT_EQ(settled(submit("second")->run.id).status, store::RunStatus::completed);
    EXPECT_EQ(stored, (std::vector<std::string>{"first", "second"}));
}

TEST_F(RunEnds, K21ARunOfAUserWhoIsGoneHasNothingToUse) {
    script({calling({{"ls", "{}"}}), saying("had nothing")});
    is_known_ = false;
    const auto run = submit("go", {}, true);
    ASSERT_TRUE(run);
    EXPECT_EQ(settled(run->run.id).status, store::RunStatus::completed);
    ASSERT_EQ(model_->requests.size(), 2U);
    EXPECT_TRUE(model_->requests[0].tools.empty());
}

class Throwing final : public tools::Tool {
  public:
    [[nodiscard]] const tools::ToolSpec& spec() const override { return spec_; }
    base::Task<tools::ToolResult> call(const tools::ToolContext&, boost::json::object) override {
        throw std::runtime_error("out of luck");
        co_return tools::ToolResult{};
    }

  private:
    tools::ToolSpec spec_{"throws", "Throws.", {}, tools::Effect::effect};
};

TEST_F(RunEnds, S35AToolThatThrowsIsAnErrorResultAndTheRunGoesOn) {
    ToolSet tools = tools::make_file_tools();
    tools.push_back(std::make_unique<Throwing>());
    runs_->set_tools(std::move(tools));
    script({calling({{"throws", "{}"}, {"ls", "{}"}}), saying("went on")});
    const auto run = submit("go", {}, true);
    ASSERT_TRUE(run);
    EXPECT_EQ(settled(run->run.id).status, store::RunStatus::completed);
    const std::string told = result_of(run->run.thread_id, run->run.id + ":1:0");
    EXPECT_NE(told.find("out of luck"), std::string::npos) << told;
    for (const auto& [call, count] : results(run->run.thread_id)) {
        EXPECT_EQ(count, 1) << call;
    }
}

// Works until the test lets it go.
class Gated final : public tools::Tool {
  public:
    Gated(base::Notifier& gate, bool& at_work, tools::Effect effect)
        : gate_(gate), at_work_(at_work), spec_{"gated", "Waits.", {}, effect} {}
    [[nodiscard]] const tools::ToolSpec& spec() const override { return spec_; }
    base::Task<tools::ToolResult> call(const tools::ToolContext&, boost::json::object) override {
        at_work_ = true;
        co_await gate_.wait(base::Deadline::never());
        co_return tools::ToolResult{"worked", false, {}, {}};
    }

  private:
    base::Notifier& gate_;
    bool& at_work_;
    tools::ToolSpec spec_;
};

class Stopping : public RunsTest {
  protected:
    // A run whose only call is at work.
    std::string begun_run(tools::Effect effect) {
        gate_ = std::make_unique<base::Notifier>(io_->get_executor());
        ToolSet tools = tools::make_file_tools();
        tools.push_back(std::make_unique<Gated>(*gate_, at_work_, effect));
        runs_->set_tools(std::move(tools));
        script({calling({{"gated", "{}"}}), saying("went on")});
        const auto run = submit("go", {}, true);
        EXPECT_TRUE(run);
        run_until([this] { return at_work_; });
        thread_ = run->run.thread_id;
        return run->run.id;
    }

    void restart() {
        gate_.reset();
        reboot();
    }

    std::unique_ptr<base::Notifier> gate_;
    bool at_work_ = false;
    std::string thread_;
};

TEST_F(Stopping, K79AToolAtWorkEndsNoModelIsAskedAndTheNextBootGoesOn) {
    const std::string run = begun_run(tools::Effect::effect);
    bool drained = false;
    base::asio::co_spawn(*io_, runs_->drain(std::chrono::hours(1)), [&](std::exception_ptr) {
        drained = true;
    });
    run_until([this] { return !runs_->accepting(); });
    const auto late = submit("late");
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, "not_accepting");
    EXPECT_FALSE(drained);
    gate_->notify_all();
    run_until([&] { return drained; });
    EXPECT_EQ(model_->requests.size(), 1U);
    EXPECT_EQ(record(run).status, store::RunStatus::running);
    EXPECT_EQ(result_of(thread_, run + ":1:0"), "worked");
    restart();
    EXPECT_EQ(settled(run).status, store::RunStatus::completed);
    EXPECT_EQ(record(run).attempt, 2U);
    EXPECT_EQ(model_->requests.size(), 1U);
}

TEST_F(Stopping, WhatOnlyWaitsForOthersIsNotWaitedFor) {
    const std::string run = begun_run(tools::Effect::waiting);
    await_void(runs_->drain(std::chrono::hours(1)));
    EXPECT_EQ(record(run).status, store::RunStatus::running);
    EXPECT_EQ(results(thread_)[run + ":1:0"], 0);
}

TEST_F(Stopping, K77ACancelMeanwhileEndsTheToolAndHoldsAtTheNextBoot) {
    const std::string run = begun_run(tools::Effect::effect);
    bool drained = false;
    base::asio::co_spawn(*io_, runs_->drain(std::chrono::hours(1)), [&](std::exception_ptr) {
        drained = true;
    });
    run_until([this] { return !runs_->accepting(); });
    EXPECT_EQ(cancel(run).status, store::RunStatus::cancel_requested);
    run_until([&] { return drained; });
    restart();
    EXPECT_EQ(settled(run).status, store::RunStatus::cancelled);
    EXPECT_TRUE(model_->requests.empty());
    EXPECT_EQ(results(thread_)[run + ":1:0"], 1);
}

}  // namespace
}  // namespace ars::runs
