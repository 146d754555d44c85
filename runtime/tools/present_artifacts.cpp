// present_artifacts: which files an agent hands over as results, kept in the thread's state.
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"

#include <boost/json/array.hpp>
#include <fmt/format.h>

namespace ars::tools {

namespace {

constexpr std::int64_t kFiles = 50;  // of one call

struct Arguments {
    std::vector<std::string> filepaths;
};

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table = base::Fields<Arguments>{}.texts(
        "filepaths",
        &Arguments::filepaths,
        {.required = true, .min = 1, .max = kFiles, .doc = "The files, each as a path."}
    );
    return table;
}

ToolResult present(const BlockingCall& call, const Arguments& arguments) {
    boost::json::array presented;
    std::string wrong;
    for (const std::string& path : arguments.filepaths) {
        if (const auto file = call.paths.open_read(path); !file) {
            wrong += fmt::format("\n{}: {}", file.error().code, file.error().message);
            continue;
        }
        presented.emplace_back(call.paths.parse(path)->shown());
    }
    if (!wrong.empty()) {
        return tool_error("Nothing was presented. Present regular files that exist:" + wrong);
    }
    ToolResult result;
    result.text = "Presented to the user:";
    for (const boost::json::value& path : presented) {
        result.text += fmt::format("\n{}", std::string_view(path.get_string()));
    }
    result.facts = {{"presented", presented.size()}};
    result.state["artifacts"] = std::move(presented);
    return result;
}

}  // namespace

std::unique_ptr<Tool> make_present_artifacts_tool() {
    return std::make_unique<BlockingTool<Arguments>>(
        ToolSpec{
            "present_artifacts",
            "Presents finished files to the user, who can then download them. Call it with the "
            "results that were asked for, not with scratch files. Only regular files below "
            "/home/gem/user-data or /home/gem/skills.",
            {},
            Effect::read_only
        },
        fields(),
        present
    );
}

}  // namespace ars::tools
