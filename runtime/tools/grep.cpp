// grep: lines that hold a literal text.
#include "base/text.hpp"
#include "fsmount/tree_walk.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/file_search.hpp"
#include "runtime/tools/glob_pattern.hpp"
#include "runtime/tools/search_roots.hpp"

#include <fmt/format.h>

#include <optional>

namespace ars::tools {

namespace {

constexpr std::size_t kGrepLines = 2000;  // lines or files in one answer
constexpr std::size_t kGrepBytes = 128 * 1024;
constexpr std::size_t kGrepLineBytes = 500;  // shown of one line

enum class OutputMode : std::uint8_t { files_with_matches, content, count };

struct Arguments {
    std::string pattern;
    std::string path = ".";
    std::optional<std::string> glob;
    OutputMode output_mode = OutputMode::files_with_matches;
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text(
                "pattern",
                &Arguments::pattern,
                {.required = true,
                 .min = 1,
                 .max = 4096,
                 .doc = "The text to find, taken literally, within one line."}
            )
            .text(
                "path",
                &Arguments::path,
                {.doc = "A file, or a directory searched with all below it; default: the working "
                        "directory."}
            )
            .text(
                "glob",
                &Arguments::glob,
                {.doc = "Only files whose name matches, such as \"*.py\"."}
            )
            .choice(
                "output_mode",
                &Arguments::output_mode,
                {{"files_with_matches", OutputMode::files_with_matches},
                 {"content", OutputMode::content},
                 {"count", OutputMode::count}},
                {.doc =
                     "File names, matching lines with numbers, or matching lines counted per file."}
            );
    return table;
}

class Grep {
  public:
    Grep(const BlockingCall& call, const Arguments& arguments, std::optional<GlobPattern> filter)
        : call_(call), arguments_(arguments), filter_(std::move(filter)) {}

    // False when no more can be shown.
    bool search(const base::Fd& file, const std::string& guest) {
        const std::string shown = fsmount::quote_path(guest);
        const auto found = [&](const FoundLine& line) {
            if (arguments_.output_mode == OutputMode::content) {
                add(fmt::format(
                    "{}:{}: {}\n", shown, line.number, base::utf8_head(line.text, kGrepLineBytes)
                ));
                return !full();
            }
            return arguments_.output_mode == OutputMode::count;
        };
        const FileSearch result = search_file(file, arguments_.pattern, call_.deadline, found);
        skipped_binary_ += result.binary ? 1 : 0;
        if (result.lines > 0) {
            ++files_;
            lines_ += result.lines;
            if (arguments_.output_mode == OutputMode::files_with_matches) {
                add(shown + "\n");
            } else if (arguments_.output_mode == OutputMode::count) {
                add(fmt::format("{}: {}\n", shown, result.lines));
            }
        }
        if (!result.complete && call_.deadline.passed()) {
            stopped_by_ = "the time limit";
        }
        return !full() && stopped_by_.empty();
    }

    void search_tree(const SearchRoot& root) {
        const auto visit = [&](const fsmount::WalkEntry& entry) {
            if (entry.kind == fsmount::FileKind::other) {
                skip_special(entry.relative);
                return fsmount::WalkStep::go_on;
            }
            if (entry.kind != fsmount::FileKind::file || !selected(entry)) {
                return fsmount::WalkStep::go_on;
            }
            const std::string shown = root.guest + "/" + entry.relative;
            const auto file = fsmount::open_entry(entry.directory, entry.name.c_str(), shown);
            if (!file) {  // it may as well be gone
                unreadable_ += file.error().code == "permission_denied" ? 1 : 0;
                return fsmount::WalkStep::go_on;
            }
            return search(file->fd, shown) ? fsmount::WalkStep::go_on : fsmount::WalkStep::stop;
        };
        const auto report = fsmount::walk_tree(root.directory, {.deadline = call_.deadline}, visit);
        unreadable_ += report.unreadable;
        if (!report.complete) {
            stopped_by_ = report.stopped_by;
        }
    }

