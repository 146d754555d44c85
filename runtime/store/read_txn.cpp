#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>

namespace ars::store {

namespace {

// The second numbers of all keys `first`, second; oldest first.
std::vector<std::uint64_t> second_numbers(MDB_txn* txn, MDB_dbi table, std::uint64_t first) {
    std::vector<std::uint64_t> out;
    Cursor cursor(txn, table);
    for (bool more = cursor.at_or_after(Key(first)); more && u64_at(cursor.key(), 0) == first;
         more = cursor.next()) {
        out.push_back(u64_at(cursor.key(), 8));
    }
    return out;
}

std::optional<std::uint64_t> number_of(MDB_txn* txn, const Tables& tables, const std::string& key) {
    const auto bytes = get(txn, tables.ids, key);
    if (!bytes) {
        return std::nullopt;
    }
    return u64_at(*bytes, 0);
}

CallRecord read_call(std::string_view key, std::string_view value) {
    CallRecord call = decoded(decode_call(value), "call of run", u64_at(key, 0));
    call.run = u64_at(key, 0);
    call.step = u32_at(key, 8);
    call.index = u32_at(key, 12);
    return call;
}

bool holds(std::string_view text, std::string_view part) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    const auto found = std::ranges::search(text, part, {}, lower, lower);
    return part.empty() || !found.empty();
}

bool is_kind(std::string_view value, char kind) { return !value.empty() && value.front() == kind; }

}  // namespace

std::optional<ThreadRecord> ReadTxn::thread(ThreadNo no) const {
    const auto bytes = get(raw(txn_), tables_->threads, Key(no));
    if (!bytes) {
        return std::nullopt;
    }
    ThreadRecord record = decoded(decode_thread(*bytes), "thread", no);
    record.no = no;
    return record;
}

std::optional<ThreadRecord> ReadTxn::thread_by_id(const std::string& id) const {
    const auto no = number_of(raw(txn_), *tables_, thread_id_key(id));
    auto record = no ? thread(*no) : std::nullopt;
    return record && record->id == id ? std::move(record) : std::nullopt;
}

std::optional<ThreadRecord> ReadTxn::thread_by_request(
    const std::string& uid, const std::string& request_id
) const {
    if (request_id.empty()) {
        return std::nullopt;
    }
    const auto no = number_of(raw(txn_), *tables_, thread_request_key(uid, request_id));
    auto record = no ? thread(*no) : std::nullopt;
    const bool same = record && record->uid == uid && record->request_id == request_id;
    return same ? std::move(record) : std::nullopt;
}

std::vector<ThreadRecord> ReadTxn::threads_of(
    const std::string& uid,
    const std::string& agent_slug,
    std::size_t limit,
    std::size_t offset,
    std::string_view title_part
) const {
    std::vector<ThreadRecord> out;
    const std::uint64_t hash = uid_hash(uid);
    Cursor cursor(raw(txn_), tables_->user_threads);
    for (bool more = cursor.before(Key(hash, UINT64_MAX));
         more && out.size() < limit && u64_at(cursor.key(), 0) == hash;
         more = cursor.previous()) {
        auto record = thread(u64_at(cursor.key(), 8) & ~kPinnedPlace);
        // Hashes of different users may be equal.
        if (!record || record->uid != uid || record->status == ThreadStatus::deleted ||
            (!agent_slug.empty() && record->agent_slug != agent_slug) ||
            !holds(record->title, title_part)) {
            continue;
        }
        if (offset > 0) {
            --offset;
            continue;
        }
        out.push_back(*std::move(record));
    }
    return out;
}

std::optional<RunRecord> ReadTxn::run(RunNo no) const {
    const auto facts = get(raw(txn_), tables_->runs, Key(no));
    const auto state = get(raw(txn_), tables_->run_states, Key(no));
    if (!facts || !state) {
        return std::nullopt;
    }
    RunRecord record;
    record.no = no;
    if (!decode_run_facts(*facts, record) || !decode_run_state(*state, record)) {
        throw_damaged("run", no);
    }
    return record;
}

std::optional<RunStatus> ReadTxn::run_status(RunNo no) const {
    const auto state = get(raw(txn_), tables_->run_states, Key(no));
    if (!state) {
        return std::nullopt;
    }
    RunRecord record;
    if (!decode_run_state(*state, record)) {
        throw_damaged("run", no);
    }
    return record.status;
}

std::optional<RunRecord> ReadTxn::run_by_id(const std::string& id) const {
    const auto no = number_of(raw(txn_), *tables_, run_id_key(id));
    auto record = no ? run(*no) : std::nullopt;
    return record && record->id == id ? std::move(record) : std::nullopt;
}

std::optional<RunRecord> ReadTxn::run_by_request(const std::string& request_id) const {
    const auto no = number_of(raw(txn_), *tables_, request_id_key(request_id));
    auto record = no ? run(*no) : std::nullopt;
    return record && record->request_id == request_id ? std::move(record) : std::nullopt;
}

std::vector<RunNo> ReadTxn::open_runs() const {
    std::vector<RunNo> out;
    Cursor cursor(raw(txn_), tables_->open_runs);
    for (bool more = cursor.first(); more; more = cursor.next()) {
        out.push_back(u64_at(cursor.key(), 0));
    }
    return out;
}

