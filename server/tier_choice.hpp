// Which walls a command stands behind, and in which workspace: for `ars exec`, `tool`, `run` and
// `serve`.
#pragma once

#include "base/result.hpp"
#include "fsmount/mount_plan.hpp"
#include "fsmount/workspace.hpp"
#include "sandbox/scope.hpp"
#include "server/exec_workspace.hpp"

#include <memory>
#include <optional>
#include <string>

namespace ars::server {

// What --tier names, or the best that works. Before privileges are dropped.
[[nodiscard]] sandbox::Tier choose_tier(std::optional<sandbox::Tier> given);

struct OpenedWorkspace {
    std::unique_ptr<TemporaryWorkspace> temporary;  // removed with this
    std::shared_ptr<fsmount::Workspace> workspace;
};

// `--workspace DIR`; when it is empty a temporary one, or in the landlock tier the real
// /home/gem/user-data, which no other directory can be there. Call before privileges are dropped.
[[nodiscard]] base::Result<OpenedWorkspace> open_workspace(
    sandbox::Tier tier, const std::string& directory, bool allow_root_owner
);

// /home/gem/user-data of this container, made for gem when we are root. Otherwise the error names
// the commands that make it.
[[nodiscard]] base::Result<std::shared_ptr<fsmount::Workspace>> open_real_workspace();

// What a scope of this tier sees of the host. The policy's tmp_size counts, not the planner's.
[[nodiscard]] base::Result<sandbox::ScopeSpec> make_scope_spec(
    sandbox::Policy policy,
    sandbox::Tier tier,
    const fsmount::Workspace& workspace,
    fsmount::MountPlanner& planner
);

}  // namespace ars::server
