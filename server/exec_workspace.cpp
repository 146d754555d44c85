#include "server/exec_workspace.hpp"

#include "base/fd.hpp"
#include "fsmount/layout.hpp"

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::server {

namespace {

// Deeper trees than this are left behind rather than followed: each level holds one descriptor.
constexpr int kDeepest = 512;

void empty_directory(int directory, int depth) {
    DIR* const listing = ::fdopendir(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (listing == nullptr) {
        return;
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    ::closedir(listing);
    for (const std::string& name : names) {
        if (::unlinkat(directory, name.c_str(), 0) == 0 || (errno != EISDIR && errno != EPERM)) {
            continue;
        }
        constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        base::Fd below(::openat(directory, name.c_str(), kFlags));
        if (!below && errno == EACCES) {
            (void)::fchmodat(directory, name.c_str(), S_IRWXU, 0);
            below = base::Fd(::openat(directory, name.c_str(), kFlags));
        }
        if (below && depth < kDeepest) {
            (void)::fchmod(below.get(), S_IRWXU);
            empty_directory(below.get(), depth + 1);
        }
        (void)::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
    }
}

}  // namespace

void remove_tree(const std::string& path) {
    const base::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory) {
        empty_directory(directory.get(), 0);
    }
    (void)::rmdir(path.c_str());
}

base::Result<std::unique_ptr<TemporaryWorkspace>> TemporaryWorkspace::make() {
    const char* const wanted = std::getenv("TMPDIR");
    std::string name = wanted != nullptr && *wanted == '/' ? wanted : "/tmp";
    name += "/ars-exec-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
        return base::fail_errno("workspace_failed", "make a temporary directory " + name, errno);
    }
    auto made = std::unique_ptr<TemporaryWorkspace>(new TemporaryWorkspace(name));
    if (::geteuid() == 0 && ::chown(name.c_str(), fsmount::kGemUid, fsmount::kGemGid) != 0) {
        return base::fail_errno("workspace_failed", "chown " + name, errno);
    }
    return made;
}

TemporaryWorkspace::~TemporaryWorkspace() { remove_tree(path_); }

}  // namespace ars::server
