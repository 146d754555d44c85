#include "runtime/store/backup.hpp"

#include "base/fd.hpp"
#include "runtime/store/directory.hpp"
#include "runtime/store/lmdb_env.hpp"
#include "runtime/store/soundness.hpp"
#include "runtime/store/tables.hpp"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::store {

namespace {

constexpr const char* kData = "/data.mdb";  // name given by LMDB
constexpr const char* kPart = "/data.mdb.part";
constexpr unsigned kReaders = 1;

std::unexpected<base::Error> failed(const std::string& what, int sys_errno) {
    return std::unexpected(to_error(sys_errno, base::errno_error("", what, sys_errno).message));
}

bool exists(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
}

// A file that is written under another name first, and is there whole or not at all.
class PartFile {
  public:
    explicit PartFile(const std::string& directory)
        : directory_(directory), part_(directory + kPart) {}
    PartFile(const PartFile&) = delete;
    PartFile& operator=(const PartFile&) = delete;
    ~PartFile() {
        if (fd_) {
            ::unlink(part_.c_str());
        }
    }

    base::Result<int> open() {
        ::unlink(part_.c_str());  // of an earlier try that was killed
        auto fd = base::open_file(part_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (!fd) {
            return failed("create " + part_, fd.error().sys_errno);
        }
        fd_ = *std::move(fd);
        return fd_.get();
    }

    base::Result<std::size_t> finish() {
        struct stat info{};
        if (::fsync(fd_.get()) != 0 || ::fstat(fd_.get(), &info) != 0) {
            return failed("sync " + part_, errno);
        }
        if (::rename(part_.c_str(), (directory_ + kData).c_str()) != 0) {
            return failed("rename " + part_, errno);
        }
        fd_.reset();
        if (auto synced = sync_directory(directory_); !synced) {
            return std::unexpected(synced.error());
        }
        return static_cast<std::size_t>(info.st_size);
    }

  private:
    std::string directory_;
    std::string part_;
    base::Fd fd_;
};

base::Result<void> copy_file(int from, int to, const std::string& name) {
    for (;;) {
        const ssize_t n = ::sendfile(to, from, nullptr, std::size_t{1} << 30U);
        if (n == 0) {
            return {};
        }
        if (n < 0 && errno != EINTR) {
            return failed("copy " + name, errno);
        }
    }
}

// Whether this program can serve it. In a directory of its own: LMDB wants its names.
base::Result<void> check_store(const std::string& directory, std::size_t max_size) {
    auto env = Environment::open({
        .directory = directory,
        .max_size = max_size,
        .tables = kTableCount,
        .readers = kReaders,
        .sync = true,
        .read_only = false,
    });
    if (!env) {
        return std::unexpected(env.error());
    }
    const auto extended = extend_data_file(directory, env->used_bytes());
    if (!extended) {
        return std::unexpected(extended.error());
    }
    const auto damaged =
        base::fail(base::ErrorKind::io, "store_damaged", "the backup is damaged: use another one");
    if (*extended) {  // it lost its end
        return damaged;
    }
    auto tables = open_tables(*env);
    if (!tables) {
        return std::unexpected(tables.error());
    }
    return is_sound(*env, *tables) ? base::Result<void>{} : damaged;
}

// The place where a backup is checked before it becomes the store; gone at the end.
class CheckPlace {
  public:
    explicit CheckPlace(const std::string& store) : path_(store + "/restoring") {}
    CheckPlace(const CheckPlace&) = delete;
    CheckPlace& operator=(const CheckPlace&) = delete;
    ~CheckPlace() { remove(); }

    base::Result<std::string> make() {
        remove();
        if (::mkdir(path_.c_str(), 0700) != 0) {
            return failed("mkdir " + path_, errno);
        }
        return path_;
    }

  private:
    void remove() {
        for (const char* name : {kData, kPart, "/lock.mdb"}) {
            ::unlink((path_ + name).c_str());
        }
        ::rmdir(path_.c_str());
    }
    std::string path_;
};

}  // namespace

base::Result<std::size_t> back_up(const std::string& from, const std::string& to) {
    if (!exists(from + kData)) {
        return base::fail(base::ErrorKind::not_found, "no_store", "there is no store in " + from);
    }
    if (exists(to + kData)) {
        return base::fail(
            base::ErrorKind::conflict,
            "backup_exists",
            to + " holds a backup already: choose an empty directory"
        );
    }
    auto env = Environment::open({
        .directory = from,
        .max_size = 0,
        .tables = kTableCount,
        .readers = kReaders,
        .sync = true,
        .read_only = true,
    });
    if (!env) {
        return std::unexpected(env.error());
    }
    PartFile file(to);
    const auto fd = file.open();
    if (!fd) {
        return std::unexpected(fd.error());
    }
    if (const int code = mdb_env_copyfd2(env->get(), *fd, MDB_CP_COMPACT); code != MDB_SUCCESS) {
        return std::unexpected(to_error(code, "copy the store to " + to + ": " + mdb_strerror(code))
        );
    }
    return file.finish();
}

base::Result<std::size_t> restore(
    const std::string& from, const std::string& to, std::size_t max_size
) {
    auto backup = base::open_file(from + kData, O_RDONLY | O_NOFOLLOW);
    if (!backup) {
        return base::fail(
            base::ErrorKind::not_found,
            "no_backup",
            "no backup can be read in " + from + ": " + backup.error().message
        );
    }
    // Against a server that starts meanwhile.
    auto lock = take_directory(to);
    if (!lock) {
        return std::unexpected(lock.error());
    }
    if (exists(to + kData)) {
        return base::fail(
            base::ErrorKind::conflict,
            "store_exists",
            "there is a store in " + to + " already, and it is not replaced: move it away first"
        );
    }
    CheckPlace checked(to);
    auto place = checked.make();
    if (!place) {
        return std::unexpected(place.error());
    }
    PartFile copy(*place);
    auto fd = copy.open();
    if (!fd) {
        return std::unexpected(fd.error());
    }
    if (auto copied = copy_file(backup->get(), *fd, from + kData); !copied) {
        return std::unexpected(copied.error());
    }
    auto bytes = copy.finish();
    if (!bytes) {
        return bytes;
    }
    if (auto sound = check_store(*place, max_size); !sound) {
        return std::unexpected(sound.error());
    }
    if (::rename((*place + kData).c_str(), (to + kData).c_str()) != 0) {
        return failed("rename " + *place + kData, errno);
    }
    if (auto synced = sync_directory(to); !synced) {
        return std::unexpected(synced.error());
    }
    return bytes;
}

}  // namespace ars::store
