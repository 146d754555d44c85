#include "sandbox/new_root.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

using fsmount::Mount;
using fsmount::MountKind;

// An empty directory of every root: the old root's place for a moment, and what covers others.
constexpr const char* kEmpty = "/sys";

constexpr unsigned kProcAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
constexpr const char* kMountNamespace = "thread-self/ns/mnt";
// The machine has about 3,000 for everybody (kernel.pty.max).
constexpr const char* kTerminals = "128";

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

// Opens `path` as seen with `root` as "/": links stay inside. Where openat2 is missing the plain
// call does the same in the new root, which is this process's "/"; in the host's tree it gets paths
// without links (the planner resolves them), and an absolute link met all the same leads into the
// image, never out of it.
base::Fd open_in_root(int root, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    base::Fd found(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
    if (!found && (errno == ENOSYS || errno == EPERM)) {
        const std::size_t start = std::min(path.find_first_not_of('/'), path.size());
        const std::string relative = start == path.size() ? "." : path.substr(start);
        found = base::Fd(::openat(root, relative.c_str(), flags | O_CLOEXEC));
    }
    return found;
}

struct SplitPath {
    std::string parent;
    std::string name;
};
SplitPath split(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos) {
        return {"/", path};
    }
    return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

base::Result<base::Fd> make_directory(int root, const std::string& path, unsigned mode) {
    base::Fd found = open_in_root(root, path, O_PATH | O_DIRECTORY);
    if (found || errno != ENOENT) {
        if (!found) {
            return fail_step("open directory " + path);
        }
        return found;
    }
    const SplitPath parts = split(path);
    auto parent = make_directory(root, parts.parent, 0755);
    if (!parent) {
        return parent;
    }
    if (::mkdirat(parent->get(), parts.name.c_str(), static_cast<mode_t>(mode)) != 0 &&
        errno != EEXIST) {
        return fail_step("mkdir " + path);
    }
    base::Fd made = open_in_root(root, path, O_PATH | O_DIRECTORY);
    if (!made) {
        return fail_step("open directory " + path);
    }
    // mkdir takes the umask off; a mount point's mode is part of the plan.
    if (::fchmodat(parent->get(), parts.name.c_str(), static_cast<mode_t>(mode), 0) != 0) {
        return fail_step("chmod " + path);
    }
    return made;
}

base::Result<base::Fd> make_file(int root, const std::string& path) {
    base::Fd found = open_in_root(root, path, O_PATH);
    if (!found) {
        const SplitPath parts = split(path);
        auto parent = make_directory(root, parts.parent, 0755);
        if (!parent) {
            return parent;
        }
        const base::Fd made(::openat(
            parent->get(), parts.name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444
        ));
        if (!made) {
            return fail_step("create " + path);
        }
        found = open_in_root(root, path, O_PATH);
    }
    if (!found) {
        return fail_step("open " + path);
    }
    return found;
}

base::Result<void> move_here(int mount, int target, const std::string& what) {
    if (::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) !=
        0) {
        return fail_step("mount on " + what);
    }
    return {};
}

base::Result<void> set_attributes(int mount, std::uint64_t attributes, bool recursive) {
    mount_attr attr{};
    attr.attr_set = attributes;
    const unsigned flags = AT_EMPTY_PATH | (recursive ? static_cast<unsigned>(AT_RECURSIVE) : 0U);
    if (::mount_setattr(mount, "", flags, &attr, sizeof attr) != 0) {
        return fail_step("mount_setattr");
    }
    return {};
}

struct Option {
    const char* key;
    std::string value;
};
base::Result<base::Fd> new_filesystem(
    const char* type, const std::vector<Option>& options, unsigned attributes
) {
    const base::Fd context(::fsopen(type, FSOPEN_CLOEXEC));
    if (!context) {
        return fail_step(std::string("fsopen ") + type);
    }
    for (const Option& option : options) {
        if (::fsconfig(context.get(), FSCONFIG_SET_STRING, option.key, option.value.c_str(), 0) !=
            0) {
            return fail_step(std::string("fsconfig ") + type + " " + option.key);
        }
    }
    if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
        return fail_step(std::string("create ") + type);
    }
    base::Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, attributes));
    if (!mount) {
        return fail_step(std::string("fsmount ") + type);
    }
    return mount;
}

