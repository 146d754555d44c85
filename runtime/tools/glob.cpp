// glob: names that match a pattern.
#include "fsmount/tree_walk.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/glob_pattern.hpp"
#include "runtime/tools/search_roots.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ars::tools {

namespace {

constexpr std::size_t kGlobResults = 1000;

struct Arguments {
    std::string pattern;
    std::string path = ".";
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text(
                "pattern",
                &Arguments::pattern,
                {.required = true,
                 .doc = "Such as \"*.csv\", \"**/*.py\" or \"src/**/test_*.{c,h}\"."}
            )
            .text(
                "path",
                &Arguments::path,
                {.doc = "The directory to search; default: the working directory; \"/\": all that "
                        "can be read."}
            );
    return table;
}

// An absolute pattern names its own directory: the parts before the first wildcard.
void split_absolute(std::string& pattern, std::string& path) {
    if (!pattern.starts_with('/')) {
        return;
    }
    const std::size_t wildcard = pattern.find_first_of("*?[{");
    const std::size_t slash = pattern.rfind('/', wildcard);
    path = slash == 0 ? "/" : pattern.substr(0, slash);
    pattern = pattern.substr(slash + 1);
}

ToolResult glob(const BlockingCall& call, const Arguments& arguments) {
    std::string pattern_text = arguments.pattern;
    std::string path = arguments.path;
    split_absolute(pattern_text, path);
    const auto pattern = GlobPattern::parse(pattern_text);
    if (!pattern) {
        return error_result(pattern.error());
    }
    const auto roots = open_search_roots(call.paths, path);
    if (!roots) {
        return error_result(roots.error());
    }
    std::vector<std::string> found;
    std::string stopped_by;
    std::size_t unreadable = 0;
    for (const SearchRoot& root : *roots) {
        const auto visit = [&](const fsmount::WalkEntry& entry) {
            if (entry.kind == fsmount::FileKind::directory) {
                return pattern->may_match_below(entry.relative) ? fsmount::WalkStep::go_on
                                                                : fsmount::WalkStep::skip;
            }
            if (pattern->matches(entry.relative)) {
                if (found.size() >= kGlobResults) {
                    stopped_by = fmt::format("more than {} matches", kGlobResults);
                    return fsmount::WalkStep::stop;
                }
                found.push_back(root.guest + "/" + entry.relative);
            }
            return fsmount::WalkStep::go_on;
        };
        const auto report = fsmount::walk_tree(root.directory, {.deadline = call.deadline}, visit);
        unreadable += report.unreadable;
        if (!report.complete) {
            stopped_by = report.stopped_by;
        }
    }
    std::ranges::sort(found);
    std::string text;
    for (const std::string& name : found) {
        text += fsmount::quote_path(name) + "\n";
    }
    if (found.empty()) {
        text = fmt::format("No file matches \"{}\" in {}.\n", pattern_text, path);
    }
    if (!stopped_by.empty()) {
        text += fmt::format("[incomplete: {}; narrow the pattern or the path]\n", stopped_by);
    }
    if (unreadable > 0) {
        text += fmt::format("[skipped, permission_denied: directories: {}]\n", unreadable);
    }
    return {
        std::move(text), false, {{"matches", found.size()}, {"complete", stopped_by.empty()}}, {}
    };
}

}  // namespace

std::unique_ptr<Tool> make_glob_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "glob",
            "Finds files by name, sorted: * and ? within a name, [a-z], {a,b}, and ** for any "
            "directories. "
            "\"*.csv\" looks in `path` itself, \"**/*.csv\" everywhere below it. Links are listed, "
            "not entered.",
            {},
            Effect::read_only
        },
        fields(),
        glob
    );
}

}  // namespace ars::tools
