#include "runtime/runs/thread_changes.hpp"

#include "base/clock.hpp"
#include "runtime/runs/prompt.hpp"

namespace ars::runs {

namespace {

bool at_rest(const store::RunRecord& run) {
    return store::is_terminal(run.status) || run.status == store::RunStatus::interrupted;
}

}  // namespace

base::Result<store::ThreadRecord> write_thread_change(
    store::WriteTxn& txn, store::ThreadNo thread, const ChangeThread& change
) {
    store::ThreadRecord record = txn.thread(thread).value();
    if (record.parent != 0) {
        return base::fail(
            base::ErrorKind::conflict,
            "thread_is_subagent",
            "this is a sub-agent's thread: change the thread that it works for"
        );
    }
    record.title = change.title.value_or(record.title);
    record.is_pinned = change.is_pinned.value_or(record.is_pinned);
    if (change.approval_mode) {
        record.approval_mode = name_of(*change.approval_mode);
    }
    record.updated_ms = base::now_ms();
    txn.put_thread(record);
    return record;
}

base::Result<store::ThreadRecord> write_thread_viewed(
    store::WriteTxn& txn, store::ThreadNo thread
) {
    store::ThreadRecord record = txn.thread(thread).value();
    const auto latest = txn.latest_run_of_thread(thread);
    if (latest && *latest != record.viewed && at_rest(txn.run(*latest).value())) {
        record.viewed = *latest;
        txn.put_thread(record);
    }
    return record;
}

const char* thread_status(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto latest = txn.latest_run_of_thread(thread.no);
    const auto run = latest ? txn.run(*latest) : std::nullopt;
    if (!run) {
        return "done";
    }
    if (!at_rest(*run)) {
        return "loading";
    }
    return thread.viewed == run->no ? "done" : "ready";
}

}  // namespace ars::runs
