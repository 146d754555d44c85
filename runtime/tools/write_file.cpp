// write_file: a whole file at once, old or new content and nothing between.
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"

#include <fmt/format.h>

namespace ars::tools {

namespace {

struct Arguments {
    std::string file_path;
    std::string content;
    bool overwrite = false;
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text(
                "file_path",
                &Arguments::file_path,
                {.required = true, .doc = "Where; missing directories are made."}
            )
            .text("content", &Arguments::content, {.required = true, .doc = "The whole content."})
            .boolean("overwrite", &Arguments::overwrite, {.doc = "Replace the file if it exists."});
    return table;
}

// Whether the file already holds what an interrupted call was about to write.
bool already_written(const BlockingCall& call, const Arguments& arguments) {
    const auto file = call.paths.open_read(arguments.file_path);
    if (!file || file->info.size != arguments.content.size()) {
        return false;
    }
    const auto text = base::read_to_end(file->fd.get(), arguments.content.size());
    return text && *text == arguments.content;
}

ToolResult write_file(const BlockingCall& call, const Arguments& arguments) {
    const auto path = call.paths.parse(arguments.file_path);
    if (!path) {
        return error_result(path.error());
    }
    const boost::json::object facts{{"path", path->shown()}, {"bytes", arguments.content.size()}};
    if (call.rerun && already_written(call, arguments)) {
        return {fmt::format("{} was already written.", path->shown()), false, facts, {}};
    }
    if (call.rerun && call.paths.stat(arguments.file_path)) {
        // Not ours to replace blindly: somebody may have written after the interrupted call did.
        return tool_error(fmt::format(
            "The server was restarted while this call was running, and {} now holds something "
            "else. "
            "Look at it before you write it again.",
            path->shown()
        ));
    }
    const auto written =
        call.paths.write_file(arguments.file_path, arguments.content, {arguments.overwrite, {}});
    if (!written && written.error().code == "already_exists") {
        base::Error error = written.error();
        error.message += "; change it with edit_file, or replace it with overwrite: true";
        return error_result(error);
    }
    if (!written) {
        return error_result(written.error());
    }
    return {
        fmt::format(
            "{} {} ({} bytes).",
            *written ? "Wrote" : "Replaced",
            path->shown(),
            arguments.content.size()
        ),
        false,
        facts,
        {}
    };
}

}  // namespace

std::unique_ptr<Tool> make_write_file_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "write_file",
            "Writes a new file below /home/gem/user-data; missing directories are made. An "
            "existing file is "
            "refused unless `overwrite` is true; to change a part of one use edit_file.",
            {},
            // Only because a rerun compares first.
            Effect::idempotent
        },
        fields(),
        write_file
    );
}

}  // namespace ars::tools
