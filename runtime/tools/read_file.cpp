// read_file: a page of numbered lines.
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/text_page.hpp"

#include <fmt/format.h>

namespace ars::tools {

namespace {

struct Arguments {
    std::string file_path;
    std::int64_t offset = 0;
    std::int64_t limit = 2000;
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text(
                "file_path",
                &Arguments::file_path,
                {.required = true,
                 .doc = "The file; a relative path starts at the working directory."}
            )
            .integer("offset", &Arguments::offset, {.min = 0, .doc = "Lines to skip."})
            .integer(
                "limit",
                &Arguments::limit,
                {.min = 1, .max = 100'000, .doc = "Lines to show at most."}
            );
    return table;
}

ToolResult read_file(const BlockingCall& call, const Arguments& arguments) {
    const auto file = call.paths.open_read(arguments.file_path);
    if (!file) {
        return error_result(file.error());
    }
    const std::string shown = call.paths.parse(arguments.file_path)->text();
    const PageRequest request{
        static_cast<std::uint64_t>(arguments.offset),
        static_cast<std::uint64_t>(arguments.limit),
        call.deadline
    };
    if (file->info.size == 0) {
        return {"[the file exists but is empty]", false, {{"lines", 0}}, {}};
    }
    auto page = read_page(*file, request, shown);
    if (!page) {
        return error_result(page.error());
    }
    if (page->more) {
        page->text += fmt::format(
            "[{}more lines follow: continue with offset={}]",
            page->note.empty() ? "" : page->note + "; ",
            request.offset + page->lines
        );
    }
    return {std::move(page->text), false, {{"lines", page->lines}, {"more", page->more}}, {}};
}

}  // namespace

std::unique_ptr<Tool> make_read_file_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "read_file",
            "Shows a text file with line numbers, at most `limit` lines from line `offset` + 1 on. "
            "Lines over "
            "5000 bytes are shown in parts (12, 12.1, 12.2). Only text: for images, archives and "
            "documents use "
            "execute. Readable are /home/gem/user-data and /home/gem/skills.",
            {},
            Effect::read_only
        },
        fields(),
        read_file
    );
}

}  // namespace ars::tools
