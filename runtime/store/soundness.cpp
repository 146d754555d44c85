#include "runtime/store/soundness.hpp"

#include <cstring>

#include <setjmp.h>
#include <signal.h>

namespace ars::store {

namespace {

constexpr std::size_t kLongestName = 63;

// The handlers jump, over C frames only: between here and there no object with a destructor may
// live.
thread_local sigjmp_buf* jump = nullptr;

void on_assert(MDB_env* /*env*/, const char* /*text*/) {
    if (jump != nullptr) {
        siglongjmp(*jump, 1);
    }
}

void on_bad_access(int /*signal*/) {
    if (jump != nullptr) {
        siglongjmp(*jump, 1);
    }
}

// Catches what reading a damaged file does, as long as it lives.
class Guard {
  public:
    explicit Guard(const Environment& env) : env_(env) {
        struct sigaction action{};
        action.sa_handler = on_bad_access;
        sigaction(SIGSEGV, &action, &segv_);
        sigaction(SIGBUS, &action, &bus_);
        mdb_env_set_assert(env.get(), on_assert);
    }
    ~Guard() {
        mdb_env_set_assert(env_.get(), nullptr);
        sigaction(SIGSEGV, &segv_, nullptr);
        sigaction(SIGBUS, &bus_, nullptr);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    const Environment& env_;
    struct sigaction segv_{};
    struct sigaction bus_{};
};

// These records end with a time (the registry's with a brace), whose last byte is never zero: a
// long one whose last page is lost shows it.
bool ends_with_time(MDB_dbi table, const Tables& tables) {
    return table == tables.journal || table == tables.threads || table == tables.runs ||
           table == tables.requests || table == tables.registry;
}

bool walk_table(MDB_txn* txn, MDB_dbi table, bool ends_in_time) {
    MDB_cursor* cursor = nullptr;
    if (mdb_cursor_open(txn, table, &cursor) != MDB_SUCCESS) {
        return false;
    }
    MDB_val key{};
    MDB_val value{};
    int code = MDB_SUCCESS;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
        const char* bytes = static_cast<const char*>(value.mv_data);
        if (ends_in_time && (value.mv_size == 0 || bytes[value.mv_size - 1] == 0)) {
            break;
        }
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND;
}

// Reads the names of all tables, opens each, and reads its ends.
bool read_roots(MDB_txn* txn) {
    MDB_dbi names = 0;
    MDB_cursor* cursor = nullptr;
    if (mdb_dbi_open(txn, nullptr, 0, &names) != MDB_SUCCESS ||
        mdb_cursor_open(txn, names, &cursor) != MDB_SUCCESS) {
        return false;
    }
    bool sound = true;
    MDB_val key{};
    MDB_val value{};
    int code = MDB_SUCCESS;
    while (sound && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
        char name[kLongestName + 1] = {};
        if (key.mv_size > kLongestName) {
            sound = false;
            break;
        }
        std::memcpy(name, key.mv_data, key.mv_size);
        MDB_dbi table = 0;
        MDB_cursor* inside = nullptr;
        sound = mdb_dbi_open(txn, name, 0, &table) == MDB_SUCCESS &&
                mdb_cursor_open(txn, table, &inside) == MDB_SUCCESS;
        for (const MDB_cursor_op end : {MDB_FIRST, MDB_LAST}) {
            MDB_val entry{};
            MDB_val record{};
            const int found = sound ? mdb_cursor_get(inside, &entry, &record, end) : MDB_SUCCESS;
            sound = sound && (found == MDB_SUCCESS || found == MDB_NOTFOUND);
        }
        mdb_cursor_close(inside);
    }
    mdb_cursor_close(cursor);
    return sound && code == MDB_NOTFOUND;
}

// LMDB's own two tables (free pages, names) have the numbers 0 and 1, ours follow.
bool read_all(MDB_txn* txn, const Tables& tables) {
    for (MDB_dbi table = 0; table < kTableCount + 2; ++table) {
        if (!walk_table(txn, table, ends_with_time(table, tables))) {
            return false;
        }
    }
    return true;
}

// With tables: all of them, from end to end. After a jump the cursors stay allocated: the program
// is about to refuse and end.
bool read_guarded(MDB_txn* txn, const Tables* tables) {
    sigjmp_buf back;
    if (sigsetjmp(back, 1) != 0) {
        jump = nullptr;
        return false;
    }
    jump = &back;
    const bool sound = tables == nullptr ? read_roots(txn) : read_all(txn, *tables);
    jump = nullptr;
    return sound;
}

}  // namespace

bool has_sound_roots(const Environment& env) {
    const Transaction txn = Transaction::read(env);
    const Guard guard(env);
    return read_guarded(txn.get(), nullptr);
}

bool is_sound(const Environment& env, const Tables& tables) {
    const Transaction txn = Transaction::read(env);
    const Guard guard(env);
    return read_guarded(txn.get(), &tables);
}

}  // namespace ars::store