std::string octal(unsigned mode) {
    std::string text;
    for (unsigned rest = mode & 07777U; rest != 0; rest >>= 3U) {
        text.insert(text.begin(), static_cast<char>('0' + (rest & 7U)));
    }
    return text.empty() ? "0" : text;
}

std::vector<Option> tmpfs_options(const Mount& mount) {
    std::vector<Option> options{{"mode", octal(mount.mode)}};
    if (mount.size_bytes != 0) {
        options.push_back({"size", std::to_string(mount.size_bytes)});
    }
    if (mount.inodes != 0) {
        options.push_back({"nr_inodes", std::to_string(mount.inodes)});
    }
    return options;
}

unsigned attributes_of(const Mount& mount) {
    unsigned attributes = MOUNT_ATTR_NOSUID;
    if (mount.kind != MountKind::device) {
        attributes |= MOUNT_ATTR_NODEV;
    }
    if (mount.no_exec || mount.kind == MountKind::device) {
        attributes |= MOUNT_ATTR_NOEXEC;
    }
    // A read-only bind of a device would make it unwritable on some file systems, and a device has
    // no content.
    if (mount.read_only && mount.kind == MountKind::bind) {
        attributes |= MOUNT_ATTR_RDONLY;
    }
    return attributes;
}

base::Result<base::Fd> mount_point_for(int root, const Mount& mount, int source) {
    struct stat info{};
    if (::fstat(source, &info) != 0) {
        return fail_step("stat source of " + mount.guest);
    }
    return S_ISDIR(info.st_mode) ? make_directory(root, mount.guest, 0755)
                                 : make_file(root, mount.guest);
}

base::Result<void> put_symlink(int root, const Mount& mount) {
    const SplitPath parts = split(mount.guest);
    auto parent = make_directory(root, parts.parent, 0755);
    if (!parent) {
        return std::unexpected(parent.error());
    }
    if (::symlinkat(mount.source.c_str(), parent->get(), parts.name.c_str()) != 0 &&
        errno != EEXIST) {
        return fail_step("symlink " + mount.guest);
    }
    return {};
}

// The text lies in the root's own tmpfs under a name that is gone before anybody could see it: the
// mount keeps the file.
base::Result<void> cover_with_text(int root, const Mount& mount) {
    const base::Fd target = open_in_root(root, mount.guest, O_PATH);
    if (!target) {
        return errno == ENOENT ? base::Result<void>{} : fail_step("open " + mount.guest);
    }
    constexpr const char* kName = ".text";
    const base::Fd file(
        ::openat(root, kName, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444)
    );
    if (!file || ::fchmod(file.get(), 0444) != 0) {
        return fail_step("create the text of " + mount.guest);
    }
    if (auto written = base::write_all(file.get(), mount.source); !written) {
        return written;
    }
    const base::Fd cover(::open_tree(root, kName, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!cover) {
        return fail_step("open_tree of the text of " + mount.guest);
    }
    constexpr unsigned kAttributes =
        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    if (auto sealed = set_attributes(cover.get(), kAttributes, false); !sealed) {
        return sealed;
    }
    if (auto moved = move_here(cover.get(), target.get(), mount.guest); !moved) {
        return moved;
    }
    // Only now: what has no name can't be mounted.
    if (::unlinkat(root, kName, 0) != 0) {
        return fail_step("unlink the text of " + mount.guest);
    }
    return {};
}

base::Result<base::Fd> new_filesystem_of(const Mount& mount) {
    const unsigned attributes = attributes_of(mount);
    if (mount.kind == MountKind::devpts) {
        return new_filesystem(
            "devpts",
            {{"mode", "0620"}, {"ptmxmode", "0666"}, {"max", kTerminals}},
            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC
        );
    }
    return new_filesystem("tmpfs", tmpfs_options(mount), attributes);
}

base::Result<void> mount_new_filesystem(int root, const Mount& mount) {
    auto target = make_directory(root, mount.guest, 0755);
    if (!target) {
        return std::unexpected(target.error());
    }
    auto made = new_filesystem_of(mount);
    if (!made) {
        return std::unexpected(made.error());
    }
    return move_here(made->get(), target->get(), mount.guest);
}

}  // namespace

