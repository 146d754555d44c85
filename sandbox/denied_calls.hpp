// Names the system calls that the filter refuses. The kernel holds a caller until the init, which
// keeps the filter's listener, has seen the call and answered EPERM. A call is never let through
// and no memory of a tool is read. Whoever holds the listener must not make a refused call: nobody
// would answer it.
#pragma once

#include "base/fd.hpp"
#include "sandbox/keeper.hpp"

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace ars::sandbox {

class DeniedCalls {
  public:
    // `listener` may be absent: then nothing ever waits.
    explicit DeniedCalls(base::Fd listener) : listener_(std::move(listener)) {}
    [[nodiscard]] int fd() const { return listener_.get(); }

    struct Waiting {
        std::uint64_t token = 0;  // the kernel's name for it
        pid_t thread = 0;
        DeniedCall call;
    };
    // The next call that waits for its answer, if any; never blocks.
    [[nodiscard]] std::optional<Waiting> next() const;
    void refuse(const Waiting& waiting) const;

    // The command that `thread` belongs to; null when nobody can tell. Ask before the answer: the
    // caller may end right after it.
    [[nodiscard]] static KeeperSlot* command_of(
        pid_t thread, std::list<KeeperSlot>& slots, int proc
    );
    // True once per command (null: all that belong to none) and call, for a bounded number of
    // calls.
    [[nodiscard]] bool first_time(KeeperSlot* slot, DeniedCall call);

  private:
    base::Fd listener_;
    std::vector<DeniedCall> unattributed_;
};

}  // namespace ars::sandbox
