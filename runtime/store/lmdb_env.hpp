// Ownership of LMDB's handles, and its return codes as errors. The only header that shows lmdb.h to
// the rest of store/; nothing outside store/ includes it.
//
// Inside a transaction failure is an exception (Failure): a put deep in a closure can't go on, and
// the writer turns it into an Error value at the edge.
#pragma once

#include "base/result.hpp"

#include <lmdb.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace ars::store {

class Failure : public std::runtime_error {
  public:
    Failure(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
    [[nodiscard]] int code() const { return code_; }  // MDB_* or errno

  private:
    int code_;
};

// Throws Failure unless `code` is MDB_SUCCESS.
void check(int code, const char* what);

// Codes: "store_full" (map), "disk_full" (disk or quota), "disk_failed" (EIO), else "store_failed".
[[nodiscard]] base::Error to_error(int code, std::string_view what);

[[nodiscard]] inline std::string_view to_view(const MDB_val& value) {
    return {static_cast<const char*>(value.mv_data), value.mv_size};
}
[[nodiscard]] inline MDB_val to_value(std::string_view bytes) {
    // LMDB never writes through a value that it is given, but its struct isn't const.
    return {bytes.size(), const_cast<char*>(bytes.data())};
}

struct EnvironmentOptions {
    std::string directory;
    std::size_t max_size = 0;
    unsigned tables = 0;
    unsigned readers = 0;
    bool sync = true;
    bool read_only = false;  // beside the process that owns it; max_size is then the owner's
};

class Environment {
  public:
    // Transactions are not bound to threads (MDB_NOTLS). The caller makes sure that the directory
    // is open once.
    [[nodiscard]] static base::Result<Environment> open(const EnvironmentOptions& options);
    [[nodiscard]] MDB_env* get() const { return env_.get(); }
    // Bytes of the map that are in use, free pages included.
    [[nodiscard]] std::size_t used_bytes() const;

  private:
    struct Closer {
        void operator()(MDB_env* env) const { mdb_env_close(env); }
    };
    std::unique_ptr<MDB_env, Closer> env_;
};

// Aborts in its destructor unless committed.
class Transaction {
  public:
    // `parent` makes it nested: its changes join the parent's at commit.
    [[nodiscard]] static Transaction write(const Environment& env, MDB_txn* parent = nullptr);
    [[nodiscard]] static Transaction read(const Environment& env);

    Transaction(Transaction&& other) noexcept : txn_(std::exchange(other.txn_, nullptr)) {}
    Transaction& operator=(Transaction&& other) noexcept {
        std::swap(txn_, other.txn_);
        return *this;
    }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction() { abort(); }

    // For owners that can't show lmdb.h in their header.
    [[nodiscard]] static Transaction adopt(MDB_txn* txn) { return Transaction(txn); }
    [[nodiscard]] MDB_txn* release() noexcept { return std::exchange(txn_, nullptr); }

    [[nodiscard]] MDB_txn* get() const { return txn_; }
    void abort() noexcept {
        if (txn_ != nullptr) {
            mdb_txn_abort(std::exchange(txn_, nullptr));
        }
    }
    // Returns LMDB's code. The transaction is gone in every case.
    [[nodiscard]] int commit() { return mdb_txn_commit(std::exchange(txn_, nullptr)); }

  private:
    explicit Transaction(MDB_txn* txn) : txn_(txn) {}
    MDB_txn* txn_;
};

// A position in one table. Views that it gives hold until the next change in the transaction.
class Cursor {
  public:
    Cursor(MDB_txn* txn, MDB_dbi table) {
        check(mdb_cursor_open(txn, table, &cursor_), "open cursor");
    }
    ~Cursor() { mdb_cursor_close(cursor_); }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    // False at the end of the table.
    bool first() { return move({}, MDB_FIRST); }
    bool last() { return move({}, MDB_LAST); }
    bool next() { return move({}, MDB_NEXT); }
    bool previous() { return move({}, MDB_PREV); }
    bool at_or_after(std::string_view key) { return move(key, MDB_SET_RANGE); }
    bool before(std::string_view key) { return at_or_after(key) ? previous() : last(); }

    [[nodiscard]] std::string_view key() const { return to_view(key_); }
    [[nodiscard]] std::string_view value() const { return to_view(value_); }
    [[nodiscard]] MDB_cursor* get() const { return cursor_; }

  private:
    bool move(std::string_view key, MDB_cursor_op operation);
    MDB_cursor* cursor_ = nullptr;
    MDB_val key_{};
    MDB_val value_{};
};

[[nodiscard]] std::optional<std::string_view> get(
    MDB_txn* txn, MDB_dbi table, std::string_view key
);
void put(MDB_txn* txn, MDB_dbi table, std::string_view key, std::string_view value);
// False when there is an entry with this key already, which stays.
[[nodiscard]] bool put_new(
    MDB_txn* txn, MDB_dbi table, std::string_view key, std::string_view value
);
void erase(MDB_txn* txn, MDB_dbi table, std::string_view key);  // a missing key is fine

}  // namespace ars::store
