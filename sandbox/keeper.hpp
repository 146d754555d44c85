// A keeper minds one command: it is the subreaper above everything the command starts, so it knows
// exactly when the command ended and when nothing of it is left, and says so to the server itself.
//
// It shares the init's memory (clone with CLONE_VM: no page tables to copy) on a stack of its own,
// so its code may use raw system calls only: no libc, no errno, no allocation, no locks.
#pragma once

#include "sandbox/protocol.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ars::sandbox {

// One way to use a system call.
struct DeniedCall {
    int number = 0;
    std::uint32_t argument = 0;  // the family of socket(), the request of ioctl(); mostly 0
    bool operator==(const DeniedCall&) const = default;
};

// Stacks of keepers that have ended serve the next ones: mapping and guarding them costs more than
// the rest of a command's preparation.
class StackPool {
  public:
    StackPool() = default;
    StackPool(const StackPool&) = delete;
    StackPool& operator=(const StackPool&) = delete;
    ~StackPool();

    // Guard page, child's stack, guard page, keeper's stack; null when memory is short.
    [[nodiscard]] char* take();
    void give_back(char* stacks);

  private:
    static constexpr std::size_t kKept = 8;
    std::vector<char*> idle_;
};

// One command as its init knows it. Lives in the init's memory; the keeper reads it and writes
// `reported_end`.
struct KeeperSlot {
    explicit KeeperSlot(StackPool& from) : pool(from) {}
    KeeperSlot(const KeeperSlot&) = delete;
    KeeperSlot& operator=(const KeeperSlot&) = delete;
    ~KeeperSlot();

    std::uint64_t id = 0;
    pid_t keeper = 0;
    std::atomic<bool> reported_end{false};
    bool lost = false;  // its keeper was killed: the init empties and reports in its place
    bool killing = false;
    // When set: the whole scope ends if the command is not gone by then.
    std::optional<std::chrono::steady_clock::time_point> kill_deadline;
    std::vector<DeniedCall> denied;  // reported already

    // The command, laid out for execve.
    StartText text;
    std::vector<std::string> candidates;  // paths to try, in order
    std::vector<char*> argv;              // with room in front for a shell (a script without "#!")
    std::vector<char*> environment;
    // Numbers in the keeper's own descriptor table; `in` is -1 for /dev/null.
    int in = -1;
    int out = -1;
    int err = -1;
    bool terminal = false;  // the three are one terminal, to become the controlling one

    // Written by the child between vfork and exec.
    std::atomic<pid_t> session{0};
    int exec_errno = 0;
    const char* exec_step = "";

    StackPool& pool;
    char* stacks = nullptr;
};

// Prepares `slot.text` for execve: candidates from PATH, pointer arrays. False when memory is
// short.
[[nodiscard]] bool prepare_slot(KeeperSlot& slot);

// Starts the keeper. Returns its pid, or a negative errno. `slot` must live until the keeper is
// reaped.
[[nodiscard]] long start_keeper(KeeperSlot& slot);

}  // namespace ars::sandbox
