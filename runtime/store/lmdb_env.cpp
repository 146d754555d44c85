#include "runtime/store/lmdb_env.hpp"

#include <cerrno>

namespace ars::store {

void check(int code, const char* what) {
    if (code != MDB_SUCCESS) {
        throw Failure(code, std::string(what) + ": " + mdb_strerror(code));
    }
}

base::Error to_error(int code, std::string_view what) {
    using base::ErrorKind;
    const std::string text(what);
    const int sys_errno = code > 0 ? code : 0;
    switch (code) {
        case MDB_MAP_FULL:
            return {
                ErrorKind::unavailable,
                "store_full",
                "the store has reached store.max_size and nothing was written; raise it and "
                "restart (" +
                    text + ")"
            };
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
            return {
                ErrorKind::unavailable,
                "disk_full",
                "no room left on the disk of data_dir and nothing was written; free some (" + text +
                    ")",
                sys_errno
            };
        case EIO:
            // Nothing that is on disk points at what such a commit wrote: the next one may succeed.
            return {
                ErrorKind::unavailable,
                "disk_failed",
                "the disk of data_dir failed and nothing was written; look for its errors in the "
                "kernel's log (" +
                    text + ")",
                sys_errno
            };
        default:
            return {ErrorKind::io, "store_failed", "the store failed: " + text, sys_errno};
    }
}

base::Result<Environment> Environment::open(const EnvironmentOptions& options) {
    const auto failed = [&](int code, const char* step) {
        const std::string what =
            std::string(step) + " in " + options.directory + ": " + mdb_strerror(code);
        if (code == MDB_INVALID || code == MDB_VERSION_MISMATCH || code == MDB_CORRUPTED) {
            return base::fail(
                base::ErrorKind::io,
                "store_damaged",
                "the data file is not a readable store (" + what +
                    "): restore data_dir from a backup, or use another one"
            );
        }
        return std::unexpected(to_error(code, what));
    };
    MDB_env* raw = nullptr;
    if (const int code = mdb_env_create(&raw); code != MDB_SUCCESS) {
        return failed(code, "mdb_env_create");
    }
    Environment environment;
    environment.env_.reset(raw);
    if (const int code =
            options.read_only ? MDB_SUCCESS : mdb_env_set_mapsize(raw, options.max_size);
        code != MDB_SUCCESS) {
        return failed(code, "mdb_env_set_mapsize (store.max_size)");
    }
    mdb_env_set_maxdbs(raw, options.tables);
    mdb_env_set_maxreaders(raw, options.readers);
    // Look-ups are scattered, so read-ahead would only fill the page cache.
    const unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (options.sync ? 0U : MDB_NOSYNC) |
                           (options.read_only ? MDB_RDONLY : 0U);
    if (const int code = mdb_env_open(raw, options.directory.c_str(), flags, 0600);
        code != MDB_SUCCESS) {
        return failed(code, "mdb_env_open");
    }
    return environment;
}

std::size_t Environment::used_bytes() const {
    MDB_envinfo info{};
    MDB_stat stat{};
    check(mdb_env_info(env_.get(), &info), "mdb_env_info");
    check(mdb_env_stat(env_.get(), &stat), "mdb_env_stat");
    return (info.me_last_pgno + 1) * stat.ms_psize;
}

Transaction Transaction::write(const Environment& env, MDB_txn* parent) {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env.get(), parent, 0, &txn), "begin transaction");
    return Transaction(txn);
}

Transaction Transaction::read(const Environment& env) {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env.get(), nullptr, MDB_RDONLY, &txn), "begin read");
    return Transaction(txn);
}

bool Cursor::move(std::string_view key, MDB_cursor_op operation) {
    key_ = to_value(key);
    const int code = mdb_cursor_get(cursor_, &key_, &value_, operation);
    if (code == MDB_NOTFOUND) {
        return false;
    }
    check(code, "read");
    return true;
}

std::optional<std::string_view> get(MDB_txn* txn, MDB_dbi table, std::string_view key) {
    MDB_val key_value = to_value(key);
    MDB_val value{};
    const int code = mdb_get(txn, table, &key_value, &value);
    if (code == MDB_NOTFOUND) {
        return std::nullopt;
    }
    check(code, "read");
    return to_view(value);
}

void put(MDB_txn* txn, MDB_dbi table, std::string_view key, std::string_view value) {
    MDB_val key_value = to_value(key);
    MDB_val data = to_value(value);
    check(mdb_put(txn, table, &key_value, &data, 0), "write");
}

bool put_new(MDB_txn* txn, MDB_dbi table, std::string_view key, std::string_view value) {
    MDB_val key_value = to_value(key);
    MDB_val data = to_value(value);
    const int code = mdb_put(txn, table, &key_value, &data, MDB_NOOVERWRITE);
    if (code == MDB_KEYEXIST) {
        return false;
    }
    check(code, "write");
    return true;
}

void erase(MDB_txn* txn, MDB_dbi table, std::string_view key) {
    MDB_val key_value = to_value(key);
    const int code = mdb_del(txn, table, &key_value, nullptr);
    if (code != MDB_NOTFOUND) {
        check(code, "erase");
    }
}

}  // namespace ars::store
