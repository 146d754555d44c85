// edit_file: replaces a piece of a text file.
#include "base/limits.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/text_edit.hpp"

#include <fmt/format.h>

namespace ars::tools {

namespace {

constexpr std::size_t kEditBytes = 16 * base::limits::kMiB;  // held in memory twice

struct Arguments {
    std::string file_path;
    std::string old_string;
    std::string new_string;
    bool replace_all = false;
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text("file_path", &Arguments::file_path, {.required = true, .doc = "The file."})
            .text(
                "old_string",
                &Arguments::old_string,
                {.required = true, .doc = "The text to replace, exactly as it stands in the file."}
            )
            .text(
                "new_string",
                &Arguments::new_string,
                {.required = true, .doc = "What to put there, taken literally."}
            )
            .boolean(
                "replace_all",
                &Arguments::replace_all,
                {.doc = "Replace every place; else there must be exactly one."}
            );
    return table;
}

base::Result<std::string> read_whole(const fsmount::OpenFile& file, const std::string& shown) {
    if (file.info.size > kEditBytes) {
        return base::fail(
            base::ErrorKind::too_large,
            "file_too_large",
            fmt::format(
                "{} has {} bytes; edit_file takes up to {}: use execute with sed or python3",
                shown,
                file.info.size,
                kEditBytes
            )
        );
    }
    auto text = base::read_to_end(file.fd.get(), kEditBytes);
    if (!text && text.error().sys_errno != 0) {
        return std::unexpected(fsmount::file_error(shown, text.error().sys_errno));
    }
    return text;
}

std::string report(const std::string& shown, const EditedText& edited) {
    if (edited.places == 1) {
        return fmt::format("Replaced 1 place in {}, line {}.", shown, edited.first_line);
    }
    return fmt::format(
        "Replaced {} places in {}, lines {} to {}.",
        edited.places,
        shown,
        edited.first_line,
        edited.last_line
    );
}

ToolResult edit_file(const BlockingCall& call, const Arguments& arguments) {
    const auto file = call.paths.open_read(arguments.file_path);
    if (!file) {
        return error_result(file.error());
    }
    const std::string shown = call.paths.parse(arguments.file_path)->shown();
    const auto text = read_whole(*file, shown);
    if (!text) {
        return error_result(text.error());
    }
    const auto edited = apply_edit(
        *text,
        {arguments.old_string, arguments.new_string, arguments.replace_all},
        kEditBytes,
        call.deadline
    );
    if (!edited) {
        base::Error error = edited.error();
        error.message = shown + ": " + error.message;
        return error_result(error);
    }
    const auto written =
        call.paths.write_file(arguments.file_path, edited->text, {true, file->info.stamp});
    if (!written) {
        return error_result(written.error());
    }
    return {
        report(shown, *edited),
        false,
        {{"path", shown}, {"replacements", edited->places}, {"line", edited->first_line}},
        {}
    };
}

}  // namespace

std::unique_ptr<Tool> make_edit_file_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "edit_file",
            "Replaces `old_string` by `new_string` in a text file below /home/gem/user-data. "
            "old_string must "
            "occur exactly once (add lines around it), unless replace_all is true. Line endings, "
            "encoding and "
            "everything outside the piece stay as they are.",
            {},
            Effect::effect
        },
        fields(),
        edit_file
    );
}

}  // namespace ars::tools
