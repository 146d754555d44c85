#include "fsmount/atomic_file.hpp"

#include "base/digest.hpp"
#include "base/fd.hpp"
#include "fsmount/guest_path.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::fsmount {

namespace {

// Removes the temporary name unless the rename took it away.
struct TemporaryName {
    int directory;
    std::string name;
    bool armed = true;
    ~TemporaryName() {
        if (armed) {
            ::unlinkat(directory, name.c_str(), 0);
        }
    }
};

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

}  // namespace

base::Result<void> replace_file(
    const FileReplacement& target, std::string_view bytes, const std::string& shown
) {
    TemporaryName temporary{target.directory, ".ars-" + base::random_uuid() + ".tmp"};
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    base::Fd file(::openat(target.directory, temporary.name.c_str(), kFlags, 0600));
    if (!file) {
        temporary.armed = false;
        return std::unexpected(file_error(shown, errno));
    }
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
    if (!target.replaces) {
        const int error =
            rename_exclusively(target.directory, temporary.name.c_str(), target.name.c_str());
        if (error != 0) {
            return std::unexpected(file_error(shown, error));
        }
    } else if (::renameat(
                   target.directory, temporary.name.c_str(), target.directory, target.name.c_str()
               ) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    temporary.armed = false;
    return {};
}

}  // namespace ars::fsmount
