// The real `ars serve` for a benchmark: its data in a directory of its own, its model a FastModel,
// and what the kernel counts of it.
#pragma once

#include "tests/support/process.hpp"
#include "tests/support/server.hpp"

#include <cstdint>
#include <string>

namespace ars::bench {

struct Usage {
    double cpu = 0;        // seconds, all threads
    double io_cpu = 0;     // of the I/O thread
    double store_cpu = 0;  // of the thread that commits
    std::uint64_t commits = 0;
};

struct Memory {
    double resident_kib = 0;
    double private_kib = 0;  // without files
};

class BenchServer {
  public:
    // Returns when it takes runs. The data is below `place`.
    BenchServer(const std::string& place, int model_port);

    [[nodiscard]] int port() const { return server_.port(); }
    [[nodiscard]] Usage usage() const;
    [[nodiscard]] Memory memory() const;
    void wait_until_idle() const;  // no run under way; throws after a minute
    tests::Server& server() { return server_; }

  private:
    tests::TempDir data_;
    mutable tests::Server server_;
};

}  // namespace ars::bench
