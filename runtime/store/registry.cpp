// What people manage, in one table of text keys. It is read whole at boot and written when a person
// changes something, so that nothing here has to be fast; what matters is that it is one commit
// with whatever else the change writes.
#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <stdexcept>

namespace ars::store {

namespace {

// A key is longer than its own prefix only by what is not 0xFF.
std::string after_all_of(std::string_view prefix) { return std::string(prefix) + '\xff'; }

void require_fit(std::string_view key) {
    if (key.empty() || key.size() > kEntryKeyBytes) {
        throw std::logic_error("a key of the registry has 1 to 500 bytes");
    }
}

}  // namespace

std::optional<std::string> ReadTxn::entry(std::string_view key) const {
    const auto value = get(raw(txn_), tables_->registry, key);
    return value ? std::optional<std::string>(*value) : std::nullopt;
}

std::vector<ReadTxn::Entry> ReadTxn::entries(
    std::string_view prefix, std::string_view after, std::size_t limit
) const {
    std::vector<Entry> out;
    Cursor cursor(raw(txn_), tables_->registry);
    const std::string_view from = std::max(after, prefix);
    for (bool more = from.empty() ? cursor.first() : cursor.at_or_after(from);
         more && out.size() < limit && cursor.key().starts_with(prefix);
         more = cursor.next()) {
        if (after.empty() || cursor.key() > after) {
            out.push_back({std::string(cursor.key()), std::string(cursor.value())});
        }
    }
    return out;
}

std::optional<ReadTxn::Entry> ReadTxn::last_entry(std::string_view prefix) const {
    Cursor cursor(raw(txn_), tables_->registry);
    if (!cursor.before(after_all_of(prefix)) || !cursor.key().starts_with(prefix)) {
        return std::nullopt;
    }
    return Entry{std::string(cursor.key()), std::string(cursor.value())};
}

void WriteTxn::put_entry(std::string_view key, std::string_view value) {
    require_fit(key);
    put(raw(txn_), tables_->registry, key, value);
}

void WriteTxn::erase_entry(std::string_view key) { erase(raw(txn_), tables_->registry, key); }

}  // namespace ars::store
