#include "runtime/tools/search_roots.hpp"

#include "fsmount/layout.hpp"

namespace ars::tools {

base::Result<std::vector<SearchRoot>> open_search_roots(
    const fsmount::Paths& paths, std::string_view path
) {
    std::vector<SearchRoot> roots;
    if (path == "/" || path == "/home" || path == "/home/gem") {
        for (const std::string_view guest : {fsmount::kSkills, fsmount::kUserData}) {
            if (auto directory = paths.open_directory(guest)) {
                roots.push_back({std::move(*directory), std::string(guest)});
            }
        }
        return roots;
    }
    auto directory = paths.open_directory(path);
    if (!directory) {
        return std::unexpected(directory.error());
    }
    roots.push_back({std::move(*directory), paths.parse(path)->text()});
    return roots;
}

}  // namespace ars::tools
