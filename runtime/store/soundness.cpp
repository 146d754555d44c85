#include "runtime/store/soundness.hpp"

#include <csetjmp>

namespace ars::store {

namespace {

// LMDB asserts that pages are pages, and aborts when its handler returns. So the handler jumps,
// over C frames only: between here and there no object with a destructor may live.
thread_local std::jmp_buf* jump = nullptr;

void on_assert(MDB_env* /*env*/, const char* /*text*/) {
    if (jump != nullptr) {
        std::longjmp(*jump, 1);
    }
}

// These records end with a time, whose last byte is never zero: a long one whose last page is lost
// shows it.
bool ends_with_time(MDB_dbi table, const Tables& tables) {
    return table == tables.journal || table == tables.threads || table == tables.runs ||
           table == tables.requests;
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

// LMDB's own two tables (free pages, names) have the numbers 0 and 1, ours follow.
bool walk_all(MDB_txn* txn, const Tables& tables) {
    std::jmp_buf back;
    if (setjmp(back) != 0) {
        jump = nullptr;
        return false;  // the cursor of the walk stays allocated: the program is about to refuse and
                       // end
    }
    jump = &back;
    bool sound = true;
    for (MDB_dbi table = 0; sound && table < kTableCount + 2; ++table) {
        sound = walk_table(txn, table, ends_with_time(table, tables));
    }
    jump = nullptr;
    return sound;
}

}  // namespace

bool is_sound(const Environment& env, const Tables& tables) {
    const Transaction txn = Transaction::read(env);
    mdb_env_set_assert(env.get(), on_assert);
    const bool sound = walk_all(txn.get(), tables);
    mdb_env_set_assert(env.get(), nullptr);
    return sound;
}

}  // namespace ars::store
