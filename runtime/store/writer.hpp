// The one thread that writes. It takes all closures that wait, runs each in a nested transaction of
// its own inside one transaction, commits once, and tells every waiter. No timer: what queues up
// during one commit shares the next.
//
// It must never run a closure twice: closures own state that their first run may have used up.
#pragma once

#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/store/lmdb_env.hpp"
#include "runtime/store/store.hpp"
#include "runtime/store/tables.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ars::store {

class Writer {
  public:
    using Closure = std::function<base::Result<void>(WriteTxn&)>;
    // Called once, on the writer thread or inside submit(); must not block or throw.
    using Done = std::move_only_function<void(base::Result<void>)>;

    // All three outlive the writer.
    Writer(
        const Environment& env, const Tables& tables, const base::Log& log, std::string directory
    );
    ~Writer();  // writes what is queued first
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Any thread. A full queue answers "store_busy" at once.
    void submit(Closure closure, Done done);
    [[nodiscard]] std::uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }

  private:
    struct Job {
        Closure closure;
        Done done;
        base::Result<void> result;
    };

    void run();
    [[nodiscard]] std::vector<Job> take();
    // Writes a front part of `jobs` as one commit and returns how many it took, at least one.
    std::size_t write_group(std::span<Job> jobs);
    void apply_group(std::span<Job> jobs, std::size_t& taken);
    void apply_alone(Transaction& group, Job& job);
    void apply_nested(Transaction& group, Job& job);
    [[nodiscard]] base::Result<void> call(MDB_txn* txn, Job& job);
    void commit(Transaction& group, std::span<Job> jobs);
    [[nodiscard]] base::Error explain(int code, std::string_view what) const;
    void note_health(std::span<const Job> jobs);

    const Environment& env_;
    const Tables& tables_;
    const base::Log& log_;
    std::string directory_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> queue_;
    bool stopping_ = false;
    bool failing_ =
        false;  // writer thread only: so that a full disk is one log line, not one a write
    std::atomic<std::uint64_t> commits_ = 0;
    std::thread thread_;
};

}  // namespace ars::store
