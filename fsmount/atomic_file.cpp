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

std::string temporary_name() {
    return std::string(kTemporaryHead) + base::random_uuid() + std::string(kTemporaryTail);
}

bool is_temporary(std::string_view name) {
    return name.size() == kTemporaryHead.size() + kUuidBytes + kTemporaryTail.size() &&
           name.starts_with(kTemporaryHead) && name.ends_with(kTemporaryTail);
}

// Gives a file that has no name one; fails with EEXIST when it is taken.
int give_name(const base::Fd& file, int directory, const std::string& name) {
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file.get());
    return ::linkat(AT_FDCWD, link.data(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0
                                                                                            : errno;
}

int rename_exclusively(const TemporaryName& from, int directory, const char* to) {
    const char* const name = from.name().c_str();
    if (::syscall(SYS_renameat2, from.directory(), name, directory, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM) {
        return errno;
    }
    // A file system without the flag: a hard link refuses an existing name as well.
    if (::linkat(from.directory(), name, directory, to, 0) != 0) {
        return errno;
    }
    ::unlinkat(from.directory(), name, 0);
    return 0;
}

// errno of giving the filled file the name it is for, 0 = done.
int give_final_name(const base::Fd& file, const FileReplacement& target, TemporaryName& temporary) {
    if (!temporary.given() && !target.replaces) {
        return give_name(file, target.directory, target.name);
    }
    if (!temporary.given()) {
        // No call replaces a name by a file without one: the second name lives for this moment.
        auto directory = base::duplicate(target.directory);
        if (!directory) {
            return directory.error().sys_errno;
        }
        TemporaryName moment(std::move(*directory), temporary_name());
        if (const int error = give_name(file, moment.directory(), moment.name()); error != 0) {
            moment.forget();
            return error;
        }
        temporary = std::move(moment);
    }
    const char* const to = target.name.c_str();
    int error = 0;
    if (!target.replaces) {
        error = rename_exclusively(temporary, target.directory, to);
    } else if (::renameat(temporary.directory(), temporary.name().c_str(), target.directory, to) !=
               0) {
        error = errno;
    }
    if (error == 0) {
        temporary.forget();
    }
    return error;
}

}  // namespace

TemporaryName::~TemporaryName() {
    if (given()) {
        ::unlinkat(directory_.get(), name_.c_str(), 0);
    }
}

// A living writer holds a lock on its temporary file; one that was killed left the name behind.
void sweep_temporary_names(int directory) {
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

base::Result<NewFile> NewFile::make(int directory, const std::string& shown) {
    NewFile out;
    out.file_ = base::Fd(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!out.file_) {  // a file system without unnamed files
        auto kept = base::duplicate(directory);
        if (!kept) {
            return std::unexpected(kept.error());
        }
        constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        const std::string name = temporary_name();
        out.file_ = base::Fd(::openat(directory, name.c_str(), kFlags, 0600));
        if (!out.file_) {
            return std::unexpected(file_error(shown, errno));
        }
        out.temporary_ = TemporaryName(std::move(*kept), name);
    }
    // Held to the end of this object, or of this process; see sweep_temporary_names().
    ::flock(out.file_.get(), LOCK_EX | LOCK_NB);
    return out;
}

base::Result<void> NewFile::write(std::string_view bytes, const std::string& shown) {
    if (auto written = base::write_all(file_.get(), bytes); !written) {
        return std::unexpected(file_error(shown, written.error().sys_errno));
    }
    return {};
}

base::Result<void> NewFile::put_in_place(const FileReplacement& target, const std::string& shown) {
    if (target.replaces) {
        // Only to a group we belong to: losing it is better than refusing the write.
        [[maybe_unused]] const int kept =
            ::fchown(file_.get(), static_cast<uid_t>(-1), target.group);
    }
    if (::fchmod(file_.get(), target.mode) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    if (const int error = give_final_name(file_, target, temporary_); error != 0) {
        return std::unexpected(file_error(shown, error));
    }
    return {};
}

base::Result<void> replace_file(
    const FileReplacement& target, std::string_view bytes, const std::string& shown
) {
    sweep_temporary_names(target.directory);
    auto file = NewFile::make(target.directory, shown);
    if (!file) {
        return std::unexpected(file.error());
    }
    if (auto written = file->write(bytes, shown); !written) {
        return written;
    }
    return file->put_in_place(target, shown);
}

}  // namespace ars::fsmount
