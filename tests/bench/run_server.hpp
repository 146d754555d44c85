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
    // Not started yet. The data is below `place`.
    BenchServer(const std::string& place, int model_port);
    [[nodiscard]] std::string data_dir() const { return data_.path() + "/data"; }

    [[nodiscard]] int port() const { return server_.port(); }
    [[nodiscard]] Usage usage() const;
    [[nodiscard]] Memory memory() const;
    // Bytes it gave to write calls since it started, sockets apart.
    [[nodiscard]] double written_bytes() const;
    [[nodiscard]] double store_bytes() const;  // of the data file, on disk
    void wait_until_idle() const;              // no run under way; throws after a minute
    void kill() { server_.kill(); }
    // Milliseconds from exec until it takes runs.
    double start();

  private:
    tests::TempDir data_;
    mutable tests::Server server_;
};

}  // namespace ars::bench
