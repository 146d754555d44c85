#include "server/tier_choice.hpp"

#include "base/digest.hpp"
#include "fsmount/access_plan.hpp"
#include "fsmount/layout.hpp"
#include "sandbox/host_probe.hpp"
#include "server/directories.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <climits>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>

#include <fcntl.h>
#include <unistd.h>

namespace ars::server {

namespace {

std::string real_path(std::string_view path) {
    std::array<char, PATH_MAX> real{};
    return ::realpath(std::string(path).c_str(), real.data()) == nullptr ? std::string()
                                                                         : std::string(real.data());
}

}  // namespace

sandbox::Tier choose_tier(std::optional<sandbox::Tier> given) {
    if (given) {
        return *given;
    }
    boost::asio::io_context io(1);
    sandbox::Tier best = sandbox::Tier::namespaces;
    std::exception_ptr failure;
    boost::asio::co_spawn(
        io,
        sandbox::best_tier(),
        [&](std::exception_ptr error, sandbox::Tier tier) {
            failure = error;
            best = tier;
        }
    );
    io.run();
    if (failure) {
        std::rethrow_exception(failure);
    }
    return best;
}

base::Result<std::shared_ptr<fsmount::Workspace>> open_real_workspace() {
    const std::string path(fsmount::kUserData);
    if (auto made = make_own_directory(path); !made) {
        if (made.error().sys_errno == 0 || ::geteuid() == 0) {
            return std::unexpected(made.error());
        }
        return base::fail(
            base::ErrorKind::unavailable,
            "workspace_unavailable",
            fmt::format(
                "the landlock tier works in {0}, which is not there ({1}); as root: mkdir -p {0} "
                "&& chown {2}:{3} {0}",
                path,
                made.error().message,
                ::geteuid(),
                ::getegid()
            )
        );
    }
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    base::Fd user_data(::open(path.c_str(), kFlags));
    if (!user_data) {
        return base::fail_errno("workspace_unavailable", "open directory " + path, errno);
    }
    base::Fd skills(::open(fsmount::kSkills.data(), kFlags | O_NOFOLLOW));
    std::string skills_source = skills ? std::string(fsmount::kSkills) : std::string();
    return std::make_shared<fsmount::Workspace>(
        std::move(user_data), real_path(path), std::move(skills), std::move(skills_source)
    );
}

base::Result<OpenedWorkspace> open_workspace(
    sandbox::Tier tier, const std::string& directory, bool allow_root_owner
) {
    OpenedWorkspace opened;
    std::string path = directory;
    if (tier == sandbox::Tier::landlock) {
        auto real = open_real_workspace();
        if (!real) {
            return std::unexpected(real.error());
        }
        if (!path.empty() && real_path(path) != (*real)->user_data_source()) {
            return base::fail(
                base::ErrorKind::invalid,
                "workspace_not_mountable",
                fmt::format(
                    "the landlock tier can mount nothing, so {} can't become {}; leave out "
                    "--workspace and work in {} itself",
                    path,
                    fsmount::kUserData,
                    fsmount::kUserData
                )
            );
        }
        opened.workspace = std::move(*real);
        return opened;
    }
    if (path.empty()) {
        auto made = TemporaryWorkspace::make();
        if (!made) {
            return std::unexpected(made.error());
        }
        opened.temporary = std::move(*made);
        path = opened.temporary->path();
    }
    // While still root: a foreign owner needs an id-mapped mount.
    auto workspace = fsmount::open_external_workspace(path, allow_root_owner);
    if (!workspace) {
        return std::unexpected(workspace.error());
    }
    opened.workspace = std::move(*workspace);
    return opened;
}

base::Result<sandbox::ScopeSpec> make_scope_spec(
    sandbox::Policy policy,
    sandbox::Tier tier,
    const fsmount::Workspace& workspace,
    fsmount::MountPlanner& planner
) {
    sandbox::ScopeSpec spec;
    auto mounts = planner.plan(workspace, policy.tmp_size);
    if (!mounts) {
        return std::unexpected(mounts.error());
    }
    spec.policy = std::move(policy);
    spec.tier = tier;
    if (tier == sandbox::Tier::namespaces) {
        spec.mounts = std::move(*mounts);
        return spec;
    }
    if (spec.policy.network == sandbox::Network::allowlist) {
        return base::fail(
            base::ErrorKind::invalid,
            "allowlist_needs_namespaces",
            fmt::format(
                "policy {} has a network of allowed hosts, which needs the namespaces tier; here "
                "there are none and host",
                spec.policy.name
            )
        );
    }
    auto access = fsmount::make_access_plan(*mounts, "/tmp/ars-scope-" + base::random_uuid());
    if (!access) {
        return std::unexpected(access.error());
    }
    spec.access = std::move(*access);
    return spec;
}

}  // namespace ars::server
