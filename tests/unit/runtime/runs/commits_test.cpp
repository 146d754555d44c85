// How often a run goes to the disk, and that what shares a commit is still all there.
#include "tests/unit/runtime/runs/runs_fixture.hpp"

#include <algorithm>

namespace ars::runs {
namespace {

constexpr const char* kTodos = R"({"todos": [{"content": "count", "status": "pending"}]})";

class Commits : public RunsTest {
  protected:
    // Durable commits from the submission of a run to its end.
    std::uint64_t of_run(std::vector<models::ModelReply> turns) {
        script(std::move(turns));
        const std::uint64_t before = store_->commits();
        const Submitted submitted = submit("go").value();
        EXPECT_EQ(submitted.run.status, store::RunStatus::running);
        run_ = settled(submitted.run.id);
        EXPECT_EQ(run_.status, store::RunStatus::completed) << run_.error_message;
        for (const auto& [call, count] : results(run_.thread_id)) {
            EXPECT_EQ(count, 1) << call;
        }
        return store_->commits() - before;
    }
    boost::json::value todos() {
        return store_->read([this](const store::ReadTxn& txn) {
            return boost::json::parse(txn.latest_checkpoint(run_.thread)->state).at("todos");
        });
    }

    store::RunRecord run_;
};

TEST_F(Commits, TheResultOfAPureToolGoesWithItsMessage) {
    EXPECT_EQ(of_run({calling({{"write_todos", kTodos}}), saying("done")}), 3U);
    EXPECT_EQ(todos().as_array().size(), 1U);
    std::vector<std::string> seen;
    for (const store::EventRecord& event : events(run_.id)) {
        for (const char* name : {"tool-started", "tool-finished"}) {
            if (event.payload.find(name) != std::string::npos) {
                seen.emplace_back(name);
            }
        }
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"tool-started", "tool-finished"}));
}

TEST_F(Commits, OtherToolsOfTheTurnHaveTheirOwn) {
    EXPECT_EQ(of_run({calling({{"ls", "{}"}, {"write_todos", kTodos}}), saying("done")}), 4U);
    EXPECT_EQ(todos().as_array().size(), 1U);
}

TEST_F(Commits, APureToolWithUnreadableArgumentsIsAnsweredLikeAnyOther) {
    EXPECT_EQ(of_run({calling({{"write_todos", "{\"todos\": ["}}), saying("done")}), 4U);
    const auto messages = history(run_.thread_id);
    EXPECT_TRUE(std::ranges::any_of(messages, &store::MessageRecord::is_error));
}

}  // namespace
}  // namespace ars::runs
