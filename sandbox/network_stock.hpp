// Empty networks for scopes, each with an IPC namespace. Making one costs the kernel more than all
// other namespaces together, so a network whose scope is gone serves the next one, once nothing of
// the old scope is left in it.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace ars::sandbox {

// What a scope enters, by descriptors of namespaces.
struct Spaces {
    base::Fd network;
    base::Fd ipc;
};

class NetworkStock {
  public:
    // `proc` is a procfs that shows this process; it must outlive the stock.
    explicit NetworkStock(const base::Fd& proc) : proc_(proc) {}
    // The first network takes the kernel as long as the rest of a template: made beside it.
    void begin_first();
    // Moves this process into it.
    [[nodiscard]] base::Result<void> finish_first();
    // For scope `id`: kept ones, or new ones.
    [[nodiscard]] base::Result<Spaces> take(std::uint64_t id);
    // Nothing of scope `id` runs any more. A network in which the kernel still ends connections is
    // let go.
    void give_back(std::uint64_t id);
    // In a scope's own process: closes all.
    void forget();

  private:
    // Moves this thread into a new network with loopback up, and keeps that network.
    [[nodiscard]] base::Result<void> make();
    struct Network {
        Spaces spaces;
        base::Fd sockstat;  // its socket counters, read anew each time
        base::Fd queues;    // see has_named_queues()
    };
    static constexpr std::size_t kKept = 16;  // idle ones cost 200 KiB of kernel memory each
    [[nodiscard]] bool is_quiet(Network& network);
    [[nodiscard]] bool has_objects(Network& network);
    [[nodiscard]] base::Result<void> leave_ipc();

    const base::Fd& proc_;
    base::Fd own_ipc_;  // this process's, once it has been elsewhere
    std::thread beside_;
    base::Result<void> made_beside_;
    std::vector<Network> idle_;
    std::map<std::uint64_t, Network> used_;
};

}  // namespace ars::sandbox
