// Copies of a store, refused where they would cost something. LMDB allows one open of a directory
// per process, so the copy beside a serving one is tests/integration/backup_test.
#include "runtime/store/backup.hpp"

#include "base/fd.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace ars::store {
namespace {

class Backup : public StoreTest {
  protected:
    // Closes the store: its copy in `copies_`.
    void back_up_closed() {
        store_.reset();
        const auto bytes = back_up(directory(), copies());
        ASSERT_TRUE(bytes) << bytes.error().message;
        EXPECT_GT(*bytes, 0U);
    }
    base::Result<std::size_t> restored() {
        return restore(copies(), restored_.path() + "/store", 256 * base::limits::kMiB);
    }
    [[nodiscard]] std::string copies() const { return copies_.path() + "/store"; }
    [[nodiscard]] static bool is_there(const std::string& path) {
        struct stat info{};
        return ::lstat(path.c_str(), &info) == 0;
    }

    void SetUp() override {
        StoreTest::SetUp();
        ASSERT_EQ(::mkdir(copies().c_str(), 0700), 0);
    }
    TempDirectory copies_;
    TempDirectory restored_;
};

TEST_F(Backup, WhatWasCommittedIsInTheRestoredStore) {
    const ThreadRecord thread = new_thread();
    const RunRecord run = new_run(thread);
    back_up_closed();
    const auto bytes = restored();
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_FALSE(is_there(restored_.path() + "/store/restoring"));
    auto opened = Store::open(
        {.directory = restored_.path() + "/store", .max_size = 256 * base::limits::kMiB},
        quiet_log()
    );
    ASSERT_TRUE(opened) << opened.error().message;
    (*opened)->read([&](const ReadTxn& txn) {
        ASSERT_TRUE(txn.run_by_id(run.id));
        EXPECT_EQ(txn.run_by_id(run.id)->no, run.no);
        EXPECT_EQ(txn.open_runs().size(), 1U);
    });
}

TEST_F(Backup, ACopyIsNeverWrittenOverAnotherOne) {
    back_up_closed();
    const auto again = back_up(directory(), copies());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, "backup_exists");
}

TEST_F(Backup, WithoutAStoreThereIsNothingToCopy) {
    const auto made = back_up(restored_.path(), copies());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "no_store");
    EXPECT_FALSE(is_there(copies() + "/data.mdb"));
}

TEST_F(Backup, AStoreIsNeverReplaced) {
    const ThreadRecord thread = new_thread();
    back_up_closed();
    const auto over = restore(copies(), directory(), 256 * base::limits::kMiB);
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, "store_exists");
    open();
    EXPECT_TRUE(store_->read([&](const ReadTxn& txn) { return txn.thread(thread.no); }));
}

TEST_F(Backup, AnOpenStoreIsLeftAlone) {
    back_up_closed();
    open();
    const auto over = restore(copies(), directory(), 256 * base::limits::kMiB);
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, "store_in_use");
}

TEST_F(Backup, ADamagedCopyMakesNoStore) {
    for (int i = 0; i < 200; ++i) {
        const ThreadRecord thread = new_thread("user" + std::to_string(i));
    }
    back_up_closed();
    struct stat info{};
    ASSERT_EQ(::stat((copies() + "/data.mdb").c_str(), &info), 0);
    ASSERT_EQ(::truncate((copies() + "/data.mdb").c_str(), info.st_size / 2), 0);
    const auto made = restored();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "store_damaged");
    EXPECT_FALSE(is_there(restored_.path() + "/store/data.mdb"));
    EXPECT_FALSE(is_there(restored_.path() + "/store/restoring"));
}

TEST_F(Backup, AFileThatIsNoStoreMakesNone) {
    const auto file = base::open_file(copies() + "/data.mdb", O_WRONLY | O_CREAT, 0600);
    ASSERT_TRUE(file);
    ASSERT_TRUE(base::write_all(file->get(), std::string(20000, 'x')));
    const auto made = restored();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "store_damaged");
    EXPECT_FALSE(is_there(restored_.path() + "/store/data.mdb"));
}

TEST_F(Backup, ACopyThatWasKilledHalfwayIsNoBackupAndInNobodysWay) {
    const auto part = base::open_file(copies() + "/data.mdb.part", O_WRONLY | O_CREAT, 0600);
    ASSERT_TRUE(part);
    EXPECT_EQ(restored().error().code, "no_backup");
    back_up_closed();
    EXPECT_FALSE(is_there(copies() + "/data.mdb.part"));
    EXPECT_TRUE(restored());
}

}  // namespace
}  // namespace ars::store
