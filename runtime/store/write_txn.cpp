// Every change of the store. A put that breaks a promise of the records (a terminal run that
// changes back, two runs with one request id) is a fault of its caller and throws: nothing of the
// closure is kept then.
#include "base/clock.hpp"
#include "base/digest.hpp"
#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <cstring>
#include <stdexcept>

namespace ars::store {

namespace {

void assign_time(std::int64_t& field) {
    if (field == 0) {
        field = base::now_ms();
    }
}

void assign_uuid(std::string& field) {
    if (field.empty()) {
        field = base::random_uuid();
    }
}

void require(bool holds, const char* broken) {
    if (!holds) {
        throw std::logic_error(broken);
    }
}

bool holds_thread(RunStatus status) {
    return !is_terminal(status) && status != RunStatus::interrupted;
}

// Makes the presence of `key` follow `wanted`.
void set_present(MDB_txn* txn, MDB_dbi table, std::string_view key, bool present, bool wanted) {
    if (wanted && !present) {
        put(txn, table, key, {});
    } else if (!wanted && present) {
        erase(txn, table, key);
    }
}

// Where a thread stands in its user's list; 0 = not in it.
std::uint64_t place_of(const ThreadRecord& thread) {
    const bool listed = !thread.is_hidden && thread.status != ThreadStatus::subagent &&
                        thread.status != ThreadStatus::deleted;
    return listed ? thread.no | (thread.is_pinned ? kPinnedPlace : 0) : 0;
}

}  // namespace

void WriteTxn::append(char kind, Seq& seq, const std::string& bytes) {
    Cursor cursor(raw(txn_), tables_->journal);
    seq = cursor.last() ? u64_at(cursor.key(), 0) + 1 : 1;
    const Key number(seq);
    MDB_val key = to_value(number);
    MDB_val space{bytes.size() + 1, nullptr};
    check(mdb_cursor_put(cursor.get(), &key, &space, MDB_APPEND | MDB_RESERVE), "append");
    char* out = static_cast<char*>(space.mv_data);
    out[0] = kind;
    std::memcpy(out + 1, bytes.data(), bytes.size());
}

void WriteTxn::put_thread(ThreadRecord& thread) {
    const bool is_new = thread.no == 0;
    if (is_new) {
        thread.no = last_number(raw(txn_), tables_->threads) + 1;
        assign_uuid(thread.id);
        if (thread.root == 0) {
            const auto parent = this->thread(thread.parent);
            thread.root = parent ? parent->root : thread.no;
        }
    }
    assign_time(thread.created_ms);
    if (thread.updated_ms == 0) {
        thread.updated_ms = thread.created_ms;
    }
    const Key number(thread.no);
    std::uint64_t old_place = 0;
    if (is_new) {
        require(
            put_new(raw(txn_), tables_->ids, thread_id_key(thread.id), number),
            "put_thread: another thread has this id"
        );
        if (!thread.request_id.empty()) {
            const std::string key = thread_request_key(thread.uid, thread.request_id);
            require(
                put_new(raw(txn_), tables_->ids, key, number),
                "put_thread: another thread of the user has this request id"
            );
        }
    } else {
        const auto stored = this->thread(thread.no);
        require(
            stored && stored->id == thread.id && stored->uid == thread.uid &&
                stored->request_id == thread.request_id,
            "put_thread: no such thread, or its id, user or request id changed"
        );
        old_place = place_of(*stored);
    }
    if (const std::uint64_t place = place_of(thread); place != old_place) {
        const std::uint64_t user = uid_hash(thread.uid);
        set_present(raw(txn_), tables_->user_threads, Key(user, old_place), old_place != 0, false);
        set_present(raw(txn_), tables_->user_threads, Key(user, place), false, place != 0);
    }
    put(raw(txn_), tables_->threads, number, encode_thread(thread));
}

void WriteTxn::put_run(RunRecord& run) {
    const bool is_new = run.no == 0;
    if (is_new) {
        run.no = last_number(raw(txn_), tables_->runs) + 1;
        add_run(run);
    } else {
        change_run(run);
    }
}

void WriteTxn::require_free(ThreadNo thread) const {
    require(!open_run_of_thread(thread), "put_run: the thread has an open run already");
}

void WriteTxn::add_run(RunRecord& run) {
    assign_uuid(run.id);
    if (run.request_id.empty()) {
        run.request_id = "req-" + base::random_uuid();
    }
    if (run.root == 0) {
        const auto parent = this->run(run.parent);
        run.root = parent ? parent->root : run.no;
    }
    assign_time(run.created_ms);
    const Key number(run.no);
    require(
        put_new(raw(txn_), tables_->ids, run_id_key(run.id), number),
        "put_run: another run has this id"
    );
    require(
        put_new(raw(txn_), tables_->ids, request_id_key(run.request_id), number),
        "put_run: another run has this request id"
    );
    put(raw(txn_), tables_->runs, number, encode_run_facts(run));
    put(raw(txn_), tables_->run_states, number, encode_run_state(run));
    put(raw(txn_), tables_->thread_latest, Key(run.thread), number);
    if (run.parent != 0) {
        put(raw(txn_), tables_->children, Key(run.parent, run.no), {});
    }
    if (!is_terminal(run.status)) {
        put(raw(txn_), tables_->open_runs, number, {});
    }
    if (run.type == RunType::resume) {
        // What it resumes is interrupted for ever; a boot need not look at it again.
        erase(raw(txn_), tables_->open_runs, Key(run.parent));
    }
    if (holds_thread(run.status)) {
        require_free(run.thread);
        put(raw(txn_), tables_->thread_open, Key(run.thread, run.no), {});
    }
}

void WriteTxn::change_run(const RunRecord& run) {
    const Key number(run.no);
    const std::string facts = encode_run_facts(run);
    // The facts hardly ever change, and take a while to decode.
    if (get(raw(txn_), tables_->runs, number) != facts) {
        const auto old = this->run(run.no);
        require(
            old && old->id == run.id && old->request_id == run.request_id &&
                old->thread == run.thread && old->parent == run.parent,
            "put_run: no such run, or its id, request id, thread or parent changed"
        );
        put(raw(txn_), tables_->runs, number, facts);
    }
    const RunStatus old = run_status(run.no).value();
    require(
        !is_terminal(old) || old == run.status, "put_run: a terminal run never changes its status"
    );
    put(raw(txn_), tables_->run_states, number, encode_run_state(run));
    set_present(raw(txn_), tables_->open_runs, number, !is_terminal(old), !is_terminal(run.status));
    if (holds_thread(run.status) && !holds_thread(old)) {
        require_free(run.thread);
    }
    set_present(
        raw(txn_),
        tables_->thread_open,
        Key(run.thread, run.no),
        holds_thread(old),
        holds_thread(run.status)
    );
    if (tables_->keeps_outbox && run.parent == 0 && is_terminal(run.status) && !is_terminal(old)) {
        put_outbox({.run = run.no});
    }
}

void WriteTxn::add_message(MessageRecord& message) {
    assign_uuid(message.id);
    assign_time(message.created_ms);
    append(kMessageKind, message.seq, encode_message(message));
    const Key key(message.thread, message.seq);
    put(raw(txn_), tables_->thread_log, key, {&kMessageKind, 1});
}

void WriteTxn::put_call(const CallRecord& call) {
    const Key key = Key::call(call.run, call.step, call.index);
    put(raw(txn_), tables_->calls, key, encode_call(call));
}

void WriteTxn::add_checkpoint(CheckpointRecord& checkpoint) {
    assign_uuid(checkpoint.id);
    assign_time(checkpoint.created_ms);
    append(kCheckpointKind, checkpoint.seq, encode_checkpoint(checkpoint));
    const Key key(checkpoint.thread, checkpoint.seq);
    put(raw(txn_), tables_->thread_log, key, {&kCheckpointKind, 1});
}

}  // namespace ars::store
