#include "runtime/runs/run_records.hpp"

#include "runtime/runs/child_run_service.hpp"
#include "runtime/runs/prompt.hpp"
#include "runtime/runs/tool_round.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace ars::runs {
namespace {

boost::json::object object(const char* text) { return boost::json::parse(text).as_object(); }

store::MessageRecord assistant(std::vector<std::string> call_ids) {
    store::MessageRecord message;
    message.role = store::Role::assistant;
    for (std::string& id : call_ids) {
        message.tool_calls.push_back({id, "p-" + id, "execute", "{}"});
    }
    return message;
}

store::MessageRecord result(const std::string& call_id) {
    store::MessageRecord message;
    message.role = store::Role::tool;
    message.tool_call_id = call_id;
    return message;
}

TEST(MergeState, ReplacesByKeyAndMergesSubagentRunsByRunId) {
    auto state = object(R"({"todos":[1],"subagent_runs":[{"run_id":"a","status":"running"}]})");
    merge_state(
        state,
        object(
            R"({"todos":[2],"subagent_runs":[{"run_id":"a","status":"completed"},{"run_id":"b"}]})"
        )
    );
    EXPECT_EQ(
        state,
        object(
            R"({"todos":[2],"subagent_runs":[{"run_id":"a","status":"completed"},{"run_id":"b"}]})"
        )
    );
}

TEST(MergeState, ArtifactsStandOnceInTheOrderInWhichTheyCame) {
    auto state = object(R"({})");
    merge_state(state, object(R"({"artifacts":["/b","/a","/b"]})"));
    merge_state(state, object(R"({"artifacts":["/a","/c"]})"));
    EXPECT_EQ(state, object(R"({"artifacts":["/b","/a","/c"]})"));
    boost::json::array many;
    for (int i = 0; i < 250; ++i) {
        many.emplace_back("/" + std::to_string(i));
    }
    merge_state(state, {{"artifacts", many}});
    const boost::json::array& kept = state.at("artifacts").as_array();
    EXPECT_EQ(kept.size(), 200U);
    EXPECT_EQ(kept.front(), "/50");
    EXPECT_EQ(kept.back(), "/249");
}

TEST(OpenCalls, AreThoseOfTheLastAssistantMessageWithoutAResult) {
    std::vector<store::MessageRecord> history{
        assistant({"r:1:0", "r:1:1", "r:1:2"}), result("r:1:1")
    };
    OpenCalls open = open_calls(history);
    EXPECT_EQ(open.indexes, (std::vector<std::size_t>{0, 2}));
    history.push_back(result("r:1:2"));
    history.push_back(result("r:1:0"));
    EXPECT_TRUE(open_calls(history).indexes.empty());
}

TEST(S33SyntheticResults, AnswerEachOpenCallOnceAndNothingElse) {
    const std::vector<store::MessageRecord> history{assistant({"r:1:0", "r:1:1"}), result("r:1:0")};
    const auto results = synthetic_results(history, 7, "cancelled");
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].tool_call_id, "r:1:1");
    EXPECT_TRUE(results[0].is_error);
    EXPECT_EQ(results[0].run, 7U);
}

TEST(S34SyntheticResults, AddNothingToAMessageWithoutCalls) {
    EXPECT_TRUE(synthetic_results({assistant({})}, 7, "cancelled").empty());
}

TEST(CallIds, CarryTheStepTheyBelongTo) {
    EXPECT_EQ(make_call_id("run-1", 12, 3), "run-1:12:3");
    EXPECT_EQ(step_of_call_id("run-1:12:3"), 12U);
    EXPECT_EQ(step_of_call_id("nonsense"), 0U);
}

TEST(ChildThreadId, IsTheSameForTheSameCallAndDiffersByCall) {
    const std::string id = child_thread_id("t1", "reviewer", "r:1:0");
    EXPECT_EQ(id.substr(0, 16), "t1_sub_reviewer_");
    EXPECT_EQ(id.size(), 24U);
    EXPECT_EQ(id, child_thread_id("t1", "reviewer", "r:1:0"));
    EXPECT_NE(id, child_thread_id("t1", "reviewer", "r:1:1"));
}

}  // namespace
}  // namespace ars::runs
