#include "runtime/store/directory.hpp"

#include "base/deadline.hpp"
#include "runtime/store/lmdb_env.hpp"

#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::store {

namespace {

constexpr const char* kLockName = "/owner.lock";
constexpr const char* kReaderTable = "/lock.mdb";  // names given by LMDB
constexpr const char* kDataFile = "/data.mdb";
constexpr std::size_t kReaderSlot = 64;  // one cache line in LMDB's table
constexpr std::size_t kPage = 4096;
constexpr int kDescriptorsAtStart = 1024;
constexpr base::milliseconds kLockPatience{1000};
constexpr base::milliseconds kLockRetry{10};

std::unexpected<base::Error> failed(const std::string& what, int sys_errno) {
    return std::unexpected(to_error(sys_errno, base::errno_error("", what, sys_errno).message));
}

base::Result<void> make_directories(const std::string& directory) {
    for (std::size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
        const std::string part = directory.substr(0, end);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
            // A parent that exists may refuse in other words (EROFS, EACCES): only its absence
            // counts.
            const int sys_errno = errno;
            struct stat info{};
            if (::stat(part.c_str(), &info) != 0) {
                return failed("mkdir " + part, sys_errno);
            }
        }
        if (end == std::string::npos) {
            return {};
        }
    }
}

base::Result<base::Fd> open_in(const std::string& directory, const char* name) {
    const std::string path = directory + name;
    auto fd = base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!fd) {
        return failed("open " + path, fd.error().sys_errno);
    }
    return fd;
}

}  // namespace

base::Result<base::Fd> take_directory(const std::string& directory) {
    if (auto made = make_directories(directory); !made) {
        return std::unexpected(made.error());
    }
    auto lock = open_in(directory, kLockName);
    if (!lock) {
        return lock;
    }
    // A server that was killed while it started a process may leave the lock to that process for a
    // moment, and is restarted at once: only a lock that stays is somebody's.
    const auto give_up = base::Deadline::after(kLockPatience);
    while (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            return failed("flock " + directory + kLockName, errno);
        }
        if (!give_up.passed()) {
            std::this_thread::sleep_for(kLockRetry);
            continue;
        }
        const auto owner = base::read_to_end(lock->get(), 64);
        return base::fail(
            base::ErrorKind::conflict,
            "store_in_use",
            "another process" +
                (owner && !owner->empty() ? " (pid " + *owner + ")" : std::string()) + " uses " +
                directory + ": stop it, or give this one its own data_dir"
        );
    }
    // The pid is for the message above only; the lock is what counts.
    const std::string pid = std::to_string(::getpid());
    if (::ftruncate(lock->get(), 0) != 0) {
        return failed("truncate " + directory + kLockName, errno);
    }
    if (auto written = base::write_all(lock->get(), pid); !written) {
        return failed("write " + directory + kLockName, written.error().sys_errno);
    }
    return lock;
}

base::Result<void> reserve_reader_table(const std::string& directory, unsigned readers) {
    auto file = open_in(directory, kReaderTable);
    if (!file) {
        return std::unexpected(file.error());
    }
    const std::size_t bytes = ((readers + 2) * kReaderSlot + kPage - 1) / kPage * kPage;
    const int code = ::posix_fallocate(file->get(), 0, static_cast<off_t>(bytes));
    if (code != 0 && code != EOPNOTSUPP && code != EINVAL) {
        return failed("allocate " + directory + kReaderTable, code);
    }
    return {};
}

base::Result<bool> extend_data_file(const std::string& directory, std::size_t bytes) {
    auto file = open_in(directory, kDataFile);
    if (!file) {
        return std::unexpected(file.error());
    }
    struct stat info{};
    if (::fstat(file->get(), &info) != 0) {
        return failed("stat " + directory + kDataFile, errno);
    }
    if (static_cast<std::size_t>(info.st_size) >= bytes) {
        return false;
    }
    if (::ftruncate(file->get(), static_cast<off_t>(bytes)) != 0) {
        return failed("extend " + directory + kDataFile, errno);
    }
    return true;
}

void close_on_exec(const std::string& directory) {
    struct stat data{};
    struct stat table{};
    if (::stat((directory + kDataFile).c_str(), &data) != 0 ||
        ::stat((directory + kReaderTable).c_str(), &table) != 0) {
        return;
    }
    const auto same = [](const struct stat& a, const struct stat& b) {
        return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    };
    // LMDB shows only one of its three descriptors. They are among the lowest of a starting
    // process.
    for (int fd = 3; fd < kDescriptorsAtStart; ++fd) {
        struct stat info{};
        if (::fstat(fd, &info) == 0 && (same(info, data) || same(info, table))) {
            ::fcntl(fd, F_SETFD, FD_CLOEXEC);
        }
    }
}

base::Result<void> sync_directory(const std::string& directory) {
    auto fd = base::open_file(directory, O_RDONLY | O_DIRECTORY);
    if (!fd) {
        return failed("open " + directory, fd.error().sys_errno);
    }
    if (::fsync(fd->get()) != 0) {
        return failed("fsync " + directory, errno);
    }
    return {};
}

}  // namespace ars::store
