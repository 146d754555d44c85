// Empty networks for scopes. Making one costs the kernel more than all other namespaces together,
// so a network whose scope is gone serves the next one, once nothing of the old scope is left in
// it.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

namespace ars::sandbox {

class NetworkStock {
  public:
    // `proc` is a procfs that shows this process; it must outlive the stock.
    explicit NetworkStock(const base::Fd& proc) : proc_(proc) {}
    // The first network takes the kernel as long as the rest of a template: made beside it.
    void begin_first();
    // Moves this process into it.
    [[nodiscard]] base::Result<void> finish_first();
    // A network for scope `id`: a kept one, or a new one.
    [[nodiscard]] base::Result<base::Fd> take(std::uint64_t id);
    // Nothing of scope `id` runs any more. A network in which the kernel still ends connections is
    // let go.
    void give_back(std::uint64_t id);
    // In a scope's own process: closes all.
    void forget();

  private:
    // Moves this thread into a new network with loopback up, and keeps that network.
    [[nodiscard]] base::Result<void> make();
    struct Network {
        base::Fd space;     // its namespace
        base::Fd sockstat;  // its socket counters, read anew each time
    };
    static constexpr std::size_t kKept = 16;  // idle ones cost 200 KiB of kernel memory each
    [[nodiscard]] static bool is_quiet(const Network& network);

    const base::Fd& proc_;
    std::thread beside_;
    base::Result<void> made_beside_;
    std::vector<Network> idle_;
    std::map<std::uint64_t, Network> used_;
};

}  // namespace ars::sandbox
