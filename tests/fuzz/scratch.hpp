// A real workspace for fuzz targets: made once, emptied between inputs, gone at the end.
#pragma once

#include "base/fd.hpp"
#include "fsmount/workspace.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::tests {

class Scratch {
  public:
    Scratch() {
        std::string pattern = "/tmp/ars-fuzz-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
        auto opened = fsmount::open_user_workspace(path_ + "/users", path_ + "/skills", "fuzz");
        if (!opened) {
            std::fprintf(stderr, "%s\n", opened.error().message.c_str());
            std::abort();
        }
        workspace_ = *opened;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        empty(path_);
        ::rmdir(path_.c_str());
    }

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::shared_ptr<fsmount::Workspace>& workspace() const {
        return workspace_;
    }
    // Removes what is below a directory, never through a link.
    static void empty(const std::string& directory) {
        const auto remove = [](const char* path, const struct stat*, int, FTW* at) {
            return at->level == 0 ? 0 : ::remove(path);
        };
        ::nftw(directory.c_str(), remove, 32, FTW_DEPTH | FTW_PHYS);
    }

  private:
    std::string path_;
    std::shared_ptr<fsmount::Workspace> workspace_;
};

}  // namespace ars::tests

// Ends the program where a fuzzer or a debugger sees it.
inline void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}
