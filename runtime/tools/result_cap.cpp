#include "runtime/tools/result_cap.hpp"

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

#include <utility>

namespace ars::tools {

base::Task<ToolResult> cap_result(
    ToolResult result, const Environment& environment, std::string call_id
) {
    if (!base::is_utf8(result.text)) {
        result.text = base::to_utf8(result.text).text;
    }
    if (result.text.size() <= base::limits::kToolResultBytes) {
        co_return result;
    }
    auto store = [&environment, call_id, text = std::move(result.text)] {
        auto file = environment.make_output_file(call_id);
        base::Result<void> written = file ? base::write_all(file->fd->get(), text)
                                          : base::Result<void>(std::unexpected(file.error()));
        const std::string where =
            written ? file->guest_path : "could not be stored: " + written.error().message;
        // The line between head and tail takes some bytes too.
        const std::size_t room = base::limits::kToolResultBytes - where.size() - 128;
        return base::head_and_tail(text, room, where);
    };
    result.text = co_await environment.offload().run(std::move(store));
    co_return result;
}

}  // namespace ars::tools
