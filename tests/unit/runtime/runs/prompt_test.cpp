#include "runtime/runs/prompt.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ars::runs {
namespace {

class NamedTool final : public tools::Tool {
  public:
    explicit NamedTool(std::string name) { spec_.name = std::move(name); }
    [[nodiscard]] const tools::ToolSpec& spec() const override { return spec_; }
    base::Task<tools::ToolResult> call(const tools::ToolContext&, boost::json::object) override {
        co_return tools::ToolResult{};
    }

  private:
    tools::ToolSpec spec_;
};

class OfferedTools : public testing::Test {
  protected:
    OfferedTools() : run_(io_.get_executor(), {}, {}) {
        for (const char* name :
             {"execute",
              "read_file",
              "write_file",
              "ask_user_question",
              "task",
              "subagent_start",
              "present_artifacts",
              "edit_file",
              "install_skill"}) {
            all_.push_back(std::make_unique<NamedTool>(name));
        }
        run_.record.approval_mode = "always_trust";
        run_.context = context_;
    }

    std::vector<std::string> offered() {
        std::vector<std::string> names;
        for (const tools::Tool* tool : offered_tools(run_, all_)) {
            names.push_back(tool->spec().name);
        }
        return names;
    }

    base::asio::io_context io_;
    std::shared_ptr<agents::AgentContext> context_ = std::make_shared<agents::AgentContext>();
    LiveRun run_;
    ToolSet all_;
    agents::Agent helper_;
};

using Names = std::vector<std::string>;

TEST_F(OfferedTools, K35ASubAgentNeverGetsWhatOnlyAPersonOrAMainAgentCanUse) {
    run_.record.type = store::RunType::subagent;
    run_.subagents = {std::make_shared<const agents::Agent>(helper_)};
    EXPECT_EQ(offered(), (Names{"execute", "read_file", "write_file", "edit_file"}));
}

TEST_F(OfferedTools, K36WithoutTrustNobodyCouldApproveSoNothingThatNeedsItIsOffered) {
    run_.record.type = store::RunType::subagent;
    run_.record.approval_mode = "default";
    EXPECT_EQ(offered(), Names{"read_file"});
}

TEST_F(OfferedTools, SubAgentToolsNeedSomebodyToCall) {
    EXPECT_EQ(
        offered(),
        (Names{
            "execute",
            "read_file",
            "write_file",
            "ask_user_question",
            "present_artifacts",
            "edit_file",
            "install_skill"
        })
    );
    run_.subagents = {std::make_shared<const agents::Agent>(helper_)};
    EXPECT_EQ(offered().size(), all_.size());
}

TEST_F(OfferedTools, AnAllowListLimitsToolsButNotThoseForSubAgents) {
    run_.subagents = {std::make_shared<const agents::Agent>(helper_)};
    context_->tools = Names{"read_file"};
    EXPECT_EQ(offered(), (Names{"read_file", "task", "subagent_start"}));
    context_->tools = Names{};
    EXPECT_EQ(offered(), (Names{"task", "subagent_start"}));
}

TEST_F(OfferedTools, K18NoListMeansAllAnEmptyOneNoneAndUnknownOrRepeatedNamesCountForNothing) {
    EXPECT_EQ(offered().size(), 7U) << "all but those that call sub-agents";
    context_->tools = Names{};
    EXPECT_EQ(offered(), Names{});
    context_->tools = Names{"write_file", "gone", "read_file", "write_file"};
    EXPECT_EQ(offered(), (Names{"read_file", "write_file"}));
}

TEST_F(OfferedTools, BackgroundCommandsAreLookedAfterWhereverCommandsRun) {
    all_.push_back(std::make_unique<NamedTool>("execute_output"));
    all_.push_back(std::make_unique<NamedTool>("execute_input"));
    context_->tools = Names{"execute"};
    EXPECT_EQ(offered(), (Names{"execute", "execute_output", "execute_input"}));
    context_->tools = Names{"read_file"};
    EXPECT_EQ(offered(), Names{"read_file"});
    context_->tools.reset();
    run_.record.type = store::RunType::subagent;
    run_.record.approval_mode = "default";
    EXPECT_EQ(offered(), Names{"read_file"}) << "input to a command is as good as a command";
}

}  // namespace
}  // namespace ars::runs
