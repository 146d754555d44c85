#include "fsmount/tree_removal.hpp"

#include "base/fd.hpp"

#include <cerrno>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::fsmount {

namespace {

// Deeper trees than this are left behind rather than followed: each level holds one descriptor.
constexpr int kDeepest = 512;

void empty_directory(int directory, int depth, base::Deadline deadline) {
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
        if (deadline.passed()) {
            return;
        }
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
            empty_directory(below.get(), depth + 1, deadline);
        }
        (void)::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
    }
}

}  // namespace

void remove_tree(const std::string& path, base::Deadline deadline) {
    (void)remove_tree_at(AT_FDCWD, path.c_str(), deadline);
}

bool remove_tree_at(int directory, const char* name, base::Deadline deadline) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const base::Fd tree(::openat(directory, name, kFlags));
    if (tree) {
        empty_directory(tree.get(), 0, deadline);
    }
    return ::unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace ars::fsmount
