// Requests that wait for their thread. The queue of a thread is an index of its own, with the
// policy beside the number, so that who goes next is known without reading what they say.
#include "base/clock.hpp"
#include "runtime/store/journal.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <stdexcept>

namespace ars::store {

namespace {

bool is_steer(std::string_view value) {
    return !value.empty() && value.front() == static_cast<char>(QueuePolicy::steer);
}

void require(bool holds, const char* broken) {
    if (!holds) {
        throw std::logic_error(broken);
    }
}

}  // namespace

std::optional<RequestRecord> ReadTxn::request(RequestNo no) const {
    const auto bytes = get(raw(txn_), tables_->requests, Key(no));
    if (!bytes) {
        return std::nullopt;
    }
    RequestRecord record = decoded(decode_request(*bytes), "request", no);
    record.no = no;
    return record;
}

std::optional<RequestRecord> ReadTxn::request_by_id(const std::string& request_id) const {
    const auto bytes = get(raw(txn_), tables_->ids, queued_id_key(request_id));
    auto record = bytes ? request(u64_at(*bytes, 0)) : std::nullopt;
    return record && record->request_id == request_id ? std::move(record) : std::nullopt;
}

std::vector<RequestNo> ReadTxn::queue_of(ThreadNo thread) const {
    std::vector<RequestNo> out;
    Cursor cursor(raw(txn_), tables_->thread_queue);
    for (bool more = cursor.at_or_after(Key(thread)); more && u64_at(cursor.key(), 0) == thread;
         more = cursor.next()) {
        const RequestNo no = u64_at(cursor.key(), 8);
        out.insert(is_steer(cursor.value()) ? out.begin() : out.end(), no);
    }
    return out;
}

bool ReadTxn::has_steer(ThreadNo thread) const {
    Cursor cursor(raw(txn_), tables_->thread_queue);
    for (bool more = cursor.at_or_after(Key(thread)); more && u64_at(cursor.key(), 0) == thread;
         more = cursor.next()) {
        if (is_steer(cursor.value())) {
            return true;
        }
    }
    return false;
}

std::size_t ReadTxn::queued_requests() const {
    MDB_stat stat{};
    check(mdb_stat(raw(txn_), tables_->thread_queue, &stat), "count the queue");
    return stat.ms_entries;
}

std::vector<ThreadNo> ReadTxn::queued_threads() const {
    std::vector<std::pair<RequestNo, ThreadNo>> heads;
    Cursor cursor(raw(txn_), tables_->thread_queue);
    for (bool more = cursor.first(); more; more = cursor.next()) {
        const ThreadNo thread = u64_at(cursor.key(), 0);
        if (heads.empty() || heads.back().second != thread) {
            heads.emplace_back(u64_at(cursor.key(), 8), thread);
        }
    }
    std::ranges::sort(heads);
    std::vector<ThreadNo> out;
    for (const auto& [request, thread] : heads) {
        out.push_back(thread);
    }
    return out;
}

void WriteTxn::put_request(RequestRecord& request) {
    request.updated_ms = base::now_ms();
    if (request.created_ms == 0) {
        request.created_ms = request.updated_ms;
    }
    if (request.no == 0) {
        require(!request.request_id.empty(), "put_request: a request has an id");
        request.no = last_number(raw(txn_), tables_->requests) + 1;
        require(
            put_new(raw(txn_), tables_->ids, queued_id_key(request.request_id), Key(request.no)),
            "put_request: another request has this id"
        );
    } else {
        const auto old = this->request(request.no);
        require(
            old && old->request_id == request.request_id && old->thread == request.thread &&
                old->uid == request.uid,
            "put_request: no such request, or its id, thread or user changed"
        );
        require(
            old->status == RequestStatus::queued || old->status == request.status,
            "put_request: a request that left the queue never changes its status"
        );
    }
    put(raw(txn_), tables_->requests, Key(request.no), encode_request(request));
    const Key place(request.thread, request.no);
    if (request.status == RequestStatus::queued) {
        const char policy = static_cast<char>(request.policy);
        put(raw(txn_), tables_->thread_queue, place, {&policy, 1});
    } else {
        erase(raw(txn_), tables_->thread_queue, place);
    }
}

}  // namespace ars::store
