// The implementation of RunManager: intake, look-ups, and the order of boot and shutdown. Serving
// is the supervisor's work.
#pragma once

#include "runtime/runs/child_run_service.hpp"
#include "runtime/runs/run_manager.hpp"
#include "runtime/runs/run_supervisor.hpp"

namespace ars::runs {

class RunService final : public RunManager {
  public:
    explicit RunService(RunParts parts);

    // The tools need child_runs(), and runs need the tools: the root ties the knot with these two.
    [[nodiscard]] tools::ChildRuns& child_runs() { return child_runs_; }
    void set_tools(ToolSet tools) { tools_ = std::move(tools); }

    // Takes over what an earlier process left (ARCHITECTURE.md, "Recovery"); submissions are
    // accepted after it.
    base::Task<base::Result<void>> recover();
    // No run begins or asks its model any more; tools at work have `grace` to end.
    base::Task<void> drain(base::milliseconds grace);
    base::Task<void> shutdown();

    base::Task<base::Result<Submitted>> submit(SubmitRun request) override;
    base::Task<base::Result<Submitted>> resume(ResumeRun request) override;
    base::Task<base::Result<store::RunRecord>> cancel(const agents::User& user, std::string run_id)
        override;
    base::Task<base::Result<store::ThreadRecord>> create_thread(NewThread request) override;
    base::Task<base::Result<Project>> create_project(Project wanted) override;
    base::Task<base::Result<store::ThreadRecord>> fork_thread(ForkThread request) override;
    base::Task<base::Result<store::ThreadRecord>> change_thread(ChangeThread change) override;
    base::Task<base::Result<store::ThreadRecord>> mark_viewed(
        const agents::User& user, std::string thread_id
    ) override;
    base::Task<base::Result<void>> delete_thread(const agents::User& user, std::string thread_id)
        override;
    base::Task<base::Result<void>> set_user_variables(const agents::User& user, Variables variables)
        override;
    [[nodiscard]] base::Result<store::RunRecord> find_run(
        const agents::User& user, const std::string& run_id
    ) const override;
    [[nodiscard]] base::Result<store::ThreadRecord> find_thread(
        const agents::User& user, const std::string& thread_id
    ) const override;
    [[nodiscard]] base::Result<RunOutcome> outcome(
        const agents::User& user, const std::string& run_id
    ) const override;
    [[nodiscard]] RequestService& requests() override { return requests_; }
    base::Task<bool> wait_for_events(store::RunNo run, base::Deadline deadline) override;
    base::Task<void> wait_for_rest(store::RunNo run, base::Deadline deadline) override;
    [[nodiscard]] const store::Store& store() const override { return parts_.store; }
    [[nodiscard]] Counts counts() const override;
    [[nodiscard]] bool accepting() const override { return accepting_; }

  private:
    // Boot takes milliseconds: who comes during it waits instead of being refused.
    base::Task<bool> wait_until_accepting();
    void refuse_more();

    RunParts parts_;
    ToolSet tools_;
    RunSupervisor supervisor_;
    ChildRunService child_runs_;
    RequestService requests_;
    base::Notifier begun_;
    bool accepting_ = false;
    bool stopping_ = false;
};

}  // namespace ars::runs
