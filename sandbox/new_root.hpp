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
    // Opens every bind source and device: before anything covers the host's tree.
    [[nodiscard]] base::Result<void> open_sources(const std::vector<fsmount::Mount>& mounts);
    // An empty tmpfs, attached where the old tree has a directory to spare.
    [[nodiscard]] base::Result<void> attach();
    // The plan from top to bottom.
    [[nodiscard]] base::Result<void> mount_all(const std::vector<fsmount::Mount>& mounts);
    // Makes it the root of this mount namespace, read-only, and lets go of the old one.
    [[nodiscard]] base::Result<void> enter();

    // False when a fresh procfs was refused and the container's is shown instead, read-only.
    [[nodiscard]] bool fresh_proc() const { return fresh_proc_; }

  private:
    [[nodiscard]] base::Result<void> mount_one(const fsmount::Mount& mount, base::Fd& source);
    [[nodiscard]] base::Result<void> mount_proc(const std::string& guest);

    base::Fd root_;
    std::vector<base::Fd> sources_;  // one per mount of the plan, empty where it needs none
    bool fresh_proc_ = true;
};

}  // namespace ars::sandbox
