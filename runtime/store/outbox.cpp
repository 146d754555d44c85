// What has still to be told to others when a run has ended. An entry's key is whose it is, when it
// is due and which run, so that the next ones of a queue are its first.
#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>

namespace ars::store {

namespace {

Key key_of(const OutboxRecord& record) {
    return Key(record.queue, static_cast<std::uint64_t>(record.due_ms), record.run);
}

}  // namespace

std::uint64_t outbox_queue(std::string_view name) {
    return std::max<std::uint64_t>(uid_hash(name), 1);
}

std::vector<OutboxRecord> ReadTxn::outbox(
    std::uint64_t queue, std::int64_t until_ms, std::size_t limit
) const {
    std::vector<OutboxRecord> out;
    Cursor cursor(raw(txn_), tables_->outbox);
    for (bool more = cursor.at_or_after(Key(queue)); more && out.size() < limit;
         more = cursor.next()) {
        OutboxRecord record;
        record.queue = u64_at(cursor.key(), 0);
        record.due_ms = static_cast<std::int64_t>(u64_at(cursor.key(), 8));
        record.run = u64_at(cursor.key(), 16);
        if (record.queue != queue || record.due_ms > until_ms) {
            break;
        }
        if (!decode_outbox(cursor.value(), record)) {
            throw_damaged("outbox", record.run);
        }
        out.push_back(record);
    }
    return out;
}

void WriteTxn::put_outbox(const OutboxRecord& record) {
    put(raw(txn_), tables_->outbox, key_of(record), encode_outbox(record));
}

void WriteTxn::erase_outbox(const OutboxRecord& record) {
    erase(raw(txn_), tables_->outbox, key_of(record));
}

}  // namespace ars::store
