#include "sandbox/new_root.hpp"

#include <cerrno>
#include <string>

#include <fcntl.h>
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
// The machine has about 3,000 for everybody (kernel.pty.max).
constexpr const char* kTerminals = "128";

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

base::Result<void> make_directory(const std::string& path, unsigned mode) {
    return ::mkdir(path.c_str(), mode) == 0 || errno == EEXIST ? base::Result<void>{}
                                                               : fail_step("mkdir " + path);
}

base::Result<void> make_file(const std::string& path) {
    const base::Fd made(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444));
    return made || errno == EEXIST ? base::Result<void>{} : fail_step("create " + path);
}

base::Result<base::Fd> copy_of(const char* path, bool recursive) {
    base::Fd copy(::open_tree(
        AT_FDCWD,
        path,
        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? static_cast<unsigned>(AT_RECURSIVE) : 0U)
    ));
    if (!copy) {
        return fail_step(std::string("open_tree ") + path);
    }
    return copy;
}

base::Result<void> put(const base::Fd& mount, const std::string& guest) {
    return ::move_mount(
               mount.get(),
               "",
               AT_FDCWD,
               guest.c_str(),
               MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS
           ) == 0
               ? base::Result<void>{}
               : fail_step("mount on " + guest);
}

// The mount point is made only where there is none: most are there already.
template <typename MakePoint>
base::Result<void> put_on_point(
    const base::Fd& mount, const std::string& guest, const MakePoint& make_point
) {
    auto done = put(mount, guest);
    if (done || done.error().sys_errno != ENOENT) {
        return done;
    }
    auto made = make_point();
    return made ? put(mount, guest) : made;
}