std::optional<RunNo> ReadTxn::open_run_of_thread(ThreadNo thread) const {
    Cursor cursor(raw(txn_), tables_->thread_open);
    if (!cursor.at_or_after(Key(thread)) || u64_at(cursor.key(), 0) != thread) {
        return std::nullopt;
    }
    return u64_at(cursor.key(), 8);
}

std::optional<RunNo> ReadTxn::latest_run_of_thread(ThreadNo thread) const {
    const auto bytes = get(raw(txn_), tables_->thread_latest, Key(thread));
    if (!bytes) {
        return std::nullopt;
    }
    return u64_at(*bytes, 0);
}

std::vector<RunNo> ReadTxn::children_of(RunNo run) const {
    return second_numbers(raw(txn_), tables_->children, run);
}

std::optional<MessageRecord> ReadTxn::message(Seq seq) const {
    const auto bytes = journal_entry(raw(txn_), *tables_, seq, kMessageKind);
    if (!bytes) {
        return std::nullopt;
    }
    MessageRecord record = decoded(decode_message(*bytes), "message", seq);
    record.seq = seq;
    return record;
}

std::vector<MessageRecord> ReadTxn::messages(ThreadNo thread, Seq after, std::size_t limit) const {
    std::vector<MessageRecord> out;
    if (after == UINT64_MAX) {
        return out;
    }
    Cursor cursor(raw(txn_), tables_->thread_log);
    for (bool more = cursor.at_or_after(Key(thread, after + 1));
         more && out.size() < limit && u64_at(cursor.key(), 0) == thread;
         more = cursor.next()) {
        if (!is_kind(cursor.value(), kMessageKind)) {
            continue;
        }
        if (auto record = message(u64_at(cursor.key(), 8))) {
            out.push_back(*std::move(record));
        }
    }
    return out;
}

std::vector<MessageRecord> ReadTxn::messages_back(ThreadNo thread, Seq before, std::size_t limit)
    const {
    std::vector<MessageRecord> out;
    Cursor cursor(raw(txn_), tables_->thread_log);
    for (bool more = cursor.before(Key(thread, before == 0 ? UINT64_MAX : before));
         more && out.size() < limit && u64_at(cursor.key(), 0) == thread;
         more = cursor.previous()) {
        if (!is_kind(cursor.value(), kMessageKind)) {
            continue;
        }
        if (auto record = message(u64_at(cursor.key(), 8))) {
            out.push_back(*std::move(record));
        }
    }
    return out;
}

std::vector<CallRecord> ReadTxn::calls(RunNo run, std::uint32_t step) const {
    std::vector<CallRecord> out;
    const Key prefix = Key::call(run, step);
    Cursor cursor(raw(txn_), tables_->calls);
    for (bool more = cursor.at_or_after(prefix); more && cursor.key().starts_with(prefix);
         more = cursor.next()) {
        out.push_back(read_call(cursor.key(), cursor.value()));
    }
    return out;
}

std::optional<CallRecord> ReadTxn::call(RunNo run, std::uint32_t step, std::uint32_t index) const {
    const Key key = Key::call(run, step, index);
    const auto bytes = get(raw(txn_), tables_->calls, key);
    if (!bytes) {
        return std::nullopt;
    }
    return read_call(key, *bytes);
}

std::optional<CheckpointRecord> ReadTxn::checkpoint(Seq seq) const {
    const auto bytes = journal_entry(raw(txn_), *tables_, seq, kCheckpointKind);
    if (!bytes) {
        return std::nullopt;
    }
    CheckpointRecord record = decoded(decode_checkpoint(*bytes), "checkpoint", seq);
    record.seq = seq;
    return record;
}

std::optional<CheckpointRecord> ReadTxn::latest_checkpoint(ThreadNo thread) const {
    auto newest = checkpoints(thread, 0, 1);
    if (newest.empty()) {
        return std::nullopt;
    }
    return std::move(newest.front());
}

std::optional<CheckpointRecord> ReadTxn::checkpoint_by_id(ThreadNo thread, const std::string& id)
    const {
    constexpr std::size_t kPage = 64;
    Seq before = 0;
    for (auto page = checkpoints(thread, before, kPage); !page.empty();
         page = checkpoints(thread, before, kPage)) {
        for (CheckpointRecord& one : page) {
            if (one.id == id) {
                return std::move(one);
            }
        }
        before = page.back().seq;
    }
    return std::nullopt;
}

std::vector<CheckpointRecord> ReadTxn::checkpoints(ThreadNo thread, Seq before, std::size_t limit)
    const {
    std::vector<CheckpointRecord> out;
    Cursor cursor(raw(txn_), tables_->thread_log);
    for (bool more = cursor.before(Key(thread, before == 0 ? UINT64_MAX : before));
         more && out.size() < limit && u64_at(cursor.key(), 0) == thread;
         more = cursor.previous()) {
        if (!is_kind(cursor.value(), kCheckpointKind)) {
            continue;
        }
        if (auto record = checkpoint(u64_at(cursor.key(), 8))) {
            out.push_back(*std::move(record));
        }
    }
    return out;
}

}  // namespace ars::store
