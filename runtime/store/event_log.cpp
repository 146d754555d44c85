// The event log of a run. Events lie in the journal, each knows the one before it, and the head
// knows the last. So an event touches the journal's right edge and one small entry beside those of
// the other live runs, and a follower that reads the newest few walks back over just these. Marks
// cut a long log into stretches that are walked back one by one when it is read from its start.
#include "base/clock.hpp"
#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <iterator>

namespace ars::store {

namespace {

// Appends the events with after < id, up to and including the one at `end`, oldest first.
void read_stretch(
    MDB_txn* txn, const Tables& tables, EventId after, Seq end, std::vector<EventRecord>& out
) {
    const auto start = static_cast<std::ptrdiff_t>(out.size());
    for (Seq seq = end; seq != 0;) {
        const auto bytes = journal_entry(txn, tables, seq, kEventKind);
        if (!bytes) {
            break;
        }
        StoredEvent stored = decoded(decode_event(*bytes), "event", seq);
        if (stored.event.id <= after) {
            break;
        }
        if (stored.previous >= seq) {
            throw_damaged("event", seq);  // a chain that doesn't fall would never end
        }
        seq = stored.previous;
        out.push_back(std::move(stored.event));
    }
    std::reverse(out.begin() + start, out.end());
}

// The smallest id greater than `id`.
EventId next_id(EventId id) {
    return id.n == UINT32_MAX ? EventId{id.ms + 1, 0} : EventId{id.ms, id.n + 1};
}

}  // namespace

std::vector<EventRecord> ReadTxn::events(RunNo run, EventId after, std::size_t limit) const {
    std::vector<EventRecord> out;
    const auto head = event_head(raw(txn_), *tables_, run);
    if (!head || head->last <= after || limit == 0 || log_expired(run)) {
        return out;
    }
    Cursor mark(raw(txn_), tables_->event_marks);
    bool more = mark.at_or_after(Key::event(run, next_id(after)));
    while (out.size() < limit && after < head->last) {
        EventId end_id = head->last;
        Seq end = head->seq;
        if (more && u64_at(mark.key(), 0) == run) {
            end_id = {u64_at(mark.key(), 8), u32_at(mark.key(), 16)};
            end = u64_at(mark.value(), 0);
            more = mark.next();
        }
        read_stretch(raw(txn_), *tables_, after, end, out);
        after = end_id;
    }
    if (out.size() > limit) {
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(limit), out.end());
    }
    return out;
}

std::optional<EventId> ReadTxn::last_event_id(RunNo run) const {
    if (const auto head = event_head(raw(txn_), *tables_, run)) {
        return head->last;
    }
    if (const auto last = get(raw(txn_), tables_->expired_logs, Key(run))) {
        return EventId{u64_at(*last, 0), u32_at(*last, 8)};
    }
    return std::nullopt;
}

void WriteTxn::add_event(EventRecord& event) {
    if (event.created_ms == 0) {
        event.created_ms = base::now_ms();
    }
    EventHead head = event_head(raw(txn_), *tables_, event.run).value_or(EventHead{});
    // A clock that stepped back must not make ids fall.
    const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(event.created_ms, 0));
    event.id = now > head.last.ms ? EventId{now, 0} : next_id(head.last);
    Seq seq = 0;
    append(kEventKind, seq, encode_event({event, head.seq}));
    head.last = event.id;
    head.seq = seq;
    ++head.count;
    put(raw(txn_), tables_->event_heads, Key(event.run), encode_event_head(head));
    if (head.count % kEventMark == 0) {
        const Key key = Key::event(event.run, event.id);
        put(raw(txn_), tables_->event_marks, key, Key(seq));
    }
}

}  // namespace ars::store
