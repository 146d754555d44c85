// Bounds the memory of a scope where no cgroup does: the init looks at its commands now and then
// and names the one to kill. A look counts what is private or shared memory of each process, from
// /proc/<pid>/status; only when that is too much it asks for proportional shares, which are exact
// and slow. What a command takes between two looks is not prevented. Not seen: memory files and
// pipes that nobody has mapped. /tmp and /dev/shm have bounds of their own.
#pragma once

#include "sandbox/freezer.hpp"
#include "sandbox/keeper.hpp"

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>

namespace ars::sandbox {

class MemoryWatch {
  public:
    // 0 bytes = no limit.
    explicit MemoryWatch(std::uint64_t limit) : limit_kib_(limit / 1024) {}

    // Looks come closer while memory grows fast, and soon after this.
    void command_started();
    // Milliseconds until the next look is due, -1 when there is nothing to look at.
    [[nodiscard]] int wait_ms(const std::list<KeeperSlot>& slots) const;

    struct Excess {
        KeeperSlot* largest = nullptr;
        std::uint32_t command_kib = 0;
        std::uint32_t scope_kib = 0;
    };
    // The command that uses most, when all together use too much. `proc` is a descriptor of /proc.
    [[nodiscard]] std::optional<Excess> look(
        std::list<KeeperSlot>& slots, int proc, Freezer& freezer
    );

  private:
    using Clock = std::chrono::steady_clock;

    std::uint64_t limit_kib_;
    std::uint64_t last_kib_ = 0;
    std::chrono::milliseconds pause_{0};
    Clock::time_point next_;
};

}  // namespace ars::sandbox
