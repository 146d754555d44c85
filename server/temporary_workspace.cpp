#include "server/temporary_workspace.hpp"

#include <cerrno>
#include <cstdlib>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::server {

namespace {

// Removes what is in `directory`, never through a link. Deep trees are cut off at kMaxDepth: what a
// hostile command piled up then stays in the temporary directory.
void empty_directory(int directory, int depth) {
    constexpr int kMaxDepth = 256;
    // A tool may have taken the rights away.
    ::fchmod(directory, 0700);
    DIR* stream = ::fdopendir(::dup(directory));
    if (stream == nullptr) {
        return;
    }
    while (const dirent* entry = ::readdir(stream)) {
        const std::string name = entry->d_name;
        if (name == "." || name == ".." || ::unlinkat(directory, name.c_str(), 0) == 0) {
            continue;
        }
        if (depth < kMaxDepth) {
            ::fchmodat(directory, name.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
            const base::Fd child(
                ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            );
            if (child) {
                empty_directory(child.get(), depth + 1);
            }
        }
        ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
    }
    ::closedir(stream);
}

}  // namespace

base::Result<std::unique_ptr<TemporaryWorkspace>> TemporaryWorkspace::make() {
    const char* configured = std::getenv("TMPDIR");
    const std::string parent = configured != nullptr && *configured == '/' ? configured : "/tmp";
    std::string path = parent + "/ars-workspace-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
        return base::fail_errno("workspace_unavailable", "make a directory in " + parent, errno);
    }
    std::unique_ptr<TemporaryWorkspace> out(new TemporaryWorkspace(path));
    auto opened = fsmount::open_external_workspace(path, false);
    if (!opened) {
        return std::unexpected(opened.error());
    }
    out->workspace_ = std::move(*opened);
    return out;
}

TemporaryWorkspace::~TemporaryWorkspace() {
    {
        const base::Fd directory(
            ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        );
        if (directory) {
            empty_directory(directory.get(), 0);
        }
    }
    ::rmdir(path_.c_str());
}

}  // namespace ars::server
