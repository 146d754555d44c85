#include "runtime/store/readers.hpp"

namespace ars::store {

namespace {

constexpr std::size_t kIdleReaders = 16;  // more than threads that read

}  // namespace

Transaction Readers::acquire() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            Transaction txn = std::move(idle_.back());
            idle_.pop_back();
            check(mdb_txn_renew(txn.get()), "renew read");
            return txn;
        }
    }
    return Transaction::read(env_);
}

void Readers::release(Transaction txn) noexcept {
    mdb_txn_reset(txn.get());
    const std::lock_guard lock(mutex_);
    if (idle_.capacity() == 0) {
        idle_.reserve(kIdleReaders);
    }
    if (idle_.size() < kIdleReaders) {
        idle_.push_back(std::move(txn));
    }
}

}  // namespace ars::store