base::Result<void> put_on_directory(
    const base::Fd& mount, const std::string& guest, unsigned mode = 0755
) {
    return put_on_point(mount, guest, [&] { return make_directory(guest, mode); });
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

base::Result<void> make_point_for(const Mount& mount, const base::Fd& source) {
    struct stat info{};
    if (::fstat(source.get(), &info) != 0) {
        return fail_step("stat source of " + mount.guest);
    }
    return S_ISDIR(info.st_mode) ? make_directory(mount.guest, 0755) : make_file(mount.guest);
}

base::Result<void> put_symlink(const Mount& mount) {
    return ::symlink(mount.source.c_str(), mount.guest.c_str()) == 0 || errno == EEXIST
               ? base::Result<void>{}
               : fail_step("symlink " + mount.guest);
}

// The file lies in the root's own tmpfs under a name that is gone before anybody could see it: the
// mount keeps it.
base::Result<void> cover_with_text(const Mount& mount) {
    constexpr const char* kName = "/.text";
    const base::Fd file(::open(kName, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444));
    if (!file) {
        return fail_step("create the text of " + mount.guest);
    }
    if (auto written = base::write_all(file.get(), mount.source); !written) {
        return written;
    }
    auto cover = copy_of(kName, false);
    if (!cover) {
        return std::unexpected(cover.error());
    }
    constexpr unsigned kAttributes =
        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    if (auto sealed = set_attributes(cover->get(), kAttributes, false); !sealed) {
        return sealed;
    }
    if (auto done = put(*cover, mount.guest); !done && done.error().sys_errno != ENOENT) {
        return done;
    }
    // Only now: what has no name can't be mounted.
    return ::unlink(kName) == 0 ? base::Result<void>{}
                                : fail_step("unlink the text of " + mount.guest);
}

// Covers something that may be there. What is not there needs no cover.
base::Result<void> hide(const Mount& mount) {
    const bool directory = mount.kind == MountKind::hide_directory;
    auto cover = copy_of(directory ? kEmpty : "/dev/null", false);
    if (!cover) {
        return std::unexpected(cover.error());
    }
    const auto done = put(*cover, mount.guest);
    if (!done) {
        const int error = done.error().sys_errno;
        return error == ENOENT || error == ENOTDIR ? base::Result<void>{} : done;
    }
    constexpr unsigned kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    return set_attributes(
        cover->get(), kAttributes | (directory ? MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV : 0), false
    );
}

base::Result<void> mount_alias(const Mount& mount) {
    auto copy = copy_of(mount.source.c_str(), false);
    if (!copy) {
        return std::unexpected(copy.error());
    }
    return put_on_directory(*copy, mount.guest);
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

base::Result<void> mount_new_filesystem(const Mount& mount) {
    auto made = new_filesystem_of(mount);
    return made ? put_on_directory(*made, mount.guest) : std::unexpected(made.error());
}

base::Result<void> enter(const base::Fd& mount_namespace) {
    return ::setns(mount_namespace.get(), CLONE_NEWNS) == 0 ? base::Result<void>{}
                                                            : fail_step("setns NEWNS");
}

base::Result<base::Fd> namespace_of(const base::Fd& proc) {
    base::Fd found(::openat(proc.get(), "thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
    if (!found) {
        return fail_step("open ns/mnt");
    }
    return found;
}

}  // namespace

base::Result<void> NewRoot::make(const base::Fd& proc) {
    auto host = namespace_of(proc);
    if (!host) {
        return std::unexpected(host.error());
    }
    host_ = std::move(*host);
    if (::unshare(CLONE_NEWNS) != 0) {
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
    auto own = namespace_of(proc);
    if (!own) {
        return std::unexpected(own.error());
    }
    template_ = std::move(*own);
    return {};
}

base::Result<void> NewRoot::open_sources(const std::vector<Mount>& mounts) {
    if (auto entered = enter(host_); !entered) {
        return entered;
    }
    auto opened = open_all(mounts);
    auto back = enter(template_);
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
            source = copy_of(mount.source.c_str(), mount.kind == MountKind::bind);
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
    auto done = put_on_directory(source, mount.guest, 0555);
    return done && !fresh_proc_
               ? set_attributes(source.get(), kProcAttributes | MOUNT_ATTR_RDONLY, true)
               : done;
}

base::Result<void> NewRoot::mount_one(const Mount& mount, const base::Fd& source) {
    switch (mount.kind) {
        case MountKind::directory:
            return make_directory(mount.guest, mount.mode);
        case MountKind::symlink:
            return put_symlink(mount);
        case MountKind::proc:
            return mount_proc(mount, source);
        case MountKind::hide_file:
        case MountKind::hide_directory:
            return hide(mount);
        case MountKind::text_file:
            return cover_with_text(mount);
        case MountKind::tmpfs:
        case MountKind::devpts:
            return mount_new_filesystem(mount);
        case MountKind::alias:
            return mount_alias(mount);
        case MountKind::bind:
        case MountKind::device:
            break;
    }
    const base::Fd& tree = mount.fd ? *mount.fd : source;
    auto done = put_on_point(tree, mount.guest, [&] { return make_point_for(mount, tree); });
    return done ? set_attributes(tree.get(), attributes_of(mount), mount.kind == MountKind::bind)
                : done;
}

base::Result<void> NewRoot::mount_all(const std::vector<Mount>& mounts) {
    const mode_t before = ::umask(0);  // a mount point's mode is part of the plan
    base::Result<void> done;
    for (std::size_t i = 0; i < mounts.size() && done; ++i) {
        done = mount_one(mounts[i], sources_[i]);
        sources_[i].reset();
    }
    ::umask(before);
    return done;
}

base::Result<void> NewRoot::leave_template() {
    return ::unshare(CLONE_NEWNS) == 0 ? base::Result<void>{} : fail_step("unshare NEWNS");
}

base::Result<void> NewRoot::seal() {
    host_.reset();
    template_.reset();
    mount_attr attr{};
    attr.attr_set = MOUNT_ATTR_RDONLY;
    return ::mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof attr) == 0
               ? base::Result<void>{}
               : fail_step("make the root read-only");
}

}  // namespace ars::sandbox