    ToolResult result() {
        if (text_.empty()) {
            text_ = fmt::format("No line holds \"{}\".\n", arguments_.pattern);
        }
        if (full() && stopped_by_.empty()) {
            stopped_by_ = "more matches than one answer shows";
        }
        if (!stopped_by_.empty()) {
            text_ += fmt::format("[incomplete: {}; narrow the path or the glob]\n", stopped_by_);
        }
        if (!skipped_special_.empty()) {
            text_ += fmt::format("[skipped, not_regular_file: {}]\n", skipped_special_);
        }
        if (unreadable_ > 0) {
            text_ += fmt::format(
                "[skipped, permission_denied: files and directories: {}]\n", unreadable_
            );
        }
        if (skipped_binary_ > 0) {
            text_ += fmt::format("[skipped {} binary files]\n", skipped_binary_);
        }
        return {
            std::move(text_),
            false,
            {{"files", files_}, {"lines", lines_}, {"complete", stopped_by_.empty()}},
            {}
        };
    }

  private:
    void add(const std::string& line) {
        text_ += line;
        ++shown_;
    }
    // Names some of them.
    void skip_special(const std::string& relative) {
        constexpr std::size_t kShown = 200;
        if (skipped_special_.size() < kShown) {
            skipped_special_ +=
                (skipped_special_.empty() ? "" : ", ") + fsmount::quote_path(relative);
        } else if (!skipped_special_.ends_with("...")) {
            skipped_special_ += ", ...";
        }
    }
    [[nodiscard]] bool full() const { return shown_ >= kGrepLines || text_.size() >= kGrepBytes; }

    // A glob with a slash is about the path, one without about the name.
    [[nodiscard]] bool selected(const fsmount::WalkEntry& entry) const {
        if (!filter_) {
            return true;
        }
        const bool about_path = arguments_.glob->find('/') != std::string::npos;
        return filter_->matches(about_path ? entry.relative : entry.name);
    }

    const BlockingCall& call_;
    const Arguments& arguments_;
    std::optional<GlobPattern> filter_;
    std::string text_;
    std::string stopped_by_;
    std::string skipped_special_;
    std::size_t skipped_binary_ = 0;
    std::size_t unreadable_ = 0;
    std::size_t shown_ = 0;
    std::size_t files_ = 0;
    std::uint64_t lines_ = 0;
};

ToolResult grep(const BlockingCall& call, const Arguments& arguments) {
    if (arguments.pattern.find('\n') != std::string::npos) {
        return error_result(
            {base::ErrorKind::invalid,
             "invalid_argument",
             "pattern has a line feed; search for a text within one line",
             0}
        );
    }
    std::optional<GlobPattern> filter;
    if (arguments.glob) {
        auto parsed = GlobPattern::parse(*arguments.glob);
        if (!parsed) {
            return error_result(parsed.error());
        }
        filter = std::move(*parsed);
    }
    Grep job(call, arguments, std::move(filter));
    const auto roots = open_search_roots(call.paths, arguments.path);
    if (roots) {
        for (const SearchRoot& root : *roots) {
            job.search_tree(root);
        }
        return job.result();
    }
    if (roots.error().code != "not_a_directory") {
        return error_result(roots.error());
    }
    const auto file = call.paths.open_read(arguments.path);
    if (!file) {
        return error_result(file.error());
    }
    job.search(file->fd, call.paths.parse(arguments.path)->text());
    return job.result();
}

}  // namespace

std::unique_ptr<Tool> make_grep_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "grep",
            "Finds a literal text (no regular expression: for those use execute with grep -E) in "
            "one file or all "
            "files below a directory. Links are not followed, binary files are skipped.",
            {},
            Effect::read_only
        },
        fields(),
        grep
    );
}

}  // namespace ars::tools
