#include "fsmount/detached_mount.hpp"

#include "fsmount/layout.hpp"

#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::fsmount {

namespace {

base::Result<void> write_map(pid_t child, const char* file, const std::string& line) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/%s", child, file);
    auto out = base::open_file(path.data(), O_WRONLY);
    if (!out) {
        return std::unexpected(out.error());
    }
    return base::write_all(out->get(), line);
}

// A process that does nothing but own a new user namespace, killed and reaped at the end of the
// scope.
class NamespaceHolder {
  public:
    NamespaceHolder() : child_(start()) {}
    NamespaceHolder(const NamespaceHolder&) = delete;
    NamespaceHolder& operator=(const NamespaceHolder&) = delete;
    ~NamespaceHolder() {
        if (child_ > 0) {
            ::kill(child_, SIGKILL);
            while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
            }
        }
    }
    [[nodiscard]] pid_t pid() const { return child_; }

  private:
    static pid_t start() {
        // A plain copy of this process (no shared memory), so the raw call is as safe as fork; it
        // only sleeps.
        const long made =
            ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
        if (made == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
                ::pause();
            }
        }
        return static_cast<pid_t>(made);
    }
    pid_t child_;
};

}  // namespace

base::Result<base::Fd> make_id_map(DiskOwner owner) {
    const NamespaceHolder holder;
    if (holder.pid() < 0) {
        return base::fail_errno("idmap_failed", "clone(CLONE_NEWUSER)", errno);
    }
    const auto line = [](unsigned from, unsigned to) {
        return std::to_string(from) + " " + std::to_string(to) + " 1\n";
    };
    if (auto done = write_map(holder.pid(), "uid_map", line(owner.uid, kGemUid)); !done) {
        return std::unexpected(done.error());
    }
    if (auto done = write_map(holder.pid(), "gid_map", line(owner.gid, kGemGid)); !done) {
        return std::unexpected(done.error());
    }
    return base::open_file("/proc/" + std::to_string(holder.pid()) + "/ns/user", O_RDONLY);
}

base::Result<base::Fd> detach_mount(int directory, const base::Fd* id_map) {
    constexpr unsigned kTreeFlags =
        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE;
    base::Fd tree(static_cast<int>(::syscall(SYS_open_tree, directory, "", kTreeFlags)));
    if (!tree) {
        return base::fail_errno("mount_failed", "open_tree", errno);
    }
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (id_map != nullptr) {
        attributes.attr_set |= MOUNT_ATTR_IDMAP;
        attributes.userns_fd = static_cast<std::uint64_t>(id_map->get());
    }
    constexpr unsigned kFlags = AT_EMPTY_PATH | AT_RECURSIVE;
    if (::syscall(SYS_mount_setattr, tree.get(), "", kFlags, &attributes, sizeof attributes) != 0) {
        return base::fail_errno("mount_failed", "mount_setattr", errno);
    }
    return tree;
}

}  // namespace ars::fsmount
