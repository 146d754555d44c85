// ls: one directory, sorted, in pages.
#include "base/clock.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"

#include <fmt/format.h>

namespace ars::tools {

namespace {

struct Arguments {
    std::string path = ".";
    std::string after;
    std::int64_t limit = 500;
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text(
                "path", &Arguments::path, {.doc = "The directory; default: the working directory."}
            )
            .text("after", &Arguments::after, {.doc = "Only names behind this one: the next page."})
            .integer("limit", &Arguments::limit, {.min = 1, .max = 2000, .doc = "Names at most."});
    return table;
}

std::string line_of(const fsmount::DirectoryEntry& entry) {
    const std::string name = fsmount::quote_path(entry.name);
    if (!entry.accessible) {
        return name + " (not accessible)\n";
    }
    switch (entry.info.kind) {
        case fsmount::FileKind::directory:
            return name + "/\n";
        case fsmount::FileKind::symlink:
            return fmt::format("{} -> {} (link)\n", name, fsmount::quote_path(entry.link_target));
        case fsmount::FileKind::file:
            return fmt::format(
                "{}  {} bytes  {}\n",
                name,
                entry.info.size,
                base::iso8601(entry.info.modified_ms).substr(0, 19)
            );
        case fsmount::FileKind::other:
            break;
    }
    return name + " (not a regular file)\n";
}

// "/" is not a directory of ours: what can be seen from there are the two roots.
ToolResult roots() {
    return {"/home/gem/user-data/\n/home/gem/skills/\n", false, {{"total", 2}}, {}};
}

ToolResult ls(const BlockingCall& call, const Arguments& arguments) {
    if (arguments.path == "/" || arguments.path == "/home/gem" || arguments.path == "/home/gem/") {
        return roots();
    }
    const auto after = fsmount::unquote_path(arguments.after);
    if (!after) {
        return error_result(after.error());
    }
    const auto page = call.paths.list_directory(
        arguments.path, *after, static_cast<std::size_t>(arguments.limit)
    );
    if (!page) {
        return error_result(page.error());
    }
    std::string text = fmt::format(
        "{}: {} {}\n",
        call.paths.parse(arguments.path)->shown(),
        page->total,
        page->total == 1 ? "entry" : "entries"
    );
    for (const fsmount::DirectoryEntry& entry : page->entries) {
        text += line_of(entry);
    }
    boost::json::object facts{{"total", page->total}, {"shown", page->entries.size()}};
    if (!page->cursor.empty()) {
        const std::string next = fsmount::quote_path(page->cursor);
        text += fmt::format("[{} more: continue with after=\"{}\"]\n", page->after_these, next);
        facts["after"] = next;
    }
    return {std::move(text), false, std::move(facts), {}};
}

}  // namespace

std::unique_ptr<Tool> make_ls_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "ls",
            "Lists a directory below /home/gem/user-data or /home/gem/skills, sorted by name: "
            "directories end in "
            "\"/\", files show size and time (UTC), links show where they lead. Names that are not "
            "plain text are quoted as in bash, $'a\\xff'; paths may be given in that form.",
            {},
            Effect::read_only
        },
        fields(),
        ls
    );
}

}  // namespace ars::tools
