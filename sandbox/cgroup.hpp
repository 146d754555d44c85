// A cgroup of its own for a scope, where the server's cgroup v2 is delegated to it: the kernel then
// bounds memory and processes, says when it killed for memory, and kills all of a scope at once.
// Elsewhere the init's watch bounds memory (memory_watch.hpp) and rlimits the rest.
#pragma once

#include "base/result.hpp"
#include "sandbox/policy.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace ars::sandbox {

// One scope's cgroup; killed and removed at the latest by the destructor.
class ScopeCgroup {
  public:
    ScopeCgroup() = default;
    explicit ScopeCgroup(std::string directory) : directory_(std::move(directory)) {}
    ScopeCgroup(ScopeCgroup&& other) noexcept;
    ScopeCgroup& operator=(ScopeCgroup&& other) noexcept;
    ScopeCgroup(const ScopeCgroup&) = delete;
    ScopeCgroup& operator=(const ScopeCgroup&) = delete;
    ~ScopeCgroup();

    [[nodiscard]] explicit operator bool() const { return !directory_.empty(); }
    // Moves a process here; what it starts later follows it.
    [[nodiscard]] base::Result<void> add(pid_t pid) const;
    // Kills everything in it at once; false where the kernel can't (before Linux 5.14).
    bool kill() const;
    // True when it is gone. Not while a process is left in it, zombies included.
    bool remove();

    struct Memory {
        std::uint64_t peak_bytes = 0;  // 0 where the kernel does not say (before Linux 5.19)
        std::uint64_t oom_kills = 0;
    };
    [[nodiscard]] Memory memory() const;

  private:
    std::string directory_;
};

// The part of the hierarchy that is the server's.
class CgroupTree {
  public:
    // Moves everything in the server's cgroup to a leaf of it and enables the memory and pids
    // controllers for the rest, once; a later server in that leaf takes over. Error "no_cgroup"
    // says what is missing, and then nothing has changed.
    [[nodiscard]] static base::Result<CgroupTree> prepare();
    // The same for a cgroup directory that is known. What scopes of a server that was killed left
    // is removed.
    [[nodiscard]] static base::Result<CgroupTree> prepare_in(const std::string& directory);
    // The directory that prepare() would take; changes nothing. Ours are a cgroup that a namespace
    // begins at (a container's), one that systemd marked as delegated, and one that our user owns:
    // root can write to all of them and must not take a login session's. Error "no_cgroup".
    [[nodiscard]] static base::Result<std::string> find();

    // A new cgroup "ars-scope-<name>" that allows so many bytes and processes.
    [[nodiscard]] base::Result<ScopeCgroup> make(
        std::string_view name, std::uint64_t memory, std::uint32_t processes
    ) const;
    // After prepare() as root: the server goes on as this user.
    [[nodiscard]] base::Result<void> hand_over(uid_t uid, gid_t gid) const;
    [[nodiscard]] const std::string& directory() const { return directory_; }

  private:
    explicit CgroupTree(std::string directory) : directory_(std::move(directory)) {}
    std::string directory_;
};

// CgroupTree::make, or what takes its place in a test.
using MakeCgroup = std::function<base::Result<ScopeCgroup>(
    std::string_view name, std::uint64_t memory, std::uint32_t processes
)>;

// For the `number`th scope of this process; empty when the policy limits no memory, and where none
// can be made.
[[nodiscard]] ScopeCgroup cgroup_of(
    const Policy& policy, const MakeCgroup& make, std::uint64_t number
);

// The directory of a process's cgroup v2, from its /proc/self/cgroup and mountinfo; empty when
// there is none, or it lies outside what is mounted.
[[nodiscard]] std::string cgroup_directory(std::string_view own, std::string_view mountinfo);

}  // namespace ars::sandbox
