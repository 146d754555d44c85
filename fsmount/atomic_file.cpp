#include "fsmount/atomic_file.hpp"

#include "base/digest.hpp"
#include "base/fd.hpp"
#include "fsmount/directory_stream.hpp"
#include "fsmount/guest_path.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::fsmount {

namespace {

constexpr std::string_view kTemporaryHead = ".ars-";
constexpr std::string_view kTemporaryTail = ".tmp";
constexpr std::size_t kUuidBytes = 36;
constexpr int kSweptNames = 20'000;  // of one directory: a write must not take seconds

// Removes the temporary name unless the rename took it away.
struct TemporaryName {
    int directory;
    std::string name;
    bool armed = false;
    ~TemporaryName() {
        if (armed) {
            ::unlinkat(directory, name.c_str(), 0);
        }
    }
};

bool is_temporary(std::string_view name) {
    return name.size() == kTemporaryHead.size() + kUuidBytes + kTemporaryTail.size() &&
           name.starts_with(kTemporaryHead) && name.ends_with(kTemporaryTail);
}

// A living writer holds a lock on its temporary file; one that was killed left the name behind.
void sweep_leftovers(int directory) {
    auto stream = DirectoryStream::read(directory, "");
    if (!stream) {
        return;  // a directory that may be written but not read
    }
    for (int i = 0; i < kSweptNames; ++i) {
        const auto item = stream->next();
        if (!item) {
            return;
        }
        if (!is_temporary(item->name)) {
            continue;
        }
        const std::string name(item->name);
        constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
        const base::Fd left(::openat(directory, name.c_str(), kFlags));
        struct stat status{};
        if (left && ::fstat(left.get(), &status) == 0 && S_ISREG(status.st_mode) &&
            ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) {
            ::unlinkat(directory, name.c_str(), 0);
        }
    }
}

// Gives a file that has no name one; fails with EEXIST when it is taken.
int give_name(const base::Fd& file, int directory, const std::string& name) {
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file.get());
    return ::linkat(AT_FDCWD, link.data(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0
                                                                                            : errno;
}

int rename_exclusively(int directory, const char* from, const char* to) {
    if (::syscall(SYS_renameat2, directory, from, directory, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM) {
        return errno;
    }
    // A file system without the flag: a hard link refuses an existing name as well.
    if (::linkat(directory, from, directory, to, 0) != 0) {
        return errno;
    }
    ::unlinkat(directory, from, 0);
    return 0;
}

// The content with its group and mode, before any name leads to it.
base::Result<void> fill(
    const base::Fd& file,
    const FileReplacement& target,
    std::string_view bytes,
    const std::string& shown
) {
    if (auto written = base::write_all(file.get(), bytes); !written) {
        return std::unexpected(file_error(shown, written.error().sys_errno));
    }
    if (target.replaces) {
        // Only to a group we belong to: losing it is better than refusing the write.
        [[maybe_unused]] const int kept =
            ::fchown(file.get(), static_cast<uid_t>(-1), target.group);
    }
    if (::fchmod(file.get(), target.mode) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    return {};
}

// errno of giving the filled file the name it is for, 0 = done.
int put_in_place(const base::Fd& file, const FileReplacement& target, TemporaryName& temporary) {
    const bool unnamed = !temporary.armed;
    if (unnamed && !target.replaces) {
        return give_name(file, target.directory, target.name);
    }
    if (unnamed) {
        // No call replaces a name by a file without one: the second name lives for this moment.
        if (const int error = give_name(file, target.directory, temporary.name); error != 0) {
            return error;
        }
        temporary.armed = true;
    }
    const char* const from = temporary.name.c_str();
    if (!target.replaces) {
        return rename_exclusively(target.directory, from, target.name.c_str());
    }
    return ::renameat(target.directory, from, target.directory, target.name.c_str()) == 0 ? 0
                                                                                          : errno;
}

}  // namespace

base::Result<void> replace_file(
    const FileReplacement& target, std::string_view bytes, const std::string& shown
) {
    sweep_leftovers(target.directory);
    TemporaryName temporary{
        target.directory,
        std::string(kTemporaryHead) + base::random_uuid() + std::string(kTemporaryTail)
    };
    base::Fd file(::openat(target.directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (!file) {  // a file system without unnamed files
        constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        file = base::Fd(::openat(target.directory, temporary.name.c_str(), kFlags, 0600));
        if (!file) {
            return std::unexpected(file_error(shown, errno));
        }
        temporary.armed = true;
    }
    // Held to the end of this function, or of this process; see sweep_leftovers().
    ::flock(file.get(), LOCK_EX | LOCK_NB);
    if (auto filled = fill(file, target, bytes, shown); !filled) {
        return filled;
    }
    if (const int error = put_in_place(file, target, temporary); error != 0) {
        return std::unexpected(file_error(shown, error));
    }
    temporary.armed = false;
    return {};
}

}  // namespace ars::fsmount
