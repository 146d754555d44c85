// What a durable write costs, beside the floor of the same disk measured in the same run: one
// append of 4 KiB with fdatasync. Only the ratios mean something on another machine. The directory
// is $ARS_BENCH_DIR, else /var/tmp (a tmpfs would make fdatasync free).
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "runtime/store/store.hpp"

#include <benchmark/benchmark.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <memory>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace ars::store {
namespace {

namespace asio = base::asio;
using base::Result;
using base::Task;

// A store in a directory of its own, removed at the end.
class BenchStore {
  public:
    explicit BenchStore(bool sync = true) : log_(STDERR_FILENO, base::LogLevel::off) {
        const char* base_path = std::getenv("ARS_BENCH_DIR");
        path_ = std::string(base_path != nullptr ? base_path : "/var/tmp") + "/ars_bench_XXXXXX";
        if (::mkdtemp(path_.data()) == nullptr) {
            throw std::runtime_error("mkdtemp failed");
        }
        auto opened = Store::open({path_ + "/store", 8 * base::limits::kGiB, sync}, log_);
        if (!opened) {
            throw std::runtime_error(opened.error().message);
        }
        store_ = *std::move(opened);
    }
    ~BenchStore() {
        store_.reset();
        for (const char* name :
             {"/store/data.mdb", "/store/lock.mdb", "/store/owner.lock", "/raw"}) {
            ::unlink((path_ + name).c_str());
        }
        ::rmdir((path_ + "/store").c_str());
        ::rmdir(path_.c_str());
    }
    BenchStore(const BenchStore&) = delete;
    BenchStore& operator=(const BenchStore&) = delete;

