#include "server/file_search.hpp"

#include "fsmount/layout.hpp"
#include "runtime/runs/projects.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <tuple>

namespace ars::server {

namespace {

using fsmount::FoundName;

// Of version control, virtual environments, package managers, editors and builds: what is in them
// nobody wrote.
constexpr std::array<std::string_view, 6> kMachineMade = {
    "node_modules", "venv", "__pycache__", "dist", "build", "target"
};

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    }
    return out;
}

std::string_view name_of(std::string_view relative) {
    const std::size_t slash = relative.rfind('/');
    return slash == std::string_view::npos ? relative : relative.substr(slash + 1);
}

bool is_hidden(std::string_view relative) { return name_of(relative).starts_with('.'); }

base::Result<fsmount::NameSearch> search_in(
    const FileScope& scope, std::size_t results, const fsmount::SearchFilter& filter
) {
    const auto start = scope.paths.open_directory(scope.guest(""));
    if (!start) {
        if (start.error().code == "not_found") {
            return fsmount::NameSearch{};  // the first run or the first file makes it
        }
        return std::unexpected(start.error());
    }
    return fsmount::search_names(*start, {.results = results}, filter);
}

// The exact name, names that begin with the text, names that hold it, paths that do; the short ones
// first.
std::tuple<int, std::size_t, std::string_view> rank(
    const FoundName& found, const std::string& text
) {
    const std::string name = lowered(name_of(found.relative));
    const int kind = name == text ? 0 : name.starts_with(text) ? 1 : name.contains(text) ? 2 : 3;
    return {kind, found.relative.size(), found.relative};
}

void add_mentions(
    boost::json::array& out,
    const FileScope& scope,
    std::string_view source,
    const std::string& text,
    const std::function<bool(const std::string&)>& passes_over
) {
    const auto matches = [&text](const std::string& relative) {
        return lowered(relative).contains(text);
    };
    auto search = search_in(scope, kMentionCandidates, {matches, passes_over});
    if (!search) {
        return;  // a directory that became something else holds nothing to mention
    }
    std::ranges::sort(search->found, {}, [&text](const FoundName& found) {
        return rank(found, text);
    });
    for (const FoundName& found : search->found) {
        if (out.size() == kMentionResults) {
            return;
        }
        const bool is_dir = found.info.kind == fsmount::FileKind::directory;
        const std::string path =
            fsmount::guest_workdir(scope.workdir) + "/" + found.relative + (is_dir ? "/" : "");
        out.push_back(boost::json::object{
            {"name", fsmount::quote_path(name_of(found.relative))},
            {"path", fsmount::quote_path(path)},
            {"is_dir", is_dir},
            {"source", source}
        });
    }
}

}  // namespace

bool is_unbound_project(std::string_view workspace_path, const std::vector<std::string>& linked) {
    return runs::is_managed_workdir(workspace_path) &&
           std::ranges::none_of(linked, [workspace_path](const std::string& workdir) {
               return (workdir + "/").starts_with(std::string(workspace_path) + "/");
           });
}

base::Result<fsmount::NameSearch> search_files(
    const FileScope& scope, const FileQuery& query, std::size_t results
) {
    const std::string text = lowered(query.text);
    const bool in_path = text.contains('/');
    const auto matches = [&text, in_path](const std::string& relative) {
        return lowered(in_path ? std::string_view(relative) : name_of(relative)).contains(text);
    };
    const auto passes_over = [&scope, &query](const std::string& relative) {
        return (!query.include_hidden && is_hidden(relative)) ||
               (!query.include_unbound && scope.workdir.empty() &&
                is_unbound_project(relative, query.linked));
    };
    return search_in(scope, results, {matches, passes_over});
}

boost::json::array search_mentions(
    const FileScope* thread, const FileScope& workspace, const FileQuery& query
) {
    const std::string text = lowered(query.text);
    const auto machine_made = [](const std::string& relative) {
        return is_hidden(relative) ||
               std::ranges::find(kMachineMade, name_of(relative)) != kMachineMade.end();
    };
    boost::json::array out;
    if (thread != nullptr) {
        add_mentions(out, *thread, "thread", text, machine_made);
    }
    const std::string shown = thread != nullptr ? thread->workdir : "";
    const auto elsewhere = [&](const std::string& relative) {
        return machine_made(relative) || relative == shown ||
               is_unbound_project(relative, query.linked);
    };
    add_mentions(out, workspace, "workspace", text, elsewhere);
    return out;
}

}  // namespace ars::server
