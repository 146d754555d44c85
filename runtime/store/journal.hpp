// Helpers that the read and the write side share: the raw transaction behind a ReadTxn, and journal
// entries.
#pragma once

#include "runtime/store/codec.hpp"
#include "runtime/store/tables.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace ars::store {

// lmdb.h stays out of store.hpp, which holds the transaction as void*.
[[nodiscard]] inline MDB_txn* raw(void* txn) { return static_cast<MDB_txn*>(txn); }

// A record that is there but can't be read: the file is damaged. Always throws Failure.
[[noreturn]] void throw_damaged(const char* what, std::uint64_t number);

// The bytes of a journal entry, nullopt when there is none or it is of another kind.
[[nodiscard]] std::optional<std::string_view> journal_entry(
    MDB_txn* txn, const Tables& tables, Seq seq, char kind
);

// The value, or a throw when decoding failed.
template <class Record>
Record decoded(std::optional<Record> record, const char* what, std::uint64_t number) {
    if (!record) {
        throw_damaged(what, number);
    }
    return *std::move(record);
}

[[nodiscard]] std::optional<EventHead> event_head(MDB_txn* txn, const Tables& tables, RunNo run);

}  // namespace ars::store