    Store* operator->() { return store_.get(); }
    Store& operator*() { return *store_; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    base::Log log_;
    std::string path_;
    std::unique_ptr<Store> store_;
};

void must(const Result<void>& result) {
    if (!result) {
        throw std::runtime_error(result.error().message);
    }
}

void BM_RawAppend4KiBWithFdatasync(benchmark::State& state) {
    const BenchStore place;
    const auto file = base::open_file(place.path() + "/raw", O_WRONLY | O_CREAT | O_APPEND, 0600);
    const std::string page(4096, 'x');
    for (auto _ : state) {
        if (!file || !base::write_all(file->get(), page) || ::fdatasync(file->get()) != 0) {
            state.SkipWithError("append failed");
            break;
        }
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_RawAppend4KiBWithFdatasync)->UseRealTime();

// Each of the writers commits one record of 1 KiB after the other, as runs do.
Task<void> write_records(Store& store, ThreadNo thread, std::int64_t* left) {
    while ((*left)-- > 0) {
        std::function<Result<Seq>(WriteTxn&)> change = [thread](WriteTxn& txn) -> Result<Seq> {
            MessageRecord message;
            message.thread = thread;
            message.content.assign(1024, 'x');
            txn.add_message(message);
            return message.seq;
        };
        const auto written = co_await store.write<Seq>(std::move(change));
        if (!written) {
            throw std::runtime_error(written.error().message);
        }
    }
}

void BM_DurableRecord(benchmark::State& state) {
    BenchStore store;
    asio::io_context io(1);
    const std::int64_t batch = 16 * state.range(0);
    for (auto _ : state) {
        std::int64_t left = batch;
        for (std::int64_t i = 1; i <= state.range(0); ++i) {
            asio::co_spawn(
                io, write_records(*store, static_cast<ThreadNo>(i), &left), asio::detached
            );
        }
        io.restart();
        io.run();
    }
    state.SetItemsProcessed(state.iterations() * batch);
    state.counters["records_per_commit"] =
        static_cast<double>(state.iterations() * batch) / static_cast<double>(store->commits());
    if (state.range(0) == 1) {
        state.SetLabel("goal: at most 1.5 times as long as one raw append");
    } else if (state.range(0) == 64) {
        state.SetLabel("goal: at least 15 times the rate of raw appends");
    }
}
BENCHMARK(BM_DurableRecord)->Arg(1)->Arg(4)->Arg(16)->Arg(64)->Arg(256)->UseRealTime();

// One step of a run as the loop commits it: message, intent, checkpoint, event and the run's state.
Result<void> commit_step(WriteTxn& txn, RunRecord& run) {
    MessageRecord message;
    message.thread = run.thread;
    message.run = run.no;
    message.role = Role::assistant;
    message.content.assign(500, 'x');
    txn.add_message(message);
    ++run.steps;
    txn.put_call({.run = run.no, .step = run.steps});
    CheckpointRecord checkpoint;
    checkpoint.thread = run.thread;
    checkpoint.run = run.no;
    checkpoint.message_head = message.seq;
    checkpoint.state = R"({"todos":[],"artifacts":[],"subagent_runs":[]})";
    txn.add_checkpoint(checkpoint);
    EventRecord event;
    event.run = run.no;
    event.type = "messages";
    event.payload.assign(300, 'e');
    txn.add_event(event);
    txn.put_run(run);
    return {};
}

Task<void> step_for_ever(Store& store, RunRecord run, std::int64_t* left) {
    while ((*left)-- > 0) {
        std::function<Result<RunRecord>(WriteTxn&)> change = [run](WriteTxn& txn
                                                             ) mutable -> Result<RunRecord> {
            if (auto committed = commit_step(txn, run); !committed) {
                return std::unexpected(committed.error());
            }
            return run;
        };
        auto written = co_await store.write<RunRecord>(std::move(change));
        if (!written) {
            throw std::runtime_error(written.error().message);
        }
        run = *std::move(written);
    }
}

void BM_DurableStep(benchmark::State& state) {
    BenchStore store;
    std::vector<RunRecord> runs(static_cast<std::size_t>(state.range(0)));
    must(store->write_blocking([&runs](WriteTxn& txn) -> Result<void> {
        for (RunRecord& run : runs) {
            ThreadRecord thread;
            thread.uid = "bench";
            txn.put_thread(thread);
            run.thread = thread.no;
            run.agent_config.assign(2000, 'c');
            run.status = RunStatus::running;
            txn.put_run(run);
        }
        return {};
    }));
    asio::io_context io(1);
    const std::int64_t batch = 16 * state.range(0);
    for (auto _ : state) {
        std::int64_t left = batch;
        for (RunRecord& run : runs) {
            run = *store->read([&run](const ReadTxn& txn) { return txn.run(run.no); });
            asio::co_spawn(io, step_for_ever(*store, run, &left), asio::detached);
        }
        io.restart();
        io.run();
    }
    state.SetItemsProcessed(state.iterations() * batch);
    state.counters["steps_per_commit"] =
        static_cast<double>(state.iterations() * batch) / static_cast<double>(store->commits());
    state.counters["bytes_per_step"] =
        static_cast<double>(store->used_bytes()) / static_cast<double>(state.iterations() * batch);
}
BENCHMARK(BM_DurableStep)->Arg(1)->Arg(64)->UseRealTime();

void BM_Snapshot(benchmark::State& state) {
    BenchStore store(false);
    for (auto _ : state) {
        benchmark::DoNotOptimize(store->read([](const ReadTxn& txn) {
            return txn.thread(1).has_value();
        }));
    }
}
BENCHMARK(BM_Snapshot);

// The newest events of a long log, as a live follower reads them.
void BM_FollowEvents(benchmark::State& state) {
    BenchStore store(false);
    EventId cursor;
    must(store->write_blocking([&cursor](WriteTxn& txn) -> Result<void> {
        for (int i = 0; i < 100'000; ++i) {
            EventRecord event;
            event.run = 1;
            event.payload.assign(200, 'e');
            txn.add_event(event);
            cursor = i == 99'995 ? event.id : cursor;
        }
        return {};
    }));
    for (auto _ : state) {
        benchmark::DoNotOptimize(store->read([&cursor](const ReadTxn& txn) {
            return txn.events(1, cursor, 200);
        }));
    }
}
BENCHMARK(BM_FollowEvents);

// A whole log from its start, in pages.
void BM_ReplayEvents(benchmark::State& state) {
    BenchStore store(false);
    constexpr int kEvents = 10'000;
    must(store->write_blocking([](WriteTxn& txn) -> Result<void> {
        for (int i = 0; i < kEvents; ++i) {
            EventRecord event;
            event.run = 1;
            event.payload.assign(200, 'e');
            txn.add_event(event);
        }
        return {};
    }));
    for (auto _ : state) {
        std::vector<EventRecord> page;
        for (EventId after;;) {
            page = store->read([&after](const ReadTxn& txn) { return txn.events(1, after, 200); });
            if (page.empty()) {
                break;
            }
            after = page.back().id;
        }
    }
    state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(BM_ReplayEvents)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ars::store

BENCHMARK_MAIN();
