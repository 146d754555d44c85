// What the tests of the store share: a directory of their own, a store in it, and records to put
// in.
#pragma once

#include "base/limits.hpp"
#include "base/log.hpp"
#include "runtime/store/store.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include <unistd.h>

namespace ars::store {

class TempDirectory {
  public:
    TempDirectory() {
        const char* base = std::getenv("TMPDIR");
        path_ = std::string(base != nullptr ? base : "/tmp") + "/ars_store_XXXXXX";
        if (::mkdtemp(path_.data()) == nullptr) {
            throw std::runtime_error("mkdtemp failed");
        }
    }
    TempDirectory(const TempDirectory&) = delete;
    TempDirectory& operator=(const TempDirectory&) = delete;
    ~TempDirectory() {
        for (const char* name : {"/data.mdb", "/lock.mdb", "/owner.lock"}) {
            ::unlink((path_ + "/store" + name).c_str());
        }
        ::rmdir((path_ + "/store").c_str());
        ::rmdir(path_.c_str());
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

inline const base::Log& quiet_log() {
    static const base::Log log(STDERR_FILENO, base::LogLevel::off);
    return log;
}

class StoreTest : public testing::Test {
  protected:
    void SetUp() override { open(); }

    // Closes what is open, and opens again.
    void open(std::size_t max_size = 256 * base::limits::kMiB) {
        store_.reset();
        auto opened = try_open(max_size);
        if (!opened) {
            throw std::runtime_error(opened.error().message);
        }
        store_ = *std::move(opened);
    }
    base::Result<std::unique_ptr<Store>> try_open(std::size_t max_size = 256 * base::limits::kMiB) {
        return Store::open(
            {.directory = directory(), .max_size = max_size, .sync = sync_}, quiet_log()
        );
    }
    [[nodiscard]] std::string directory() const { return temp_.path() + "/store"; }

    // Must succeed: a failed write fails the test.
    void write(const std::function<void(WriteTxn&)>& change) {
        const auto result = try_write(change);
        ASSERT_TRUE(result) << result.error().message;
    }
    base::Result<void> try_write(const std::function<void(WriteTxn&)>& change) {
        return store_->write_blocking([&change](WriteTxn& txn) -> base::Result<void> {
            change(txn);
            return {};
        });
    }

    ThreadRecord new_thread(const std::string& uid = "alice") {
        ThreadRecord thread;
        thread.uid = uid;
        thread.agent_slug = "researcher";
        write([&](WriteTxn& txn) { txn.put_thread(thread); });
        return thread;
    }
    RunRecord new_run(const ThreadRecord& thread, RunStatus status = RunStatus::pending) {
        RunRecord run;
        run.thread = thread.no;
        run.thread_id = thread.id;
        run.uid = thread.uid;
        run.status = status;
        write([&](WriteTxn& txn) { txn.put_run(run); });
        return run;
    }
    EventRecord add_event(RunNo run, std::int64_t created_ms, const std::string& payload = "{}") {
        EventRecord event;
        event.run = run;
        event.type = "messages";
        event.payload = payload;
        event.created_ms = created_ms;
        write([&](WriteTxn& txn) { txn.add_event(event); });
        return event;
    }

    bool sync_ = false;  // tests of durability turn it on
    TempDirectory temp_;
    std::unique_ptr<Store> store_;
};

}  // namespace ars::store
