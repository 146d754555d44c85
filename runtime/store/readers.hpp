// Read transactions kept for the next reader: renewing one is several times cheaper than beginning
// one, and the number of reader slots in use stays that of readers at the same time. A transaction
// that waits here is reset, so it pins no pages.
#pragma once

#include "runtime/store/lmdb_env.hpp"

#include <mutex>
#include <vector>

namespace ars::store {

class Readers {
  public:
    explicit Readers(const Environment& env) : env_(env) {}
    Readers(const Readers&) = delete;
    Readers& operator=(const Readers&) = delete;

    // A snapshot of now. Any thread. Throws Failure when all reader slots are taken.
    [[nodiscard]] Transaction acquire();
    void release(Transaction txn) noexcept;

  private:
    const Environment& env_;
    std::mutex mutex_;
    std::vector<Transaction> idle_;
};

}  // namespace ars::store
