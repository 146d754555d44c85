// Empty networks for scopes. Making one costs the kernel more than all other namespaces together,
// so a network whose scope is gone serves the next one, once nothing of the old scope is left in
// it.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ars::sandbox {

class NetworkStock {
  public:
    // `proc` is a procfs that shows this process; it must outlive the stock.
    explicit NetworkStock(const base::Fd& proc) : proc_(proc) {}
    // Moves this process into a new network with loopback up, and keeps that network.
    [[nodiscard]] base::Result<void> make();
    // A network for scope `id`: a kept one, or a new one.
    [[nodiscard]] base::Result<base::Fd> take(std::uint64_t id);
    // Nothing of scope `id` runs any more. A network in which the kernel still ends connections is
    // let go.
    void give_back(std::uint64_t id);
    // In a scope's own process: closes all.
    void forget();

  private:
    struct Network {
        base::Fd space;     // its namespace
        base::Fd sockstat;  // its socket counters, read anew each time
    };
    static constexpr std::size_t kKept = 16;  // idle ones cost 200 KiB of kernel memory each
    [[nodiscard]] static bool is_quiet(const Network& network);

    const base::Fd& proc_;
    std::vector<Network> idle_;
    std::map<std::uint64_t, Network> used_;
};

}  // namespace ars::sandbox
