// read_file: a page of numbered lines, or a range of bytes as base64.
#include "base/text.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/text_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace ars::tools {

namespace {

constexpr std::int64_t kLines = 2000;
constexpr std::int64_t kBytes = 128 * 1024;  // as base64 still below the cap of a result

struct Arguments {
    std::string file_path;
    std::int64_t offset = 0;
    std::optional<std::int64_t> limit;
    bool base64 = false;
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
            .integer("offset", &Arguments::offset, {.min = 0, .doc = "Lines (or bytes) to skip."})
            .integer(
                "limit",
                &Arguments::limit,
                {.min = 1,
                 .max = 131'072,
                 .doc = "Lines (or bytes) to show at most; default: 2000 lines or 131072 bytes."}
            )
            .boolean(
                "base64",
                &Arguments::base64,
                {.doc = "Show bytes as base64, for files that are not text; offset and limit then "
                        "count bytes."}
            );
    return table;
}

ToolResult read_bytes(
    const fsmount::OpenFile& file, const Arguments& arguments, const std::string& shown
) {
    const std::int64_t limit = std::min(arguments.limit.value_or(kBytes), kBytes);
    std::string bytes(static_cast<std::size_t>(limit), '\0');
    std::size_t got = 0;
    while (got < bytes.size()) {
        const ssize_t n = ::pread(
            file.fd.get(),
            bytes.data() + got,
            bytes.size() - got,
            arguments.offset + static_cast<std::int64_t>(got)
        );
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_result(fsmount::file_error(shown, errno));
        }
        if (n == 0) {
            break;
        }
        got += static_cast<std::size_t>(n);
    }
    bytes.resize(got);
    const std::uint64_t end = static_cast<std::uint64_t>(arguments.offset) + got;
    std::string text = fmt::format(
        "[base64 of {} bytes from byte {} on, of {}{}]\n{}\n",
        got,
        arguments.offset,
        size_text(file),
        end < file.info.size ? fmt::format("; continue with offset={}", end) : "",
        base::to_base64(bytes)
    );
    return {
        std::move(text),
        false,
        {{"base64", true}, {"bytes", got}, {"size", file.info.size}, {"more", end < file.info.size}
        },
        {}
    };
}

ToolResult read_file(const BlockingCall& call, const Arguments& arguments) {
    const auto file = call.paths.open_read(arguments.file_path);
    if (!file) {
        return error_result(file.error());
    }
    const std::string shown = call.paths.parse(arguments.file_path)->shown();
    if (arguments.base64) {
        return read_bytes(*file, arguments, shown);
    }
    const PageRequest request{
        static_cast<std::uint64_t>(arguments.offset),
        static_cast<std::uint64_t>(arguments.limit.value_or(kLines)),
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
    return {
        std::move(page->text),
        false,
        {{"lines", page->lines}, {"more", page->more}, {"size", file->info.size}},
        {}
    };
}

}  // namespace

std::unique_ptr<Tool> make_read_file_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "read_file",
            "Shows a text file with line numbers, at most `limit` lines from line `offset` + 1 on. "
            "Lines over "
            "5000 bytes are shown in parts (12, 12.1, 12.2). Files that are "
            "not text are shown as base64 when asked; for images, archives and documents use "
            "execute. Readable are /home/gem/user-data and /home/gem/skills.",
            {},
            Effect::read_only
        },
        fields(),
        read_file
    );
}

}  // namespace ars::tools