base::Result<void> NewRoot::enter(const base::Fd& mount_namespace) const {
    return ::setns(mount_namespace.get(), CLONE_NEWNS) == 0 ? base::Result<void>{}
                                                            : fail_step("setns NEWNS");
}

base::Result<base::Fd> NewRoot::copy_of(const std::string& path, bool recursive) const {
    const base::Fd found = open_in_root(host_.get(), path, O_PATH);
    if (!found) {
        return fail_step("open " + path);
    }
    const unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
                           (recursive ? static_cast<unsigned>(AT_RECURSIVE) : 0U);
    base::Fd copy(::open_tree(found.get(), "", flags));
    if (!copy) {
        return fail_step("open_tree " + path);
    }
    return copy;
}

base::Result<void> NewRoot::make(const base::Fd& proc) {
    host_namespace_ = base::Fd(::openat(proc.get(), kMountNamespace, O_RDONLY | O_CLOEXEC));
    host_ = base::Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!host_namespace_ || !host_ || ::unshare(CLONE_NEWNS) != 0) {
        return fail_step("unshare NEWNS for the new root");
    }
    auto root = new_filesystem(
        "tmpfs",
        {{"mode", "755"}, {"size", "1m"}, {"nr_inodes", "4096"}},
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
    );
    if (!root) {
        return std::unexpected(root.error());
    }
    bool attached = false;
    for (const char* place : {"/tmp", "/home", "/mnt", "/var", "/etc", "/usr"}) {
        if (::move_mount(root->get(), "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) == 0) {
            attached = true;
            break;
        }
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
            return fail_step(std::string("mount the new root on ") + place);
        }
    }
    if (!attached) {
        return fail_step("find a directory for the new root");
    }
    if (::mkdirat(root->get(), kEmpty + 1, 0755) != 0 || ::fchdir(root->get()) != 0) {
        return fail_step("prepare the new root");
    }
    if (::syscall(SYS_pivot_root, ".", kEmpty + 1) != 0 || ::chdir("/") != 0) {
        return fail_step("pivot_root");
    }
    if (::umount2(kEmpty, MNT_DETACH) != 0) {
        return fail_step("umount the host's tree");
    }
    return reopen(proc);
}

base::Result<void> NewRoot::reopen(const base::Fd& proc) {
    own_namespace_ = base::Fd(::openat(proc.get(), kMountNamespace, O_RDONLY | O_CLOEXEC));
    root_ = base::Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return own_namespace_ && root_ ? base::Result<void>{} : fail_step("open the new root");
}

base::Result<void> NewRoot::open_sources(const std::vector<Mount>& mounts) {
    if (auto entered = enter(host_namespace_); !entered) {
        return entered;
    }
    auto opened = open_all(mounts);
    auto back = enter(own_namespace_);
    return opened ? back : opened;
}

base::Result<void> NewRoot::open_all(const std::vector<Mount>& mounts) {
    sources_.clear();
    for (const Mount& mount : mounts) {
        base::Result<base::Fd> source;
        if (mount.kind == MountKind::proc) {
            source = open_proc();
        } else if (mount.kind == MountKind::device ||
                   (mount.kind == MountKind::bind && !mount.fd)) {
            source = copy_of(mount.source, mount.kind == MountKind::bind);
        }
        if (!source) {
            return std::unexpected(source.error());
        }
        sources_.push_back(std::move(*source));
    }
    return {};
}

// The kernel gives a fresh one only where another one is in full view.
base::Result<base::Fd> NewRoot::open_proc() {
    auto fresh = new_filesystem("proc", {}, kProcAttributes);
    if (!fresh && fresh.error().sys_errno == EPERM) {
        // The engine masks parts of /proc: a fresh one would show them.
        fresh_proc_ = false;
        return copy_of("/proc", true);
    }
    return fresh;
}

