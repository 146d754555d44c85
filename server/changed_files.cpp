#include "server/changed_files.hpp"

#include "fsmount/layout.hpp"
#include "fsmount/paths.hpp"

namespace ars::server {

namespace {

constexpr int kMaxDepth = 6;
constexpr std::size_t kMaxFiles = 100;
constexpr std::size_t kMaxEntries = 1000;  // of one directory

void collect(
    const fsmount::Paths& paths,
    const std::string& prefix,
    int depth,
    std::int64_t since_ms,
    std::vector<ChangedFile>& out
) {
    const auto page =
        paths.list_directory(prefix.empty() ? "." : fsmount::quote_path(prefix), "", kMaxEntries);
    if (!page) {
        return;
    }
    for (const fsmount::DirectoryEntry& entry : page->entries) {
        if (out.size() >= kMaxFiles) {
            return;
        }
        const std::string path = prefix.empty() ? entry.name : prefix + "/" + entry.name;
        if (entry.info.kind == fsmount::FileKind::directory && depth < kMaxDepth) {
            collect(paths, path, depth + 1, since_ms, out);
        } else if (entry.info.kind == fsmount::FileKind::file &&
                   entry.info.modified_ms >= since_ms) {
            out.push_back({fsmount::quote_path(path), entry.info.size});
        }
    }
}

}  // namespace

std::vector<ChangedFile> changed_files(
    std::shared_ptr<const fsmount::Workspace> workspace,
    const std::string& workdir_path,
    std::int64_t since_ms
) {
    const fsmount::Paths paths(std::move(workspace), fsmount::guest_workdir(workdir_path));
    std::vector<ChangedFile> out;
    collect(paths, "", 0, since_ms, out);
    return out;
}

}  // namespace ars::server
