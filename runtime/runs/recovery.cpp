#include "runtime/runs/recovery.hpp"

#include "runtime/runs/events.hpp"
#include "runtime/runs/lineage.hpp"
#include "runtime/runs/run_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ars::runs {

namespace {

constexpr std::string_view kLostCall =
    "The server was restarted while this call was running, and the run was ended before it could "
    "be looked into.";

void end_run(store::WriteTxn& txn, store::RunRecord& run, const RunEnd& end) {
    write_end(txn, run, end, kLostCall);
}

bool root_has_ended(const store::WriteTxn& txn, const store::RunRecord& run) {
    if (run.type != store::RunType::subagent) {
        return false;
    }
    const auto parent = txn.run(run.parent);
    return parent && store::is_terminal(latest_of_lineage(txn, *parent).status);
}

// The deletion was committed, and the process died before it had ended the thread's runs.
bool thread_is_deleted(const store::WriteTxn& txn, const store::RunRecord& run) {
    const auto thread = txn.thread(run.thread);
    const auto root = thread ? txn.thread(thread->root) : thread;
    return root && root->status == store::ThreadStatus::deleted;
}

// Open runs, roots before sub-agents: when a child is looked at, its root's end is known.
std::vector<store::RunRecord> open_runs_roots_first(const store::WriteTxn& txn) {
    std::vector<store::RunRecord> out;
    for (const store::RunNo no : txn.open_runs()) {
        out.push_back(txn.run(no).value());
    }
    std::ranges::sort(out, {}, [](const store::RunRecord& run) {
        return std::pair(run.type == store::RunType::subagent, run.no);
    });
    return out;
}

}  // namespace

base::Task<base::Result<std::vector<store::RunRecord>>> take_over_open_runs(const RunParts& parts) {
    const bool keep_children = parts.settings.children_outlive_root;
    std::function<base::Result<std::vector<store::RunRecord>>(store::WriteTxn&)> change =
        [keep_children](store::WriteTxn& txn) -> base::Result<std::vector<store::RunRecord>> {
        std::vector<store::RunRecord> serve;
        for (store::RunRecord& run : open_runs_roots_first(txn)) {
            const bool deleted = thread_is_deleted(txn, run);
            if (run.status == store::RunStatus::interrupted && !deleted) {
                continue;
            }
            if (run.status == store::RunStatus::cancel_requested || deleted ||
                (!keep_children && root_has_ended(txn, run))) {
                end_run(txn, run, RunEnd{store::RunStatus::cancelled, "cancelled", ""});
                continue;
            }
            if (run.status == store::RunStatus::running) {
                run.status = store::RunStatus::pending;
                run.attempt += 1;
                run.idle_attempts += 1;
                if (run.idle_attempts > base::limits::kRecoveryLimit) {
                    end_run(
                        txn,
                        run,
                        RunEnd{
                            store::RunStatus::failed,
                            "recovery_limit",
                            fmt::format(
                                "{} boots in a row could not move this run on",
                                base::limits::kRecoveryLimit
                            )
                        }
                    );
                    continue;
                }
                txn.put_run(run);
                store::EventRecord reset = events::reset(run, "", "the server was restarted");
                txn.add_event(reset);
            }
            serve.push_back(run);
        }
        std::ranges::sort(serve, {}, &store::RunRecord::no);
        return serve;
    };
    co_return co_await parts.store.write<std::vector<store::RunRecord>>(std::move(change));
}

}  // namespace ars::runs
