#include "fsmount/mount_plan.hpp"

#include "fsmount/host_tables.hpp"
#include "fsmount/layout.hpp"
#include "fsmount/user_names.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <set>
#include <string_view>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::fsmount {

namespace {

// Top-level names of an image. What else stands in "/" is somebody's data.
constexpr std::array<std::string_view, 9> kImageNames = {
    "bin", "sbin", "usr", "etc", "opt", "var", "srv", "nix", "app"
};
// Programs don't run without these: shown even where they are mounts of their own.
constexpr std::array<std::string_view, 5> kNeededNames = {"bin", "sbin", "usr", "etc", "nix"};

// Mounts below the image that belong to it, or that the engine makes for every container.
constexpr std::array<std::string_view, 5> kKnownMounts = {
    "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/nix/store", "/usr/local"
};

constexpr std::array<std::string_view, 6> kSecretFiles = {
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/krb5.keytab"
};
constexpr std::array<std::string_view, 7> kSecretDirectories = {
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/kubernetes",
    "/var/run/secrets",
    "/var/run",
    "/var/lib/kubelet",
    "/var/lib/docker"
};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

bool is_library_name(std::string_view name) { return name.starts_with("lib") && name.size() <= 7; }

std::string real_path(const std::string& path) {
    std::array<char, PATH_MAX> out{};
    return ::realpath(path.c_str(), out.data()) == nullptr ? std::string()
                                                           : std::string(out.data());
}

// A path whose last part may be anything (a socket, a missing file): its directory resolved, the
// name kept.
std::string real_parent_path(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
        return {};
    }
    const std::string parent = real_path(slash == 0 ? "/" : path.substr(0, slash));
    if (parent.empty()) {
        return {};
    }
    return (parent == "/" ? "" : parent) + path.substr(slash);
}

Mount& add_to(
    std::vector<Mount>& list, MountKind kind, std::string guest, std::string source = {}
) {
    Mount& mount = list.emplace_back();
    mount.kind = kind;
    mount.guest = std::move(guest);
    mount.source = std::move(source);
    return mount;
}

// What all scopes share.
class ImagePlanner {
  public:
    explicit ImagePlanner(const PlanOptions& options)
        : options_(options), mount_points_(host_mount_points()) {
        std::ranges::sort(mount_points_);
    }

    std::vector<Mount> make() {
        add_places();  // first: /dev/null covers files
        show_image();
        hide_secrets();
        hide_configured();
        hide_foreign_mounts();
        hide_sockets();
        name_gem();
        return std::move(image_);
    }
    // Whether there is a /var/tmp to mount on.
    [[nodiscard]] bool shows_var_tmp() const {
        return std::ranges::find(shown_, "/var") != shown_.end() &&
               real_path("/var/tmp") == "/var/tmp";
    }

  private:
    Mount& add(MountKind kind, std::string guest, std::string source = {}) {
        return add_to(image_, kind, std::move(guest), std::move(source));
    }

    [[nodiscard]] bool is_mount_point(const std::string& path) const {
        return std::ranges::binary_search(mount_points_, path);
    }

    [[nodiscard]] bool is_extra(std::string_view name) const {
        return std::ranges::find(options_.extra_visible, name) != options_.extra_visible.end();
    }

    // Whether the top-level entry `name` is part of what the image shows.
    [[nodiscard]] bool is_shown(const std::string& name) const {
        if (is_extra(name) || is_one_of(kNeededNames, name) || is_library_name(name)) {
            return true;
        }
        return is_one_of(kImageNames, name) && !is_mount_point("/" + name);
    }

    void show_image() {
        std::vector<std::string> names;
        if (DIR* stream = ::opendir("/")) {
            while (const dirent* entry = ::readdir(stream)) {
                if (is_shown(entry->d_name)) {
                    names.emplace_back(entry->d_name);
                }
            }
            ::closedir(stream);
        }
        std::ranges::sort(names);
        for (const std::string& name : names) {
            show(name);
        }
    }

