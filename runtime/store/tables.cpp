#include "runtime/store/tables.hpp"

#include "base/digest.hpp"

#include <utility>

namespace ars::store {

namespace {

constexpr std::string_view kSchemaKey = "schema";
constexpr std::size_t kMaxPlainId = 200;  // longer texts are hashed

// Every table with its name on disk, in the order of struct Tables.
constexpr std::pair<MDB_dbi Tables::*, const char*> kNames[] = {
    {&Tables::meta, "meta"},
    {&Tables::journal, "journal"},
    {&Tables::threads, "threads"},
    {&Tables::user_threads, "user_threads"},
    {&Tables::thread_log, "thread_log"},
    {&Tables::runs, "runs"},
    {&Tables::run_states, "run_states"},
    {&Tables::open_runs, "open_runs"},
    {&Tables::thread_open, "thread_open"},
    {&Tables::thread_latest, "thread_latest"},
    {&Tables::children, "children"},
    {&Tables::calls, "calls"},
    {&Tables::event_heads, "event_heads"},
    {&Tables::event_marks, "event_marks"},
    {&Tables::ids, "ids"},
    {&Tables::requests, "requests"},
    {&Tables::thread_queue, "thread_queue"},
    {&Tables::outbox, "outbox"},
    {&Tables::expired_logs, "expired_logs"},
    {&Tables::registry, "registry"},
};
static_assert(std::size(kNames) == kTableCount);

template <class Number>
void store_big_endian(char* out, Number value) {
    for (std::size_t i = sizeof value; i-- > 0;) {
        out[i] = static_cast<char>(value & 0xff);
        value = static_cast<Number>(value >> 8);
    }
}

template <class Number>
Number load_big_endian(std::string_view bytes, std::size_t offset) {
    if (bytes.size() < offset + sizeof(Number)) {
        throw Failure(MDB_CORRUPTED, "a key or number of the store is too short: it is damaged");
    }
    Number value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
        value = static_cast<Number>(value << 8) | static_cast<unsigned char>(bytes[offset + i]);
    }
    return value;
}

// Lower-case kinds carry plain text, upper-case ones a hash: the two never meet.
std::string text_key(char kind, std::string_view text) {
    if (text.size() <= kMaxPlainId) {
        return kind + std::string(text);
    }
    return static_cast<char>(kind - 'a' + 'A') + base::sha256_hex(text);
}

// The schema of an existing store, or this program's own in a new or older one: what it writes from
// now on an older program could not read.
std::uint32_t settle_schema(MDB_txn* txn, MDB_dbi meta) {
    const auto stored = get(txn, meta, kSchemaKey);
    const std::uint32_t schema = stored ? u32_at(*stored, 0) : 0;
    if (schema >= kSchemaVersion) {
        return schema;
    }
    char bytes[4];
    store_big_endian(bytes, kSchemaVersion);
    put(txn, meta, kSchemaKey, {bytes, sizeof bytes});
    return kSchemaVersion;
}

}  // namespace

base::Result<Tables> open_tables(const Environment& env) {
    try {
        Transaction txn = Transaction::write(env);
        Tables tables{};
        check(mdb_dbi_open(txn.get(), "meta", MDB_CREATE, &tables.meta), "open table meta");
        // Before the other tables, so that a newer store stays as it is.
        if (const std::uint32_t schema = settle_schema(txn.get(), tables.meta);
            schema > kSchemaVersion) {
            return base::fail(
                base::ErrorKind::unavailable,
                "store_newer",
                "the store was written by a newer ars (schema " + std::to_string(schema) +
                    ", this one knows " + std::to_string(kSchemaVersion) +
                    "): start that version, or use another data_dir"
            );
        }
        for (const auto& [member, name] : kNames) {
            check(mdb_dbi_open(txn.get(), name, MDB_CREATE, &(tables.*member)), name);
        }
        check(txn.commit(), "commit the tables");
        return tables;
    } catch (const Failure& failure) {
        return std::unexpected(to_error(failure.code(), failure.what()));
    }
}

Key& Key::u64(std::uint64_t value) {
    store_big_endian(bytes_.data() + size_, value);
    size_ += sizeof value;
    return *this;
}

Key& Key::u32(std::uint32_t value) {
    store_big_endian(bytes_.data() + size_, value);
    size_ += sizeof value;
    return *this;
}

std::uint64_t u64_at(std::string_view bytes, std::size_t offset) {
    return load_big_endian<std::uint64_t>(bytes, offset);
}

std::uint32_t u32_at(std::string_view bytes, std::size_t offset) {
    return load_big_endian<std::uint32_t>(bytes, offset);
}

std::string thread_id_key(std::string_view id) { return text_key('t', id); }
std::string run_id_key(std::string_view id) { return text_key('r', id); }
std::string request_id_key(std::string_view id) { return text_key('q', id); }

std::string queued_id_key(std::string_view id) { return text_key('s', id); }

std::string thread_request_key(std::string_view uid, std::string_view request_id) {
    std::string both(uid);
    both += '\0';
    both += request_id;
    return 'C' + base::sha256_hex(both);
}

std::uint64_t uid_hash(std::string_view uid) {
    return std::stoull(base::sha256_hex(uid).substr(0, 16), nullptr, 16);
}

std::uint64_t last_number(MDB_txn* txn, MDB_dbi table) {
    Cursor cursor(txn, table);
    return cursor.last() ? u64_at(cursor.key(), 0) : 0;
}

}  // namespace ars::store
