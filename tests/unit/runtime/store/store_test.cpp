#include "runtime/store/store.hpp"

#include "base/fd.hpp"
#include "runtime/store/directory.hpp"
#include "runtime/store/tables.hpp"
#include "tests/unit/runtime/store/child_process.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

#include <set>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

namespace ars::store {
namespace {

namespace limits = base::limits;

class Opening : public StoreTest {
  protected:
    // The error that opening gives; fails the test when it succeeds.
    base::Error refusal() {
        const auto opened = try_open();
        EXPECT_FALSE(opened);
        return opened ? base::Error{} : opened.error();
    }
    [[nodiscard]] Environment environment() const {
        return *Environment::open({directory(), 256 * limits::kMiB, kTableCount, 10, false});
    }
    // While nobody has the store open.
    void set_schema(std::uint32_t version) {
        const Environment env = environment();
        const auto tables = open_tables(env);
        ASSERT_TRUE(tables);
        Transaction txn = Transaction::write(env);
        put(txn.get(), tables->meta, "schema", std::string("\0\0\0", 3) + static_cast<char>(version)
        );
        ASSERT_EQ(txn.commit(), MDB_SUCCESS);
    }
    std::uint32_t schema() {
        const Environment env = environment();
        MDB_dbi meta = 0;
        const Transaction txn = Transaction::read(env);
        check(mdb_dbi_open(txn.get(), "meta", 0, &meta), "open table meta");
        return u32_at(*get(txn.get(), meta, "schema"), 0);
    }
    [[nodiscard]] std::string data_file() const { return directory() + "/data.mdb"; }
};

TEST_F(Opening, TheDirectoryIsMadeForItsOwnerOnly) {
    struct stat info{};
    ASSERT_EQ(::stat(directory().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U);
    ASSERT_EQ(::stat(data_file().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600U);
}

TEST_F(Opening, EveryDescriptorIsCloseOnExec) {
    for (int fd = 3; fd < 100; ++fd) {
        const int flags = ::fcntl(fd, F_GETFD);
        char target[512] = {};
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        if (flags >= 0 && ::readlink(link.c_str(), target, sizeof target - 1) > 0 &&
            std::string(target).find(directory()) != std::string::npos) {
            EXPECT_TRUE((flags & FD_CLOEXEC) != 0) << target;
        }
    }
}

TEST_F(Opening, MissingParentsAreMade) {
    const auto fd = take_directory(directory() + "/a/b");
    ASSERT_TRUE(fd) << fd.error().message;
    ::unlink((directory() + "/a/b/owner.lock").c_str());
    ::rmdir((directory() + "/a/b").c_str());
    ::rmdir((directory() + "/a").c_str());
}

TEST_F(Opening, APathThroughADescriptorWorks) {
    new_thread();
    store_.reset();
    const auto fd = base::open_file(directory(), O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(fd);
    const auto opened = Store::open(
        {.directory = "/proc/self/fd/" + std::to_string(fd->get()), .max_size = limits::kMiB},
        quiet_log()
    );
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE((*opened)->read([](const ReadTxn& txn) { return txn.thread(1); }));
}

TEST_F(Opening, ASecondOpenIsRefusedAndNamesTheOwner) {
    const base::Error error = refusal();
    EXPECT_EQ(error.code, "store_in_use");
    EXPECT_NE(error.message.find(std::to_string(::getpid())), std::string::npos);
    EXPECT_NE(error.message.find(directory()), std::string::npos);
    new_thread();  // the first one still works
}

TEST_F(Opening, ASecondProcessIsRefused) {
    ChildProcess child("write", directory());
    EXPECT_EQ(child.read_line(), "store_in_use");
    EXPECT_EQ(child.wait(), 2);
}

TEST_F(Opening, AStoreOfANewerProgramIsRefusedAndLeftAlone) {
    new_thread();
    store_.reset();
    set_schema(kSchemaVersion + 1);
    const base::Error error = refusal();
    EXPECT_EQ(error.code, "store_newer");
    EXPECT_NE(
        error.message.find("schema " + std::to_string(kSchemaVersion + 1)), std::string::npos
    );
    EXPECT_EQ(refusal().code, "store_newer") << "a refused open gives the directory free";
}

TEST_F(Opening, AStoreOfAnOlderProgramIsOpenedAndBecomesThisOnes) {
    const ThreadRecord thread = new_thread();
    store_.reset();
    set_schema(kSchemaVersion - 1);
    open();
    EXPECT_TRUE(store_->read([&](const ReadTxn& txn) { return txn.thread(thread.no); }));
    store_.reset();
    EXPECT_EQ(schema(), kSchemaVersion);
}

TEST_F(Opening, AFileThatIsNoStoreIsRefusedWithARemedy) {
    store_.reset();
    const auto file = base::open_file(data_file(), O_WRONLY | O_TRUNC);
    ASSERT_TRUE(file);
    ASSERT_TRUE(base::write_all(file->get(), std::string(20000, 'x')));
    const base::Error error = refusal();
    EXPECT_EQ(error.code, "store_damaged");
    EXPECT_NE(error.message.find("backup"), std::string::npos);
}

TEST_F(Opening, AFileThatLostItsEndIsRefusedAndKillsNobody) {
    for (int i = 0; i < 200; ++i) {
        write([](WriteTxn& txn) {
            MessageRecord message;
            message.thread = 1;
            message.content.assign(5000, 'x');
            txn.add_message(message);
        });
    }
    const std::size_t bytes = store_->used_bytes();
    store_.reset();
    // The last page is the end of the last message, then more and more kinds of pages are lost.
    for (const std::size_t left : {bytes - 4096, bytes - 40960, bytes / 2, bytes / 8}) {
        ASSERT_EQ(::truncate(data_file().c_str(), static_cast<off_t>(left)), 0);
        const base::Error error = refusal();
        EXPECT_EQ(error.code, "store_damaged") << left << " of " << bytes << ": " << error.message;
        EXPECT_NE(error.message.find("backup"), std::string::npos);
    }
}

TEST_F(Opening, AFileWithoutItsUnusedEndIsSound) {
    const ThreadRecord thread = new_thread();
    store_.reset();
    struct stat info{};
    bool shorter = false;
    {
        const auto env =
            Environment::open({directory(), 256 * limits::kMiB, kTableCount, 10, false});
        const auto tables = open_tables(*env);
        ASSERT_TRUE(tables);
        for (std::size_t i = 1; i < 100 && !shorter; ++i) {
            // Pages that are taken and given back in one transaction are never written.
            Transaction txn = Transaction::write(*env);
            put(txn.get(), tables->ids, "large", std::string(50'000 * i, 'x'));
            erase(txn.get(), tables->ids, "large");
            put(txn.get(), tables->ids, "small", std::to_string(i));
            ASSERT_EQ(txn.commit(), MDB_SUCCESS);
            ASSERT_EQ(::stat(data_file().c_str(), &info), 0);
            shorter = static_cast<std::size_t>(info.st_size) < env->used_bytes();
        }
    }
    ASSERT_TRUE(shorter) << "the case is not there";
    open();
    EXPECT_TRUE(store_->read([&](const ReadTxn& txn) { return txn.thread(thread.no); }));
}

TEST_F(Opening, AnUnwritableDirectoryIsAnErrorWithItsPath) {
    const auto opened = Store::open(
        {.directory = "/proc/self/no_such_place/store", .max_size = limits::kMiB}, quiet_log()
    );
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, "store_failed");
    EXPECT_NE(opened.error().message.find("/proc/self/no_such_place"), std::string::npos);
}

TEST_F(Opening, NumbersAndSequencesGoOnAfterAReopen) {
    const ThreadRecord thread = new_thread();
    const RunRecord run = new_run(thread, RunStatus::interrupted);
    MessageRecord message;
    message.thread = thread.no;
    write([&](WriteTxn& txn) { txn.add_message(message); });
    open();
    EXPECT_EQ(new_thread().no, thread.no + 1);
    EXPECT_EQ(new_run(thread).no, run.no + 1);
    const Seq before = message.seq;
    write([&](WriteTxn& txn) { txn.add_message(message); });
    EXPECT_EQ(message.seq, before + 1);
    EXPECT_EQ(store_->read([](const ReadTxn& txn) { return txn.open_runs(); }).size(), 2U);
}

class Reading : public StoreTest {
  protected:
    // Nested to the given depth, so that all are open at once.
    std::size_t read_nested(std::size_t depth) {
        return store_->read([&](const ReadTxn& txn) -> std::size_t {
            const std::size_t here = txn.thread(1) ? 1 : 0;
            return here + (depth > 1 ? read_nested(depth - 1) : 0);
        });
    }
};

TEST_F(Reading, ASnapshotDoesNotSeeLaterWrites) {
    new_thread();
    store_->read([&](const ReadTxn& txn) {
        new_thread();
        EXPECT_FALSE(txn.thread(2));
        EXPECT_TRUE(store_->read([](const ReadTxn& fresh) { return fresh.thread(2); }));
        return 0;
    });
    EXPECT_TRUE(store_->read([](const ReadTxn& txn) { return txn.thread(2); }));
}

TEST_F(Reading, S63FiveHundredReadersAfterAndBesideEachOtherFindSlots) {
    new_thread();
    for (int i = 0; i < 5000; ++i) {
        ASSERT_EQ(read_nested(1), 1U);
    }
    EXPECT_EQ(read_nested(500), 500U);
    EXPECT_EQ(read_nested(500), 500U);
    std::vector<std::jthread> threads;
    std::atomic<std::size_t> found = 0;
    for (int i = 0; i < 16; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 200; ++n) {
                found += read_nested(3);
            }
        });
    }
    threads.clear();
    EXPECT_EQ(found, 16U * 200U * 3U);
}

TEST_F(Reading, AReadThatThrowsGivesItsSlotBack) {
    new_thread();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_THROW(
            store_->read([](const ReadTxn&) -> int { throw std::runtime_error("x"); }),
            std::runtime_error
        );
    }
    EXPECT_EQ(read_nested(400), 400U);
}

TEST_F(Reading, S63SlotsOfKilledProcessesPinNothing) {
    new_thread();
    store_.reset();
    for (int i = 0; i < 3; ++i) {
        ChildProcess child("read", directory());
        ASSERT_EQ(child.read_line(), "reading");
        child.kill();
        ASSERT_EQ(child.wait(), -SIGKILL);
    }
    open();
    EXPECT_EQ(read_nested(500), 500U);
    ThreadRecord thread = *store_->read([](const ReadTxn& txn) { return txn.thread(1); });
    const std::size_t before = store_->used_bytes();
    for (int i = 0; i < 1000; ++i) {
        thread.title = std::to_string(i);
        write([&](WriteTxn& txn) { txn.put_thread(thread); });
    }
    // A pinned page set would add several pages with each commit.
    EXPECT_LT(store_->used_bytes() - before, 256 * limits::kKiB);
}

TEST_F(Reading, S64ReadsBetweenWritesKeepTheFileSmall) {
    ThreadRecord thread = new_thread();
    const std::size_t before = store_->used_bytes();
    for (int i = 0; i < 10'000; ++i) {
        thread.title = std::to_string(i);
        write([&](WriteTxn& txn) { txn.put_thread(thread); });
        if (i % 10 == 0) {
            ASSERT_EQ(read_nested(2), 2U);
        }
    }
    EXPECT_LT(store_->used_bytes() - before, 256 * limits::kKiB);
}

class Growth : public StoreTest {
  protected:
    // What a run of one tool call leaves behind.
    void turn(const ThreadRecord& thread) {
        RunRecord run = new_run(thread, RunStatus::running);
        for (std::uint32_t step = 0; step < 2; ++step) {
            write([&](WriteTxn& txn) {
                MessageRecord message;
                message.thread = thread.no;
                message.run = run.no;
                message.content.assign(1024, 'x');
                txn.add_message(message);
                CheckpointRecord checkpoint;
                checkpoint.thread = thread.no;
                checkpoint.message_head = message.seq;
                checkpoint.state = R"({"todos":[],"artifacts":[]})";
                txn.add_checkpoint(checkpoint);
                txn.put_call({.run = run.no, .step = step, .done = true, .result = message.seq});
                EventRecord event;
                event.run = run.no;
                event.payload.assign(200, 'e');
                txn.add_event(event);
                run.steps = step + 1;
                txn.put_run(run);
            });
        }
        run.status = RunStatus::completed;
        write([&](WriteTxn& txn) { txn.put_run(run); });
    }
};

TEST_F(Growth, S60SizeGrowsLinearlyWithTurns) {
    const ThreadRecord thread = new_thread();
    std::size_t at_200 = 0;
    for (int i = 1; i <= 400; ++i) {
        turn(thread);
        at_200 = i == 200 ? store_->used_bytes() : at_200;
    }
    const std::size_t at_400 = store_->used_bytes();
    RecordProperty("bytes_at_400", static_cast<int>(at_400));
    EXPECT_LT(static_cast<double>(at_400) / static_cast<double>(at_200), 2.3);
    // 400 turns hold about 1.1 MB of text.
    EXPECT_LT(at_400, 4 * limits::kMiB);
}

class Durability : public StoreTest {
  protected:
    Durability() { sync_ = true; }
};

TEST_F(Durability, NoAcknowledgedWriteIsLostByKill) {
    std::set<Seq> acknowledged;
    for (int round = 0; round < 8; ++round) {
        store_.reset();
        {
            ChildProcess child("write", directory());
            std::string line;
            for (int i = 0; i < 40 + 11 * round; ++i) {
                line = child.read_line();
                ASSERT_FALSE(line.empty());
                acknowledged.insert(std::stoull(line));
            }
            child.kill();
            // What it said before it died counts too.
            while (!(line = child.read_line()).empty()) {
                acknowledged.insert(std::stoull(line));
            }
            ASSERT_EQ(child.wait(), -SIGKILL);
        }
        open();
        std::set<Seq> stored;
        std::size_t events = 0;
        for (ThreadNo thread = 1; thread <= 4; ++thread) {
            for (const auto& message :
                 store_->read([&](const ReadTxn& txn) { return txn.messages(thread); })) {
                EXPECT_EQ(message.content.size(), 300U);
                stored.insert(message.seq);
            }
            events += store_->read([&](const ReadTxn& txn) {
                return txn.events(thread, {}, SIZE_MAX).size();
            });
        }
        for (const Seq seq : acknowledged) {
            ASSERT_TRUE(stored.contains(seq)) << "round " << round;
        }
        EXPECT_EQ(events, stored.size()) << "a closure is there as a whole or not at all";
    }
}

TEST_F(Durability, AFullDiskIsACleanErrorAndTheStoreGoesOnWhenThereIsRoom) {
    store_.reset();
    ChildProcess child("fill", temp_.path());
    const std::string first = child.read_line();
    if (first == "unable") {
        GTEST_SKIP() << "no right to mount a small file system here";
    }
    EXPECT_EQ(first, "disk_full");
    EXPECT_EQ(child.read_line(), "goes on");
    EXPECT_EQ(child.read_line(), "all there");
    EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace ars::store