    void show(const std::string& name) {
        const std::string path = "/" + name;
        struct stat status{};
        if (::lstat(path.c_str(), &status) != 0) {
            return;
        }
        if (S_ISLNK(status.st_mode)) {
            std::array<char, PATH_MAX> target{};
            const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
            if (size > 0) {
                add(MountKind::symlink,
                    path,
                    std::string(target.data(), static_cast<std::size_t>(size)));
            }
            return;
        }
        if (!S_ISDIR(status.st_mode) || holds_hidden_root(path)) {
            return;
        }
        add(MountKind::directory, path);
        add(MountKind::bind, path, path);
        shown_.push_back(path);
    }

    // A top-level directory that is, as a whole, what must not be seen.
    [[nodiscard]] bool holds_hidden_root(const std::string& path) const {
        return path == real_path(options_.data_dir) || path == real_path(options_.users_dir);
    }

    // Covers `path`, when it lies in what is shown and nothing above it is covered already. What
    // can't be seen from here can't be reached by a tool either, and could not be mounted on.
    void hide(const std::string& path) {
        const auto below = [&](const std::string& directory) { return is_within(path, directory); };
        if (path.empty() || std::ranges::none_of(shown_, below) || is_hidden(path)) {
            return;
        }
        struct stat status{};
        if (::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) {
            return;
        }
        add(S_ISDIR(status.st_mode) ? MountKind::hide_directory : MountKind::hide_file, path);
        hidden_.insert(path);
    }

    // It, or what it is in. There may be tens of thousands of them.
    [[nodiscard]] bool is_hidden(std::string_view path) const {
        while (!path.empty() && !hidden_.contains(path)) {
            path = path.substr(0, path.rfind('/'));
        }
        return !path.empty();
    }

    void hide_secrets() {
        for (const std::string_view path : kSecretDirectories) {
            hide(std::string(path));
        }
        for (const std::string_view path : kSecretFiles) {
            hide(std::string(path));
        }
        hide_host_keys();
    }

    void hide_host_keys() {
        DIR* stream = ::opendir("/etc/ssh");
        if (stream == nullptr) {
            return;
        }
        while (const dirent* entry = ::readdir(stream)) {
            const std::string_view name = entry->d_name;
            if (name.starts_with("ssh_host_") && name.ends_with("_key")) {
                hide("/etc/ssh/" + std::string(name));
            }
        }
        ::closedir(stream);
    }

    void hide_configured() {
        hide(real_path(options_.data_dir));
        hide(real_path(options_.users_dir));
        for (const std::string& path : options_.hidden) {
            hide(real_path(path));
        }
    }

    // Tools are gem, whatever the image calls 1000 or not: whoami, git and ssh ask these files.
    void name_gem() {
        const auto text = [](const char* path) {
            return base::read_file(path, base::limits::kMiB).value_or("");
        };
        cover_with_text("/etc/passwd", passwd_with_gem(text("/etc/passwd")));
        cover_with_text("/etc/group", group_with_gem(text("/etc/group")));
    }

    void cover_with_text(const std::string& path, std::string text) {
        struct stat status{};
        if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
            std::ranges::find(shown_, "/etc") != shown_.end() && !hidden_.contains(path)) {
            add(MountKind::text_file, path, std::move(text));
        }
    }

    // The image is shown, not what an operator mounted into it.
    void hide_foreign_mounts() {
        for (const std::string& point : mount_points_) {
            const std::size_t slash = point.find('/', 1);
            if (slash == std::string::npos || is_one_of(kKnownMounts, point) ||
                is_extra(std::string_view(point).substr(1, slash - 1))) {
                continue;
            }
            hide(point);
        }
    }

    // A read-only root still lets a tool connect to a socket in it.
    void hide_sockets() {
        for (const std::string& socket : host_socket_paths()) {
            const std::string path = real_parent_path(socket);
            struct stat status{};
            if (!path.empty() && ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
                hide(path);
            }
        }
    }

    void add_places() {
        add(MountKind::directory, "/dev");
        for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
            add(MountKind::device, std::string("/dev/") + name, std::string("/dev/") + name);
        }
        add(MountKind::symlink, "/dev/fd", "/proc/self/fd");
        add(MountKind::symlink, "/dev/stdin", "/proc/self/fd/0");
        add(MountKind::symlink, "/dev/stdout", "/proc/self/fd/1");
        add(MountKind::symlink, "/dev/stderr", "/proc/self/fd/2");
        add(MountKind::symlink, "/dev/ptmx", "pts/ptmx");
        for (const char* place :
             {"/dev/pts", "/dev/shm", "/proc", "/sys", "/run", "/tmp", "/home"}) {
            add(MountKind::directory, place);
        }
        add(MountKind::directory, std::string(kHome));
        add(MountKind::directory, "/root").mode = 0700;
    }

    const PlanOptions& options_;
    std::vector<std::string> mount_points_;
    std::vector<std::string> shown_;             // directories bound from the image
    std::set<std::string, std::less<>> hidden_;  // what is covered in them
    std::vector<Mount> image_;
};

