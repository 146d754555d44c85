// Who descends from whom inside a scope, read from /proc. Works with the scope's own /proc and with
// the container's, where the scope's pids are found in the NSpid lines.
#pragma once

#include "sandbox/freezer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ars::sandbox {

struct TreeProcess {
    pid_t pid = 0;      // in the scope's namespace
    pid_t proc_id = 0;  // the name of its directory in /proc
    bool zombie = false;
    bool headless = false;   // its first thread has ended, others go on
    bool suspended = false;  // waits in the kernel, as for a child of vfork
    // Private and shared memory that is in use, file contents left out. 0 for a child that runs in
    // its suspended parent's memory.
    std::uint64_t memory_kib = 0;
};

class ProcessTree {
  public:
    // `proc` is a directory descriptor of /proc, borrowed. Reads every process once, under the eyes
    // of `freezer`.
    ProcessTree(int proc, Freezer& freezer);

    // All descendants of a child of the init, without itself. Empty when the child is unknown.
    [[nodiscard]] std::vector<TreeProcess> below(pid_t child) const;
    // The init's own children.
    [[nodiscard]] std::vector<TreeProcess> children_of_init() const;

  private:
    struct Entry {
        TreeProcess process;
        pid_t parent = 0;  // as in /proc
    };
    void count_shared_once();
    void add_children(pid_t proc_id, std::vector<TreeProcess>& out) const;

    std::vector<Entry> entries_;
    pid_t init_ = 0;  // the init's directory name in /proc
};

// What memory_kib would be if memory used by n processes counted a nth for each: exact and slow.
// Absent when the kernel does not tell. Not for a headless one.
[[nodiscard]] std::optional<std::uint64_t> proportional_memory_kib(int proc, pid_t proc_id);

// The parent of a process or thread of the scope, which is 0 for one that is gone, and where /proc
// is not of the scope's pid namespace.
[[nodiscard]] pid_t parent_of(int proc, pid_t thread);

// The command line of a process, at most `max_bytes`; its short name when it has none.
[[nodiscard]] std::string command_line(int proc, pid_t proc_id, std::size_t max_bytes);

}  // namespace ars::sandbox
