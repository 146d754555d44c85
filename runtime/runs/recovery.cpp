#include "runtime/runs/recovery.hpp"

#include "runtime/runs/events.hpp"
#include "runtime/runs/run_records.hpp"

#include <fmt/format.h>

namespace ars::runs {

namespace {

constexpr std::string_view kLostCall =
    "The server was restarted while this call was running, and the run was ended before it could "
    "be looked into.";

void end_run(store::WriteTxn& txn, store::RunRecord& run, const RunEnd& end) {
    write_end(txn, run, end, synthetic_results(txn.messages(run.thread), run.no, kLostCall));
}

bool root_has_ended(const store::WriteTxn& txn, const store::RunRecord& run) {
    const auto parent = run.parent == 0 ? std::nullopt : txn.run(run.parent);
    return parent && store::is_terminal(parent->status);
}

}  // namespace

base::Task<base::Result<std::vector<store::RunRecord>>> take_over_open_runs(const RunParts& parts) {
    const bool keep_children = parts.settings.children_outlive_root;
    std::function<base::Result<std::vector<store::RunRecord>>(store::WriteTxn&)> change =
        [keep_children](store::WriteTxn& txn) -> base::Result<std::vector<store::RunRecord>> {
        std::vector<store::RunRecord> serve;
        for (const store::RunNo no : txn.open_runs()) {
            store::RunRecord run = txn.run(no).value();
            if (run.status == store::RunStatus::interrupted) {
                continue;
            }
            // Parents have lower numbers than their children, so a root's end is seen here by its
            // children.
            if (run.status == store::RunStatus::cancel_requested ||
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
        return serve;
    };
    co_return co_await parts.store.write<std::vector<store::RunRecord>>(std::move(change));
}

}  // namespace ars::runs
