// The durable memory of the server: one LMDB environment, one writer thread, reads anywhere.
//
// Accepted = committed: write() returns only after the commit that holds its closure is on disk.
// Closures that queue up while a commit is under way share the next one, each in a nested
// transaction of its own, so that one that fails undoes only itself.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/store/records.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::store {

inline constexpr std::size_t kEntryKeyBytes = 500;  // LMDB keys end at 511

// Read access to one consistent snapshot. Never keep one across an await.
class ReadTxn {
  public:
    [[nodiscard]] std::optional<ThreadRecord> thread(ThreadNo no) const;
    [[nodiscard]] std::optional<ThreadRecord> thread_by_id(const std::string& id) const;
    // The thread that this user made with this request id.
    [[nodiscard]] std::optional<ThreadRecord> thread_by_request(
        const std::string& uid, const std::string& request_id
    ) const;
    // Pinned ones first, then newest first, without sub-agents', hidden and deleted threads;
    // `agent_slug` empty = all. With `title_part` only those whose title holds it, whatever the
    // case of ASCII letters.
    [[nodiscard]] std::vector<ThreadRecord> threads_of(
        const std::string& uid,
        const std::string& agent_slug,
        std::size_t limit,
        std::size_t offset,
        std::string_view title_part = {}
    ) const;

    [[nodiscard]] std::optional<RunRecord> run(RunNo no) const;
    // Of a run that is there: its status alone, without the texts.
    [[nodiscard]] std::optional<RunStatus> run_status(RunNo no) const;
    [[nodiscard]] std::optional<RunRecord> run_by_id(const std::string& id) const;
    [[nodiscard]] std::optional<RunRecord> run_by_request(const std::string& request_id) const;
    [[nodiscard]] std::vector<RunNo> open_runs() const;  // not terminal, oldest first
    // The run of the thread that is neither terminal nor interrupted.
    [[nodiscard]] std::optional<RunNo> open_run_of_thread(ThreadNo thread) const;
    [[nodiscard]] std::optional<RunNo> latest_run_of_thread(ThreadNo thread) const;
    [[nodiscard]] std::vector<RunNo> children_of(RunNo run) const;  // direct, oldest first

    // Requests that wait or waited for their thread (request_log.cpp).
    [[nodiscard]] std::optional<RequestRecord> request(RequestNo no) const;
    [[nodiscard]] std::optional<RequestRecord> request_by_id(const std::string& request_id) const;
    // Queued ones in the order they will be served: a steer first, then as they came.
    [[nodiscard]] std::vector<RequestNo> queue_of(ThreadNo thread) const;
    [[nodiscard]] bool has_steer(ThreadNo thread) const;
    [[nodiscard]] std::size_t queued_requests() const;           // of all threads
    [[nodiscard]] std::vector<ThreadNo> queued_threads() const;  // the oldest request's first

    [[nodiscard]] std::optional<MessageRecord> message(Seq seq) const;
    // Oldest first, those with seq > `after`, at most `limit`.
    [[nodiscard]] std::vector<MessageRecord> messages(
        ThreadNo thread, Seq after = 0, std::size_t limit = SIZE_MAX
    ) const;
    // Newest first, those with seq < `before` (0 = from the newest), at most `limit`.
    [[nodiscard]] std::vector<MessageRecord> messages_back(
        ThreadNo thread, Seq before, std::size_t limit
    ) const;
    [[nodiscard]] std::vector<CallRecord> calls(RunNo run, std::uint32_t step) const;
    [[nodiscard]] std::optional<CallRecord> call(RunNo run, std::uint32_t step, std::uint32_t index)
        const;
    [[nodiscard]] std::optional<CheckpointRecord> latest_checkpoint(ThreadNo thread) const;
    [[nodiscard]] std::optional<CheckpointRecord> checkpoint(Seq seq) const;
    // Reads from the newest back to it.
    [[nodiscard]] std::optional<CheckpointRecord> checkpoint_by_id(
        ThreadNo thread, const std::string& id
    ) const;
    // Newest first, those with seq < `before`; 0 = from the newest.
    [[nodiscard]] std::vector<CheckpointRecord> checkpoints(
        ThreadNo thread, Seq before, std::size_t limit
    ) const;
    // Oldest first, those with id > `after`, at most `limit`.
    [[nodiscard]] std::vector<EventRecord> events(RunNo run, EventId after, std::size_t limit)
        const;
    // Also of an expired log.
    [[nodiscard]] std::optional<EventId> last_event_id(RunNo run) const;
    // Whether the events of the run were dropped (event_expiry.cpp); it has none then.
    [[nodiscard]] bool log_expired(RunNo run) const;
    // Among the next `limit` logs from that of `from` on: those of runs that are over and had their
    // last event before that time.
    struct LogScan {
        std::vector<RunNo> old;
        RunNo next = 0;  // where to go on; 0 = there are no more
    };
    [[nodiscard]] LogScan old_logs(RunNo from, std::int64_t before_ms, std::size_t limit) const;

    // Of one queue of the outbox (outbox.cpp), those due until then, in the order of their time.
    [[nodiscard]] std::vector<OutboxRecord> outbox(
        std::uint64_t queue, std::int64_t until_ms, std::size_t limit
    ) const;

    // What people manage: agents, users, keys. Small records that change rarely, as JSON text under
    // a text key such as "user/alice" (registry.cpp).
    struct Entry {
        std::string key;
        std::string value;
    };
    [[nodiscard]] std::optional<std::string> entry(std::string_view key) const;
    // Those whose key begins with `prefix` and is greater than `after`, in the order of keys.
    [[nodiscard]] std::vector<Entry> entries(
        std::string_view prefix, std::string_view after = {}, std::size_t limit = SIZE_MAX
    ) const;
    // The greatest key that begins with `prefix`.
    [[nodiscard]] std::optional<Entry> last_entry(std::string_view prefix) const;

