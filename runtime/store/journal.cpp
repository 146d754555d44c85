#include "runtime/store/journal.hpp"

namespace ars::store {

void throw_damaged(const char* what, std::uint64_t number) {
    throw Failure(
        MDB_CORRUPTED,
        std::string("the stored ") + what + " " + std::to_string(number) +
            " can't be read: the store is damaged; restore data_dir from a backup"
    );
}

std::optional<std::string_view> journal_entry(
    MDB_txn* txn, const Tables& tables, Seq seq, char kind
) {
    auto entry = get(txn, tables.journal, Key(seq));
    if (!entry || entry->empty() || entry->front() != kind) {
        return std::nullopt;
    }
    entry->remove_prefix(1);
    return entry;
}

std::optional<EventHead> event_head(MDB_txn* txn, const Tables& tables, RunNo run) {
    const auto bytes = get(txn, tables.event_heads, Key(run));
    if (!bytes) {
        return std::nullopt;
    }
    return decoded(decode_event_head(*bytes), "event head of run", run);
}

}  // namespace ars::store
