// Dropping old event logs. A long log goes in several transactions; from the first on no reader
// sees any of it, so that nobody meets half a log, and what is left to erase is found again after a
// crash. The last id of a log stays: it tells a reader who had everything from one who missed some.
#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <stdexcept>

namespace ars::store {

bool ReadTxn::log_expired(RunNo run) const {
    return get(raw(txn_), tables_->expired_logs, Key(run)).has_value();
}

ReadTxn::LogScan ReadTxn::old_logs(RunNo from, std::int64_t before_ms, std::size_t limit) const {
    LogScan scan;
    Cursor cursor(raw(txn_), tables_->event_heads);
    for (bool more = cursor.at_or_after(Key(from)); more; more = cursor.next()) {
        const RunNo run = u64_at(cursor.key(), 0);
        if (limit-- == 0) {
            scan.next = run;
            break;
        }
        const EventHead head = decoded(decode_event_head(cursor.value()), "event head of run", run);
        // What waits for a person is in open_runs, however long it takes.
        if (static_cast<std::int64_t>(head.last.ms) < before_ms &&
            !get(raw(txn_), tables_->open_runs, Key(run))) {
            scan.old.push_back(run);
        }
    }
    return scan;
}

bool WriteTxn::expire_log(RunNo run, std::size_t limit) {
    auto head = event_head(raw(txn_), *tables_, run);
    if (!head) {
        return true;
    }
    if (get(raw(txn_), tables_->open_runs, Key(run))) {
        throw std::logic_error("expire_log: the run is not over");
    }
    put(raw(txn_), tables_->expired_logs, Key(run), Key::event_id(head->last));
    for (; head->seq != 0 && limit > 0; --limit) {
        const auto bytes = journal_entry(raw(txn_), *tables_, head->seq, kEventKind);
        if (!bytes) {
            throw_damaged("event", head->seq);
        }
        const StoredEvent stored = decoded(decode_event(*bytes), "event", head->seq);
        if (stored.previous >= head->seq) {
            throw_damaged("event", head->seq);
        }
        erase(raw(txn_), tables_->event_marks, Key::event(run, stored.event.id));
        erase(raw(txn_), tables_->journal, Key(head->seq));
        head->seq = stored.previous;
    }
    if (head->seq == 0) {
        erase(raw(txn_), tables_->event_heads, Key(run));
        return true;
    }
    put(raw(txn_), tables_->event_heads, Key(run), encode_event_head(*head));
    return false;
}

}  // namespace ars::store
