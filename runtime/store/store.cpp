#include "runtime/store/store.hpp"

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "runtime/store/directory.hpp"
#include "runtime/store/lmdb_env.hpp"
#include "runtime/store/readers.hpp"
#include "runtime/store/soundness.hpp"
#include "runtime/store/tables.hpp"
#include "runtime/store/writer.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <future>
#include <utility>

namespace ars::store {

namespace asio = base::asio;
namespace limits = base::limits;

// In the order of destruction from the bottom: the writer ends first, the directory is given free
// last.
struct Store::Impl {
    Impl(
        base::Fd owner,
        Environment opened,
        const Tables& names,
        const base::Log& log,
        const std::string& directory
    )
        : lock(std::move(owner)),
          env(std::move(opened)),
          tables(names),
          readers(env),
          writer(env, tables, log, directory) {}

    base::Fd lock;
    Environment env;
    Tables tables;
    Readers readers;
    Writer writer;
};

namespace {

// The tables of an environment whose data file may have lost its end.
base::Result<Tables> open_sound_tables(const std::string& directory, const Environment& env) {
    const auto extended = extend_data_file(directory, env.used_bytes());
    if (!extended) {
        return std::unexpected(extended.error());
    }
    const auto damaged = [&directory](const char* what) {
        return base::fail(
            base::ErrorKind::io,
            "store_damaged",
            "the data file in " + directory + what +
                ": restore data_dir from a backup, or use another one"
        );
    };
    if (!has_sound_roots(env)) {
        return damaged(*extended ? " lost its end" : " is damaged");
    }
    auto tables = open_tables(env);
    if (*extended && (!tables || !is_sound(env, *tables))) {
        return damaged(" lost its end");
    }
    return tables;
}

}  // namespace

Store::Store() = default;
Store::~Store() = default;

base::Result<std::unique_ptr<Store>> Store::open(
    const StoreOptions& options, const base::Log& log
) {
    auto lock = take_directory(options.directory);
    if (!lock) {
        return std::unexpected(lock.error());
    }
    if (auto reserved = reserve_reader_table(options.directory, limits::kStoreReaders); !reserved) {
        return std::unexpected(reserved.error());
    }
    auto env = Environment::open({
        .directory = options.directory,
        .max_size = options.max_size,
        .tables = kTableCount,
        .readers = limits::kStoreReaders,
        .sync = options.sync,
    });
    if (!env) {
        return std::unexpected(env.error());
    }
    close_on_exec(options.directory);
    int stale = 0;
    mdb_reader_check(env->get(), &stale);
    auto tables = open_sound_tables(options.directory, *env);
    if (!tables) {
        return std::unexpected(tables.error());
    }
    if (auto synced = sync_directory(options.directory); options.sync && !synced) {
        return std::unexpected(synced.error());
    }
    tables->keeps_outbox = options.outbox;
    auto store = std::unique_ptr<Store>(new Store());
    store->impl_ =
        std::make_unique<Impl>(*std::move(lock), *std::move(env), *tables, log, options.directory);
    log.info(
        "store_opened",
        {{"directory", options.directory},
         {"bytes", store->used_bytes()},
         {"schema", kSchemaVersion},
         {"stale_readers", stale}}
    );
    return store;
}

base::Task<base::Result<void>> Store::submit(std::function<base::Result<void>(WriteTxn&)> closure) {
    auto initiate = [this](auto handler, std::function<base::Result<void>(WriteTxn&)> job) {
        auto guard = asio::make_work_guard(asio::get_associated_executor(handler));
        auto done = [handler = std::move(handler),
                     guard = std::move(guard)](base::Result<void> result) mutable {
            auto executor = guard.get_executor();
            auto resume = [handler = std::move(handler), result = std::move(result)]() mutable {
                std::move(handler)(std::move(result));
            };
            asio::post(executor, std::move(resume));
        };
        impl_->writer.submit(std::move(job), std::move(done));
    };
    co_return co_await asio::
        async_initiate<const asio::use_awaitable_t<>, void(base::Result<void>)>(
            std::move(initiate), asio::use_awaitable, std::move(closure)
        );
}

base::Result<void> Store::write_blocking(std::function<base::Result<void>(WriteTxn&)> change) {
    // Shared, because the caller may be gone while set_value is still on its way out.
    auto promise = std::make_shared<std::promise<base::Result<void>>>();
    auto future = promise->get_future();
    impl_->writer.submit(std::move(change), [promise](base::Result<void> result) {
        promise->set_value(std::move(result));
    });
    return future.get();
}

std::uint64_t Store::commits() const { return impl_->writer.commits(); }
std::size_t Store::used_bytes() const { return impl_->env.used_bytes(); }

Store::Snapshot::Snapshot(const Store& store)
    : store_(store), txn_(store.impl_->readers.acquire().release(), store.impl_->tables) {}

Store::Snapshot::~Snapshot() {
    store_.impl_->readers.release(Transaction::adopt(static_cast<MDB_txn*>(txn_.txn_)));
}

}  // namespace ars::store
