#include "runtime/store/writer.hpp"

#include "base/limits.hpp"
#include "runtime/store/commit_hook.hpp"

#include <cerrno>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <sys/statvfs.h>

namespace ars::store {

namespace {

using base::ErrorKind;
namespace limits = base::limits;

// A commit takes no further closure once it has added this much: LMDB bounds the changed pages of
// one transaction, and the waiters of small records shall not wait for many large ones.
constexpr std::size_t kGroupBytes = 32 * limits::kMiB;
// LMDB reports a write that a full disk cut short as EIO; with less room than this it means the
// disk.
constexpr std::size_t kDiskFullBytes = 1 * limits::kMiB;

std::size_t journal_bytes(MDB_txn* txn, MDB_dbi journal) {
    MDB_stat stat{};
    check(mdb_stat(txn, journal, &stat), "mdb_stat");
    return (stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
}

// A thread that takes no signals: they belong to the main thread.
template <class F>
std::thread start_quiet_thread(F body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread.native_handle(), "ars-store");
    return thread;
}

}  // namespace

Writer::Writer(
    const Environment& env, const Tables& tables, const base::Log& log, std::string directory
)
    : env_(env), tables_(tables), log_(log), directory_(std::move(directory)) {
    thread_ = start_quiet_thread([this] { run(); });
}

Writer::~Writer() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void Writer::submit(Closure closure, Done done) {
    std::unique_lock lock(mutex_);
    if (queue_.size() < limits::kStoreQueue) {
        queue_.push_back({std::move(closure), std::move(done), {}});
        const bool is_first = queue_.size() == 1;
        lock.unlock();  // or who wakes would wait for it
        // The writer empties the queue whenever it looks, so only the first entry has to wake it.
        if (is_first) {
            wake_.notify_one();
        }
        return;
    }
    lock.unlock();
    closure = nullptr;
    done(base::fail(
        ErrorKind::exhausted,
        "store_busy",
        "too many writes wait for the disk (" + std::to_string(limits::kStoreQueue) +
            "): try again later"
    ));
}

std::vector<Writer::Job> Writer::take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    std::vector<Job> jobs;
    while (!queue_.empty() && jobs.size() < limits::kStoreGroup) {
        jobs.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    return jobs;
}

void Writer::run() {
    for (auto jobs = take(); !jobs.empty(); jobs = take()) {
        for (std::span<Job> rest = jobs; !rest.empty();) {
            rest = rest.subspan(write_group(rest));
        }
    }
}

std::size_t Writer::write_group(std::span<Job> jobs) {
    std::size_t taken = 1;
    try {
        apply_group(jobs, taken);
    } catch (const Failure& failure) {
        // The shared transaction could not begin, or broke: nothing of it is on disk, and the
        // closures that ran must not run again.
        for (Job& job : jobs.first(taken)) {
            job.result = std::unexpected(explain(failure.code(), failure.what()));
        }
    }
    note_health(jobs.first(taken));
    for (Job& job : jobs.first(taken)) {
        job.closure = nullptr;  // before the waiter goes on: its captures are its thread's again
        job.done(std::move(job.result));
        job.done = nullptr;  // it may hold its executor at work
    }
    return taken;
}

void Writer::apply_group(std::span<Job> jobs, std::size_t& taken) {
    Transaction group = Transaction::write(env_);
    if (jobs.size() == 1) {
        apply_alone(group, jobs[0]);
    } else {
        const std::size_t bound = journal_bytes(group.get(), tables_.journal) + kGroupBytes;
        apply_nested(group, jobs[0]);
        while (taken < jobs.size() && journal_bytes(group.get(), tables_.journal) < bound) {
            apply_nested(group, jobs[taken++]);
        }
    }
    commit(group, jobs.first(taken));
}

void Writer::apply_alone(Transaction& group, Job& job) {
    job.result = call(group.get(), job);
    if (!job.result) {
        group.abort();
    }
}

void Writer::apply_nested(Transaction& group, Job& job) {
    Transaction nested = Transaction::write(env_, group.get());
    job.result = call(nested.get(), job);
    if (job.result) {
        check(nested.commit(), "commit nested transaction");
    }
}

base::Result<void> Writer::call(MDB_txn* txn, Job& job) {
    try {
        WriteTxn write(txn, tables_);
        auto result = job.closure(write);
        // A closure that swallowed a Failure leaves a broken transaction; committing that would
        // break the neighbours too. Any read tells.
        if (result) {
            static_cast<void>(get(txn, tables_.meta, "schema"));
        }
        return result;
    } catch (const Failure& failure) {
        return std::unexpected(explain(failure.code(), failure.what()));
    } catch (const std::exception& fault) {
        log_.error("store_closure_failed", {{"message", fault.what()}});
        return base::fail(
            ErrorKind::internal,
            "internal",
            std::string("a write to the store failed: ") + fault.what()
        );
    } catch (...) {
        log_.error("store_closure_failed", {{"message", "unknown exception"}});
        return base::fail(ErrorKind::internal, "internal", "a write to the store failed");
    }
}

void Writer::commit(Transaction& group, std::span<Job> jobs) {
    if (group.get() == nullptr) {
        return;
    }
    at_commit(CommitMoment::before);
    const int code = group.commit();
    if (code == MDB_SUCCESS) {
        at_commit(CommitMoment::after);
        commits_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const base::Error error = explain(code, std::string("commit: ") + mdb_strerror(code));
    for (Job& job : jobs) {
        if (job.result) {
            job.result = std::unexpected(error);
        }
    }
}

base::Error Writer::explain(int code, std::string_view what) const {
    struct statvfs disk{};
    if (code == EIO && ::statvfs(directory_.c_str(), &disk) == 0 &&
        disk.f_bavail * disk.f_frsize < kDiskFullBytes) {
        code = ENOSPC;
    }
    return to_error(code, what);
}

void Writer::note_health(std::span<const Job> jobs) {
    for (const Job& job : jobs) {
        const bool disk =
            !job.result &&
            (job.result.error().code == "disk_full" || job.result.error().code == "disk_failed" ||
             job.result.error().code == "store_full" || job.result.error().code == "store_failed");
        if (disk && !failing_) {
            log_.error(
                "store_write_failed",
                {{"code", job.result.error().code}, {"message", job.result.error().message}}
            );
        } else if (job.result && failing_) {
            log_.info("store_writes_again");
        }
        // Errors of the closures' own say nothing about the disk.
        if (disk || job.result) {
            failing_ = disk;
        }
    }
}

}  // namespace ars::store
