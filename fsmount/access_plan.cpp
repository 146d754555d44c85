#include "fsmount/access_plan.hpp"

#include "fsmount/host_tables.hpp"
#include "fsmount/layout.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::fsmount {

namespace {

constexpr std::size_t kMostRules = 8192;  // of one scope: about 3 us each to set up

class AccessPlanner {
  public:
    explicit AccessPlanner(const MountPlan& mounts) {
        if (mounts.image) {
            mounts_ = *mounts.image;
        }
        mounts_.insert(mounts_.end(), mounts.mounts.begin(), mounts.mounts.end());
        for (const Mount& mount : mounts_) {
            // A scope's own file system would cover what stands there.
            if (mount.kind == MountKind::hide_directory || mount.kind == MountKind::hide_file ||
                mount.kind == MountKind::tmpfs || mount.kind == MountKind::alias) {
                add_hole(mount.guest);
            }
        }
    }

    base::Result<AccessPlan> make(std::string private_tmp) {
        for (const Mount& mount : mounts_) {
            if (auto added = add_mount(mount); !added) {
                return std::unexpected(added.error());
            }
        }
        allow(Access::list, "/dev");
        allow(Access::terminal, "/dev/ptmx");
        allow(Access::write, private_tmp);
        plan_.private_tmp = std::move(private_tmp);
        if (plan_.rules.size() > kMostRules) {
            return base::fail(
                base::ErrorKind::exhausted,
                "too_many_rules",
                "the directories that hold something hidden have " +
                    std::to_string(plan_.rules.size()) +
                    " entries to allow one by one; move data_dir, mounts.users or the "
                    "configuration into a directory of their own"
            );
        }
        return std::move(plan_);
    }

  private:
    // What the tools' identity can't reach is closed by its owner and mode.
    void add_hole(const std::string& path) {
        if (::access(path.c_str(), R_OK) == 0 || ::access(path.c_str(), X_OK) == 0 ||
            errno != EACCES) {
            holes_.push_back(path);
        }
    }

    void allow(Access access, std::string path, bool required = true) {
        plan_.rules.push_back({access, std::move(path), required});
    }

    base::Result<void> add_mount(const Mount& mount) {
        switch (mount.kind) {
            case MountKind::bind:
                return add_bind(mount);
            case MountKind::device:
                allow(mount.source == "/dev/tty" ? Access::terminal : Access::device, mount.source);
                break;
            case MountKind::devpts:
                allow(Access::terminal, mount.guest);
                break;
            case MountKind::proc:
                allow(Access::read, mount.guest);
                break;
            case MountKind::alias:
                if (mount.guest == "/dev/shm") {
                    allow(Access::shared_memory, mount.guest, false);
                }
                break;
            default:
                break;  // made by mounting only
        }
        return {};
    }

    base::Result<void> add_bind(const Mount& mount) {
        if (mount.guest == kUserData) {
            std::array<char, PATH_MAX> real{};
            if (mount.source.empty() || ::realpath(kUserData.data(), real.data()) == nullptr ||
                mount.source != real.data()) {
                return base::fail(
                    base::ErrorKind::invalid,
                    "workspace_not_mountable",
                    "without namespaces nothing can be mounted at " + std::string(kUserData) +
                        ", so only that directory itself can be the workspace"
                );
            }
            allow(Access::write, mount.source);
        } else if (mount.guest == "/proc") {
            allow(Access::read, mount.guest);
        } else if (mount.guest == mount.source) {
            show(mount.source, true);
        }
        return {};
    }

    [[nodiscard]] bool is_hole(const std::string& path) const {
        return std::ranges::find(holes_, path) != holes_.end();
    }
    [[nodiscard]] bool holds_hole(const std::string& path) const {
        return std::ranges::any_of(holes_, [&](const std::string& hole) {
            return is_within(hole, path);
        });
    }

    void show(const std::string& path, bool required) {
        if (is_hole(path) || plan_.rules.size() > kMostRules) {
            return;
        }
        if (!holds_hole(path)) {
            allow(Access::run, path, required);
            return;
        }
        DIR* const stream = ::opendir(path.c_str());
        if (stream == nullptr) {
            return;  // closed to the tools as well
        }
        std::vector<std::string> below;
        while (const dirent* entry = ::readdir(stream)) {
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") {
                below.push_back(path + "/" + std::string(name));
            }
        }
        ::closedir(stream);
        std::ranges::sort(below);
        for (const std::string& entry : below) {
            struct stat status{};
            // A link is read without a right; what it names has rules of its own.
            if (::lstat(entry.c_str(), &status) == 0 &&
                (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
                show(entry, false);
            }
        }
    }

    std::vector<Mount> mounts_;
    std::vector<std::string> holes_;
    AccessPlan plan_;
};

}  // namespace

base::Result<AccessPlan> make_access_plan(const MountPlan& mounts, std::string private_tmp) {
    return AccessPlanner(mounts).make(std::move(private_tmp));
}

}  // namespace ars::fsmount
