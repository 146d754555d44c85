#include "fsmount/workspace.hpp"

#include "fsmount/detached_mount.hpp"
#include "fsmount/layout.hpp"
#include "fsmount/resolution.hpp"

#include <climits>

#include <array>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::fsmount {

using base::ErrorKind;
using base::Fd;
using base::Result;

namespace {

// One scope of `ars exec | run | tool` takes one; more are needed only when a scope died or another
// policy class is used.
constexpr int kSpareMounts = 16;

constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

Result<std::string> real_path(const std::string& path) {
    std::array<char, PATH_MAX> out{};
    if (::realpath(path.c_str(), out.data()) == nullptr) {
        return base::fail_errno("workspace_unavailable", "directory " + path, errno);
    }
    return std::string(out.data());
}

// mkdir -p of a directory that an operator named: links in it are the operator's own.
Result<Fd> open_or_make(const std::string& path) {
    Fd here(::open(path.c_str(), kDirectoryFlags));
    if (here || errno != ENOENT) {
        if (!here) {
            return base::fail_errno("workspace_unavailable", "open directory " + path, errno);
        }
        return here;
    }
    const std::size_t slash = path.find_last_of('/');
    if (slash != std::string::npos && slash > 0) {
        if (auto parent = open_or_make(path.substr(0, slash)); !parent) {
            return parent;
        }
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return base::fail_errno("workspace_unavailable", "mkdir " + path, errno);
    }
    if (::geteuid() == 0 && ::chown(path.c_str(), kGemUid, kGemGid) != 0) {
        return base::fail_errno("workspace_unavailable", "chown " + path, errno);
    }
    return open_or_make(path);
}

// One part below a directory of ours: never through a link, which could make one user's files
// another's.
Result<Fd> make_part(const Fd& parent, const std::string& name, const std::string& shown) {
    const bool made = ::mkdirat(parent.get(), name.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) {
        return base::fail_errno("workspace_unavailable", "mkdir " + shown, errno);
    }
    Fd out(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!out) {
        struct stat status{};
        const int error = errno;
        if (::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(status.st_mode)) {
            return base::fail(
                ErrorKind::forbidden,
                "link_in_path",
                shown +
                    " is a symbolic link; a user's workspace must be a real directory: remove the "
                    "link, or point mounts.users at the other place"
            );
        }
        return base::fail_errno("workspace_unavailable", "open directory " + shown, error);
    }
    if (!made) {
        return out;
    }
    if (::fchmod(out.get(), 0700) != 0 ||
        (::geteuid() == 0 && ::fchown(out.get(), kGemUid, kGemGid) != 0)) {
        return base::fail_errno("workspace_unavailable", "set owner and mode of " + shown, errno);
    }
    return out;
}

// Whether gem can walk to `path`, asked with gem's file system identity.
bool reachable_by_gem(const std::string& path) {
    const int gid = ::setfsgid(kGemGid);
    const int uid = ::setfsuid(kGemUid);
    const Fd seen(::open(path.c_str(), kDirectoryFlags));
    ::setfsuid(static_cast<uid_t>(uid));
    ::setfsgid(static_cast<gid_t>(gid));
    return static_cast<bool>(seen);
}

std::unexpected<base::Error> foreign_owner(
    const std::string& directory, uid_t owner, const std::string& why
) {
    return base::fail(
        ErrorKind::forbidden,
        "workspace_owner",
        "tools run as gem (1000:1000), but " + directory + " belongs to uid " +
            std::to_string(owner) + why + "; either: chown -R 1000:1000 " + directory
    );
}

Result<std::shared_ptr<Workspace>> detached_workspace(
    const Fd& directory, const std::string& shown, const struct stat& status, bool id_mapped
) {
    Fd id_map;
    if (id_mapped) {
        auto made = make_id_map({status.st_uid, status.st_gid});
        if (!made) {
            return foreign_owner(
                shown, status.st_uid, " and no id map could be made (" + made.error().message + ")"
            );
        }
        id_map = std::move(*made);
    }
    const auto detach = [&] {
        return detach_mount(directory.get(), id_mapped ? &id_map : nullptr);
    };
    auto own = detach();
    if (!own && id_mapped) {
        return foreign_owner(
            shown,
            status.st_uid,
            " and its file system or this container allows no id-mapped mount (" +
                own.error().message + ")"
        );
    }
    if (!own) {
        return base::fail(
            ErrorKind::forbidden,
            "workspace_unreachable",
            "gem (1000:1000) can't reach " + shown + ", and it could not be mounted for it (" +
                own.error().message + "); allow the way (chmod o+x on its parents), or move it"
        );
    }
    std::vector<std::shared_ptr<Fd>> spare;
    for (int i = 0; i < kSpareMounts; ++i) {
        auto next = detach();
        if (!next) {
            return std::unexpected(next.error());
        }
        spare.push_back(std::make_shared<Fd>(std::move(*next)));
    }
    auto out = std::make_shared<Workspace>(std::move(*own), "", Fd(), "");
    out->keep_spare_mounts(std::move(spare), id_mapped);
    return out;
}

}  // namespace

