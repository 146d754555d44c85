// The named databases of the environment and what their keys look like. Numbers in keys are
// big-endian, so that the order of bytes is the order of numbers.
//
// What is written at every step goes to as few pages as can be: the journal grows at its right edge
// only, and the entries of runs that live at the same time lie side by side because run numbers
// rise.
#pragma once

#include "base/result.hpp"
#include "runtime/store/lmdb_env.hpp"
#include "runtime/store/records.hpp"

#include <lmdb.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ars::store {

// Layout of the tables. Rises when an older program must not touch the directory any more.
inline constexpr std::uint32_t kSchemaVersion = 5;

struct Tables {
    MDB_dbi meta;           // "schema" -> u32
    MDB_dbi journal;        // seq -> kind byte, record: every message, checkpoint and event
    MDB_dbi threads;        // thread -> ThreadRecord
    MDB_dbi user_threads;   // hash of uid, place of the thread in its list -> nothing
    MDB_dbi thread_log;     // thread, seq -> kind byte: its messages and checkpoints
    MDB_dbi runs;           // run -> facts of the RunRecord
    MDB_dbi run_states;     // run -> state of the RunRecord
    MDB_dbi open_runs;      // run -> nothing, while it is not terminal
    MDB_dbi thread_open;    // thread, run -> nothing, while it is neither terminal nor interrupted
    MDB_dbi thread_latest;  // thread -> run
    MDB_dbi children;       // run, child run -> nothing
    MDB_dbi calls;          // run, step, index -> CallRecord
    MDB_dbi event_heads;    // run -> EventHead
    MDB_dbi event_marks;    // run, ms, n -> seq, for every kEventMark-th event
    MDB_dbi ids;            // text key -> number
    MDB_dbi requests;       // request -> RequestRecord
    MDB_dbi thread_queue;   // thread, request -> policy byte, while it is queued
    MDB_dbi outbox;         // queue, due time, run -> attempts
    MDB_dbi expired_logs;   // run -> last event id, ms and n, when its events were dropped
    MDB_dbi registry;       // text key -> JSON text: what people manage (registry.cpp)
    bool keeps_outbox = false;  // StoreOptions::outbox
};
inline constexpr unsigned kTableCount = 20;

// Places in the list of a user's threads: by number, the pinned ones above all others.
inline constexpr std::uint64_t kPinnedPlace = std::uint64_t{1} << 63U;

// What a journal entry is.
inline constexpr char kMessageKind = 'm';
inline constexpr char kCheckpointKind = 'c';
inline constexpr char kEventKind = 'e';

// Events of a run are chained backwards; a mark in this distance makes reading forwards cheap, and
// the index is touched this much more rarely than with an entry for each event.
inline constexpr std::uint64_t kEventMark = 64;

// Opens the tables, makes them when the store is new. Errors: "store_newer", or as to_error says.
[[nodiscard]] base::Result<Tables> open_tables(const Environment& env);

// A key of up to three numbers, on the stack.
class Key {
  public:
    explicit Key(std::uint64_t first) { u64(first); }
    Key(std::uint64_t first, std::uint64_t second) : Key(first) { u64(second); }
    Key(std::uint64_t first, std::uint64_t second, std::uint64_t third) : Key(first, second) {
        u64(third);
    }
    static Key call(RunNo run, std::uint32_t step) { return Key(run).u32(step); }
    static Key call(RunNo run, std::uint32_t step, std::uint32_t index) {
        return Key(run).u32(step).u32(index);
    }
    static Key event(RunNo run, EventId id) { return Key(run, id.ms).u32(id.n); }
    static Key event_id(EventId id) { return Key(id.ms).u32(id.n); }

    // NOLINTNEXTLINE(google-explicit-constructor): a key is its bytes
    operator std::string_view() const { return {bytes_.data(), size_}; }

  private:
    Key& u64(std::uint64_t value);
    Key& u32(std::uint32_t value);
    std::array<char, 24> bytes_{};
    std::size_t size_ = 0;
};

// The number at `offset` of a key or value. Throws Failure when the bytes are too short.
[[nodiscard]] std::uint64_t u64_at(std::string_view bytes, std::size_t offset);
[[nodiscard]] std::uint32_t u32_at(std::string_view bytes, std::size_t offset);

// Text keys of the ids table. LMDB keys end at 511 bytes, so long texts are hashed: whoever looks
// one up compares the record that it finds.
[[nodiscard]] std::string thread_id_key(std::string_view id);
[[nodiscard]] std::string run_id_key(std::string_view id);
[[nodiscard]] std::string request_id_key(std::string_view id);  // of a run
[[nodiscard]] std::string queued_id_key(std::string_view id);   // of a request record
[[nodiscard]] std::string thread_request_key(std::string_view uid, std::string_view request_id);
// First eight bytes of sha256(uid), as a number.
[[nodiscard]] std::uint64_t uid_hash(std::string_view uid);

// The greatest first number of a table's keys, 0 when it is empty.
[[nodiscard]] std::uint64_t last_number(MDB_txn* txn, MDB_dbi table);

}  // namespace ars::store