  protected:
    friend class Store;
    friend class Writer;
    ReadTxn(void* txn, const struct Tables& tables) : txn_(txn), tables_(&tables) {}
    void* txn_;  // MDB_txn*: lmdb.h stays inside store/
    const struct Tables* tables_;
};

// Write access inside a closure given to Store::write, on the writer thread.
// Every put assigns what is still zero or empty: numbers, seqs, created_ms and public ids.
// They throw on a full map or disk, and std::logic_error on a caller's fault: let both pass, the
// writer turns them into the Error of this closure alone.
class WriteTxn : public ReadTxn {
  public:
    // Id, user and request id of a stored thread never change.
    void put_thread(ThreadRecord& thread);
    // Keeps the indexes of open runs, of the thread's open and latest run, of request ids and
    // children. Ids, thread and parent of a stored run never change, nor does a terminal status.
    // A thread has at most one run that is neither terminal nor interrupted.
    void put_run(RunRecord& run);
    // Messages, checkpoints and events are always new entries: a seq or event id that is set is
    // overwritten.
    // Keeps the queue of its thread and the index of ids. Id, thread and user of a stored request
    // never change, nor does a status other than queued.
    void put_request(RequestRecord& request);
    void add_message(MessageRecord& message);
    void put_call(const CallRecord& call);
    void add_checkpoint(CheckpointRecord& checkpoint);
    // Assigns the id: ms = max(created_ms, last of the run), n breaks ties.
    void add_event(EventRecord& event);
    // Expires the log of a run that is over: none of its events is seen from now on, and at most
    // `limit` of them are erased. True when nothing is left to erase.
    bool expire_log(RunNo run, std::size_t limit);
    // Where the store keeps an outbox, put_run() puts a root run's end into queue 0 by itself.
    void put_outbox(const OutboxRecord& record);
    void erase_outbox(const OutboxRecord& record);                 // as it was read
    void put_entry(std::string_view key, std::string_view value);  // key <= kEntryKeyBytes
    void erase_entry(std::string_view key);                        // a missing one is fine

  private:
    friend class Store;
    friend class Writer;
    using ReadTxn::ReadTxn;
    void add_run(RunRecord& run);
    void change_run(const RunRecord& run);
    void require_free(ThreadNo thread) const;
    void append(char kind, Seq& seq, const std::string& bytes);
};

struct StoreOptions {
    std::string directory;  // made when missing, 0700; may be a /proc/self/fd path
    std::size_t max_size;   // bytes of address space
    bool sync = true;       // false only for tests: survives kill -9, not a power cut
    bool outbox = false;    // whether ends of root runs are kept for others to be told
};

// The queue of a name in the outbox; never 0.
[[nodiscard]] std::uint64_t outbox_queue(std::string_view name);

class Store {
  public:
    // Opens or creates. A second process on the directory, a newer schema and an unreadable file
    // are errors with a remedy; stale reader slots of dead processes are cleared.
    [[nodiscard]] static base::Result<std::unique_ptr<Store>> open(
        const StoreOptions& options, const base::Log& log
    );
    ~Store();  // writes what is queued, then closes

    // Runs `read(txn)` on the calling thread at once.
    template <class F>
    auto read(F&& f) const {
        const Snapshot snapshot(*this);
        return f(static_cast<const ReadTxn&>(snapshot.txn()));
    }

    // Runs `change(txn)` on the writer thread and returns its Result after the durable commit.
    // `change` must own what it uses, do no I/O, and return base::Result<R> with R copyable. It
    // runs at most once, and what it captured is released before the caller goes on. An error
    // result, a full map or a full disk (codes "store_full", "disk_full") leave nothing of it
    // behind. More errors: "store_busy" (queue full), "store_failed", "internal" (`change` threw).
    // Not cancellable: it completes in the time of a commit, so that no caller is left in doubt. A
    // caller that is cancelled already gets operation_aborted at once, and nothing is queued.
    template <class R>
    base::Task<base::Result<R>> write(std::function<base::Result<R>(WriteTxn&)> change) {
        auto result = std::make_shared<std::optional<base::Result<R>>>();
        // Named first: a capturing lambda inside a co_await expression is a compiler trap.
        std::function<base::Result<void>(WriteTxn&)> closure =
            [result, change = std::move(change)](WriteTxn& txn) -> base::Result<void> {
            result->emplace(change(txn));
            if (!result->value().has_value()) {
                return std::unexpected(result->value().error());
            }
            return {};
        };
        const base::Result<void> committed = co_await submit(std::move(closure));
        if (!committed) {
            co_return std::unexpected(committed.error());
        }
        co_return std::move(result->value());
    }

    // The same without a coroutine, for boot and tests: blocks the caller until the commit.
    base::Result<void> write_blocking(std::function<base::Result<void>(WriteTxn&)> change);

    // For metrics: durable commits since the start, and bytes of max_size in use.
    [[nodiscard]] std::uint64_t commits() const;
    [[nodiscard]] std::size_t used_bytes() const;

  private:
    class Snapshot {
      public:
        explicit Snapshot(const Store& store);
        ~Snapshot();
        Snapshot(const Snapshot&) = delete;
        Snapshot& operator=(const Snapshot&) = delete;
        [[nodiscard]] const ReadTxn& txn() const { return txn_; }

      private:
        const Store& store_;
        ReadTxn txn_;
    };

    Store();
    base::Task<base::Result<void>> submit(std::function<base::Result<void>(WriteTxn&)> closure);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ars::store
