#include "server/exec_workspace.hpp"

#include "fsmount/layout.hpp"
#include "fsmount/tree_removal.hpp"

#include <cerrno>
#include <cstdlib>

#include <unistd.h>

namespace ars::server {

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

TemporaryWorkspace::~TemporaryWorkspace() { fsmount::remove_tree(path_); }

}  // namespace ars::server