base::Result<void> NewRoot::mount_proc(const Mount& mount, const base::Fd& source) {
    auto target = make_directory(root_.get(), mount.guest, 0555);
    if (!target) {
        return std::unexpected(target.error());
    }
    auto moved = move_here(source.get(), target->get(), mount.guest);
    return moved && !fresh_proc_
               ? set_attributes(source.get(), kProcAttributes | MOUNT_ATTR_RDONLY, true)
               : moved;
}

// Covers something that may be there. What is not there needs no cover.
base::Result<void> NewRoot::hide(const Mount& mount) {
    const bool directory = mount.kind == MountKind::hide_directory;
    const base::Fd target =
        open_in_root(root_.get(), mount.guest, directory ? O_PATH | O_DIRECTORY : O_PATH);
    if (!target) {
        return errno == ENOENT || errno == ENOTDIR ? base::Result<void>{}
                                                   : fail_step("open " + mount.guest);
    }
    const char* const source = directory ? kEmpty : "/dev/null";
    const base::Fd cover(::open_tree(root_.get(), source + 1, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!cover) {
        return fail_step("open_tree " + std::string(source));
    }
    if (auto moved = move_here(cover.get(), target.get(), mount.guest); !moved) {
        return moved;
    }
    constexpr unsigned kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    return set_attributes(
        cover.get(), kAttributes | (directory ? MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV : 0), false
    );
}

base::Result<void> NewRoot::mount_alias(const Mount& mount) {
    const base::Fd source = open_in_root(root_.get(), mount.source, O_PATH | O_DIRECTORY);
    if (!source) {
        return fail_step("open " + mount.source);
    }
    const base::Fd copy(::open_tree(
        source.get(), "", static_cast<unsigned>(AT_EMPTY_PATH) | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
    ));
    if (!copy) {
        return fail_step("open_tree " + mount.source);
    }
    auto target = make_directory(root_.get(), mount.guest, 0755);
    return target ? move_here(copy.get(), target->get(), mount.guest)
                  : std::unexpected(target.error());
}

base::Result<void> NewRoot::mount_one(const Mount& mount, base::Fd& source) {
    const int root = root_.get();
    switch (mount.kind) {
        case MountKind::directory: {
            auto made = make_directory(root, mount.guest, mount.mode);
            return made ? base::Result<void>{} : std::unexpected(made.error());
        }
        case MountKind::symlink:
            return put_symlink(root, mount);
        case MountKind::proc:
            return mount_proc(mount, source);
        case MountKind::hide_file:
        case MountKind::hide_directory:
            return hide(mount);
        case MountKind::text_file:
            return cover_with_text(root, mount);
        case MountKind::tmpfs:
        case MountKind::devpts:
            // The root itself is made by attach().
            return mount.guest == "/" ? base::Result<void>{} : mount_new_filesystem(root, mount);
        case MountKind::alias:
            return mount_alias(mount);
        case MountKind::bind:
        case MountKind::device:
            break;
    }
    const int tree = mount.fd ? mount.fd->get() : source.get();
    auto target = mount_point_for(root, mount, tree);
    if (!target) {
        return std::unexpected(target.error());
    }
    if (auto moved = move_here(tree, target->get(), mount.guest); !moved) {
        return moved;
    }
    return set_attributes(tree, attributes_of(mount), mount.kind == MountKind::bind);
}

base::Result<void> NewRoot::mount_all(const std::vector<Mount>& mounts) {
    for (std::size_t i = 0; i < mounts.size(); ++i) {
        if (auto mounted = mount_one(mounts[i], sources_[i]); !mounted) {
            return mounted;
        }
        sources_[i].reset();
    }
    return {};
}

base::Result<void> NewRoot::seal() {
    host_.reset();
    host_namespace_.reset();
    own_namespace_.reset();
    auto sealed = set_attributes(root_.get(), MOUNT_ATTR_RDONLY, false);
    root_.reset();
    return sealed;
}

}  // namespace ars::sandbox