Result<void> Workspace::make_workdir(const std::string& workdir_path) const {
    if (auto checked = check_workdir(workdir_path); !checked) {
        return checked;
    }
    auto made = make_directories(user_data_.get(), workdir_path, std::string(kUserData));
    if (!made) {
        return std::unexpected(made.error());
    }
    return {};
}

Result<void> Workspace::find_workdir(const std::string& workdir_path) const {
    if (auto checked = check_workdir(workdir_path); !checked) {
        return checked;
    }
    Fd here;
    std::string shown(kUserData);
    for (const std::string& part : split_path(workdir_path)) {
        const int above = here ? here.get() : user_data_.get();
        shown += "/" + part;
        Fd next(::openat(above, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!next) {
            const int error = errno;
            struct stat status{};
            if (::fstatat(above, part.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(status.st_mode)) {
                return base::fail(
                    ErrorKind::forbidden,
                    "link_in_path",
                    shown + " is a symbolic link; write the path it leads to"
                );
            }
            return std::unexpected(file_error(shown, error));
        }
        here = std::move(next);
    }
    return {};
}

std::shared_ptr<Fd> Workspace::take_spare_mount() const {
    const std::lock_guard lock(spare_mutex_);
    if (spare_mounts_.empty()) {
        return nullptr;
    }
    auto out = std::move(spare_mounts_.back());
    spare_mounts_.pop_back();
    return out;
}

void Workspace::keep_spare_mounts(std::vector<std::shared_ptr<Fd>> spare, bool idmapped) {
    const std::lock_guard lock(spare_mutex_);
    spare_mounts_ = std::move(spare);
    idmapped_ = idmapped;
}

Result<std::shared_ptr<Workspace>> open_user_workspace(
    const std::string& users_dir, const std::string& skills_dir, const std::string& uid
) {
    const std::string name = safe_uid(uid);
    auto users = open_or_make(users_dir);
    if (!users) {
        return std::unexpected(users.error());
    }
    auto skills = open_or_make(skills_dir);
    if (!skills) {
        return std::unexpected(skills.error());
    }
    const auto users_real = real_path(users_dir);
    const auto skills_real = real_path(skills_dir);
    if (!users_real || !skills_real) {
        return std::unexpected(!users_real ? users_real.error() : skills_real.error());
    }
    const std::string home_path = *users_real + "/" + name;
    const std::string projection_path = *skills_real + "/" + name;
    auto home = make_part(*users, name, home_path);
    if (!home) {
        return std::unexpected(home.error());
    }
    auto user_data = make_part(*home, "workspace", home_path + "/workspace");
    if (!user_data) {
        return std::unexpected(user_data.error());
    }
    auto projection = make_part(*skills, name, projection_path);
    if (!projection) {
        return std::unexpected(projection.error());
    }
    return std::make_shared<Workspace>(
        std::move(*user_data), home_path + "/workspace", std::move(*projection), projection_path
    );
}

Result<std::shared_ptr<Workspace>> open_external_workspace(
    const std::string& directory, bool allow_root_owner
) {
    Fd fd(::open(directory.c_str(), kDirectoryFlags));
    if (!fd) {
        return base::fail_errno("workspace_unavailable", "open directory " + directory, errno);
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) {
        return base::fail_errno("workspace_unavailable", "stat " + directory, errno);
    }
    const auto path = real_path(directory);
    if (!path) {
        return std::unexpected(path.error());
    }
    const uid_t me = ::geteuid();
    if (me != 0) {
        if (status.st_uid != me) {
            return foreign_owner(
                *path, status.st_uid, ", and only root may map it to another owner"
            );
        }
        return std::make_shared<Workspace>(std::move(fd), *path, Fd(), "");
    }
    if (status.st_uid == 0 && !allow_root_owner) {
        return base::fail(
            ErrorKind::forbidden,
            "workspace_owner",
            *path +
                " belongs to root: tools would write files as root there; allow that with "
                "--allow-root-owner, or give it away: chown -R 1000:1000 " +
                *path
        );
    }
    if (status.st_uid != kGemUid) {
        return detached_workspace(fd, *path, status, true);
    }
    if (!reachable_by_gem(*path)) {
        return detached_workspace(fd, *path, status, false);
    }
    return std::make_shared<Workspace>(std::move(fd), *path, Fd(), "");
}

std::shared_ptr<Workspace> in_scope_workspace() {
    return std::make_shared<Workspace>(base::Fd(), "", base::Fd(), "");
}

}  // namespace ars::fsmount
