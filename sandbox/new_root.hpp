// Carries out a mount plan. The process that does it stands on the new root in a namespace where
// nothing of the host is mounted, so no link in what is shown can lead a mount elsewhere; sources
// are opened in another namespace, where nothing is covered.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/mount_plan.hpp"

#include <vector>

namespace ars::sandbox {

class NewRoot {
  public:
    // Puts this process on an empty root in a mount namespace of its own. The present one, which
    // must be private, stays open as the place of sources. `proc` is /proc.
    [[nodiscard]] base::Result<void> make(const base::Fd& proc);
    // Opens every bind source and device of `mounts` on the host's tree, and the fresh procfs of
    // the calling process's pid namespace.
    [[nodiscard]] base::Result<void> open_sources(const std::vector<fsmount::Mount>& mounts);
    // In a process that shares the template's mounts and has opened its sources: from here on they
    // are a copy.
    [[nodiscard]] base::Result<void> leave_template();
    // The plan from top to bottom.
    [[nodiscard]] base::Result<void> mount_all(const std::vector<fsmount::Mount>& mounts);
    // Makes the root read-only, and lets go of the other namespaces.
    [[nodiscard]] base::Result<void> seal();

    // False when a fresh procfs was refused and the container's is shown instead, read-only.
    [[nodiscard]] bool fresh_proc() const { return fresh_proc_; }

  private:
    [[nodiscard]] base::Result<void> open_all(const std::vector<fsmount::Mount>& mounts);
    [[nodiscard]] base::Result<base::Fd> open_proc();
    [[nodiscard]] base::Result<void> mount_one(const fsmount::Mount& mount, const base::Fd& source);
    [[nodiscard]] base::Result<void> mount_proc(
        const fsmount::Mount& mount, const base::Fd& source
    );

    base::Fd host_;                  // the mount namespace with the host's tree
    base::Fd template_;              // the one that shows the image
    std::vector<base::Fd> sources_;  // one per mount being made, empty where it needs none
    bool fresh_proc_ = true;
};

}  // namespace ars::sandbox