// A directory of the scratch file system, shown at `guest`.
void add_part(std::vector<Mount>& list, const char* directory, unsigned mode, std::string guest) {
    add_to(list, MountKind::directory, directory).mode = mode;
    add_to(list, MountKind::alias, std::move(guest), directory).read_only = false;
}

void add_private_places(
    std::vector<Mount>& list, const PlanOptions& options, std::uint64_t tmp_size, bool var_tmp
) {
    // One file system for all places that tools may write: to make and to end one is what a scope's
    // life costs most.
    Mount& scratch = add_to(list, MountKind::tmpfs, "/tmp");
    scratch.read_only = false;
    scratch.size_bytes = tmp_size;
    scratch.inodes = options.tmp_inodes;
    add_part(list, "/tmp/shm", 01777, "/dev/shm");
    add_part(list, "/tmp/home", 0755, std::string(kHome));
    add_part(list, "/tmp/tmp", 01777, "/tmp");
    add_to(list, MountKind::devpts, "/dev/pts").read_only = false;
    add_to(list, MountKind::proc, "/proc").read_only = false;
    if (var_tmp) {
        add_to(list, MountKind::alias, "/var/tmp", "/tmp").read_only = false;
    }
}

base::Result<void> add_user_data(std::vector<Mount>& list, const Workspace& workspace) {
    add_to(list, MountKind::directory, std::string(kUserData)).mode = 0700;
    if (workspace.in_scope()) {
        return {};
    }
    Mount& user_data =
        add_to(list, MountKind::bind, std::string(kUserData), workspace.user_data_source());
    user_data.read_only = false;
    if (user_data.source.empty()) {
        user_data.fd = workspace.take_spare_mount();
        if (user_data.fd == nullptr) {
            return base::fail(
                base::ErrorKind::exhausted,
                "no_spare_mount",
                "the mounts made for this workspace before root was dropped are used up; start "
                "the command again"
            );
        }
    }
    return {};
}

void add_skills(std::vector<Mount>& list, const Workspace& workspace) {
    add_to(list, MountKind::directory, std::string(kSkills)).mode = 0755;
    if (workspace.skills_source().empty()) {
        add_to(list, MountKind::hide_directory, std::string(kSkills));
    } else {
        add_to(list, MountKind::bind, std::string(kSkills), workspace.skills_source());
    }
}

constexpr auto kLookEvery = std::chrono::seconds(1);

}  // namespace

base::Result<MountPlan> MountPlanner::plan(const Workspace& workspace, std::uint64_t tmp_size) {
    const auto now = std::chrono::steady_clock::now();
    if (!image_ || now - looked_ > kLookEvery) {
        ImagePlanner planner(options_);
        image_ = std::make_shared<const std::vector<Mount>>(planner.make());
        shows_var_tmp_ = planner.shows_var_tmp();
        looked_ = now;
    }
    MountPlan plan;
    plan.image = image_;
    add_private_places(plan.mounts, options_, tmp_size, shows_var_tmp_);
    if (auto added = add_user_data(plan.mounts, workspace); !added) {
        return std::unexpected(added.error());
    }
    add_skills(plan.mounts, workspace);
    plan.idmapped = workspace.idmapped();
    return plan;
}

base::Result<MountPlan> make_mount_plan(const Workspace& workspace, const PlanOptions& options) {
    return MountPlanner(options).plan(workspace);
}

}  // namespace ars::fsmount
