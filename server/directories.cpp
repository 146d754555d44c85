#include "server/directories.hpp"

#include "base/fd.hpp"
#include "fsmount/layout.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::server {

using base::ErrorKind;
using base::fail;
using base::fail_errno;

namespace {

bool is_empty_directory(int fd) {
    base::Fd copy(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* directory = copy ? ::fdopendir(copy.get()) : nullptr;
    if (directory == nullptr) {
        return false;
    }
    [[maybe_unused]] const int owned_by_directory = copy.release();
    bool empty = true;
    while (const dirent* entry = ::readdir(directory)) {
        if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
            empty = false;
        }
    }
    ::closedir(directory);
    return empty;
}

base::Result<void> make_parents(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        const std::string parent = path.substr(0, slash);
        if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
            return fail_errno("directory_failed", "mkdir " + parent, errno);
        }
    }
    return {};
}

}  // namespace

base::Result<void> make_own_directory(const std::string& path) {
    if (auto made = make_parents(path); !made) {
        return made;
    }
    const bool fresh = ::mkdir(path.c_str(), 0700) == 0;
    if (!fresh && errno != EEXIST) {
        return fail_errno("directory_failed", "mkdir " + path, errno);
    }
    base::Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat info{};
    if (!directory || ::fstat(directory.get(), &info) != 0) {
        return fail_errno("directory_failed", "open directory " + path, errno);
    }
    const bool root = ::geteuid() == 0;
    const uid_t owner = root ? fsmount::kGemUid : ::geteuid();
    if (info.st_uid == owner) {
        return {};
    }
    if (root && info.st_uid == 0 && (fresh || is_empty_directory(directory.get()))) {
        if (::fchownat(directory.get(), "", fsmount::kGemUid, fsmount::kGemGid, AT_EMPTY_PATH) !=
            0) {
            return fail_errno("directory_failed", "chown " + path, errno);
        }
        return {};
    }
    return fail(
        ErrorKind::invalid,
        "directory_owner",
        fmt::format(
            "{} belongs to uid {} and the server runs as uid {}; if it is meant for ARS: chown -R "
            "{}:{} {}",
            path,
            info.st_uid,
            owner,
            owner,
            root ? fsmount::kGemGid : ::getegid(),
            path
        )
    );
}

base::Result<void> check_reachable(const std::string& path) {
    base::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory) {
        return {};
    }
    const int reason = errno;
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        const std::string parent = path.substr(0, slash);
        if (::access(parent.c_str(), X_OK) != 0) {
            return fail(
                ErrorKind::invalid,
                "directory_unreachable",
                fmt::format(
                    "{} can't be reached as uid {}: {} is closed to it; choose a directory "
                    "elsewhere",
                    path,
                    ::geteuid(),
                    parent
                )
            );
        }
    }
    return fail_errno("directory_unreachable", "open directory " + path, reason);
}

std::string state_directory() {
    const char* state_home = std::getenv("XDG_STATE_HOME");
    if (state_home != nullptr && *state_home == '/') {
        return std::string(state_home) + "/ars";
    }
    const char* home = std::getenv("HOME");
    if (::geteuid() == 0 || home == nullptr || *home != '/') {
        return "/var/lib/ars/local";
    }
    return std::string(home) + "/.local/state/ars";
}

}  // namespace ars::server
