// Every live run and its coroutine: launching, cancelling, ending. The one place that says what
// happens to the children of a run that ended.
#pragma once

#include "runtime/runs/live_run.hpp"
#include "runtime/runs/prompt.hpp"
#include "runtime/runs/run_parts.hpp"
#include "runtime/runs/run_records.hpp"
#include "runtime/runs/slots.hpp"

#include <map>
#include <memory>

namespace ars::runs {

class RunSupervisor {
  public:
    // `tools` may still be empty: it is filled before the first launch().
    RunSupervisor(const RunParts& parts, const ToolSet& tools);
    RunSupervisor(const RunSupervisor&) = delete;
    RunSupervisor& operator=(const RunSupervisor&) = delete;
    ~RunSupervisor();

    // Serves a committed run. Without a place it waits for one of its kind (roots, children).
    // During a shutdown it is left to the next boot.
    void launch(store::RunRecord record, Slots::Place place = {}, bool taken_over = false);

    // What is awaited each time a root run has left its thread, before it is called over.
    void when_thread_is_free(std::function<base::Task<void>(store::ThreadNo)> then) {
        thread_is_free_ = std::move(then);
    }

    [[nodiscard]] LiveRunPtr find(store::RunNo run) const;

    // Durable, idempotent, covers the lineage and all its children. The answer is the record as it
    // then stands.
    base::Task<base::Result<store::RunRecord>> request_cancel(store::RunNo run);

    // Until something of the run was committed (true) or the deadline passed. At once when it isn't
    // live.
    base::Task<bool> wait_change(store::RunNo run, base::Deadline deadline);
    // Until the run is at rest, as far as a committed record says that, or the deadline passed. For
    // one that isn't live it is wait_change().
    base::Task<void> wait_rest(store::RunNo run, base::Deadline deadline);
    // Until the run is terminal or the deadline passed: its record as it then stands.
    base::Task<std::optional<store::RunRecord>> wait_end(store::RunNo run, base::Deadline deadline);

    [[nodiscard]] Slots& roots() { return roots_; }
    [[nodiscard]] Slots& children() { return children_; }
    [[nodiscard]] const Slots& roots() const { return roots_; }
    [[nodiscard]] const Slots& children() const { return children_; }
    [[nodiscard]] std::size_t live_children_of(store::RunNo run) const;

    // Stops serving in two parts; what is left on disk is what SIGKILL would leave. First nothing
    // new begins, no model call and no tool, and tools at work have `grace` to end, so that their
    // results are kept.
    base::Task<void> drain(base::milliseconds grace);
    // Then what is left is cut. Returns when every coroutine is over.
    base::Task<void> shutdown();

  private:
    [[nodiscard]] std::shared_ptr<const UserEnv> user_env_for(const store::RunRecord& run) const;
    base::Task<void> serve(LiveRunPtr run);
    base::Task<std::optional<RunEnd>> serve_until_end(LiveRunPtr run);
    base::Task<base::Result<void>> admit(LiveRunPtr run);
    base::Result<void> equip(LiveRun& run);
    base::Task<void> commit_end(LiveRunPtr run, RunEnd end);
    base::Task<void> close_children(store::RunNo run);
    void stop_runs(bool cut);

    const RunParts& parts_;
    const ToolSet& tools_;
    ToolSchemas schemas_;
    Slots roots_;
    Slots children_;
    std::map<store::RunNo, LiveRunPtr> live_;
    std::function<base::Task<void>(store::ThreadNo)> thread_is_free_;
    bool stopping_ = false;
    base::Notifier launched_;
    base::Notifier emptied_;
};

}  // namespace ars::runs
