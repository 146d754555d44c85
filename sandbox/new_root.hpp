// Carries out a mount plan: builds the scope's root from descriptors only, so that no path is
// looked up twice and no link in what is mounted can lead a mount elsewhere.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/mount_plan.hpp"

#include <vector>

namespace ars::sandbox {

class NewRoot {
  public:
    // Puts this process on an empty root in a mount namespace where nothing of the host is. The
    // present one stays open: it shows the host's tree with nothing covered, and the sources of
    // binds are opened there. `proc` is /proc.
    [[nodiscard]] base::Result<void> make(const base::Fd& proc);
    // In a process that was cloned into a mount namespace of its own: its copy of the same.
    [[nodiscard]] base::Result<void> reopen(const base::Fd& proc);
    // Opens every bind source and device of `mounts`, on the host's tree.
    [[nodiscard]] base::Result<void> open_sources(const std::vector<fsmount::Mount>& mounts);
    // The plan from top to bottom.
    [[nodiscard]] base::Result<void> mount_all(const std::vector<fsmount::Mount>& mounts);
    // Lets go of the host's namespace and makes the root read-only.
    [[nodiscard]] base::Result<void> seal();

    // False when a fresh procfs was refused and the container's is shown instead, read-only.
    [[nodiscard]] bool fresh_proc() const { return fresh_proc_; }

  private:
    [[nodiscard]] base::Result<void> enter(const base::Fd& mount_namespace) const;
    [[nodiscard]] base::Result<void> open_all(const std::vector<fsmount::Mount>& mounts);
    [[nodiscard]] base::Result<void> mount_one(const fsmount::Mount& mount, base::Fd& source);
    [[nodiscard]] base::Result<base::Fd> open_proc();
    [[nodiscard]] base::Result<void> mount_proc(
        const fsmount::Mount& mount, const base::Fd& source
    );
    [[nodiscard]] base::Result<void> mount_alias(const fsmount::Mount& mount);
    [[nodiscard]] base::Result<void> hide(const fsmount::Mount& mount);
    // A copy of what the host shows at `path`, not yet mounted anywhere. Only in its namespace.
    [[nodiscard]] base::Result<base::Fd> copy_of(const std::string& path, bool recursive) const;

    base::Fd host_namespace_;
    base::Fd host_;  // its root
    base::Fd own_namespace_;
    base::Fd root_;                  // the scope's
    std::vector<base::Fd> sources_;  // one per mount being made, empty where it needs none
    bool fresh_proc_ = true;
};

}  // namespace ars::sandbox
