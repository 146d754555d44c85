// Watches one run and its children from inside the process and hands every event on: to the tree on
// the terminal, to the JSON lines of `--json`, and to the run's event log file.
#pragma once

#include "base/fd.hpp"
#include "base/task_group.hpp"
#include "runtime/runs/run_manager.hpp"
#include "server/run_printer.hpp"

#include <map>
#include <set>
#include <string>

namespace ars::server {

// One event as a JSON line: the envelope of the event stream plus its id.
[[nodiscard]] std::string event_line(const store::EventRecord& event, const store::RunRecord& run);

class RunFollower {
  public:
    // Each target may be null: nothing is printed, nothing is written there.
    RunFollower(
        runs::RunManager& runs,
        base::asio::any_io_executor executor,
        RunPrinter* printer,
        std::FILE* json_lines,
        const base::Fd* log_file
    );

    // Returns when the run and all its children have ended and everything was handed on.
    base::Task<void> follow(store::RunRecord root);

  private:
    base::Task<void> follow_one(store::RunRecord run, int depth);
    void hand_on(const store::EventRecord& event, const store::RunRecord& run, int depth);
    void begin(const store::RunRecord& run, int depth);

    runs::RunManager& runs_;
    base::TaskGroup group_;
    RunPrinter* printer_;
    std::FILE* json_lines_;
    const base::Fd* log_file_;
    std::map<std::string, int> seen_slugs_;  // for "data-analyst-2"
    std::set<std::string> seen_runs_;
};

}  // namespace ars::server
