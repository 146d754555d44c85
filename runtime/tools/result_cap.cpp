#include "runtime/tools/result_cap.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

namespace ars::tools {

void cap_result(ToolResult& result, const Environment& environment, const std::string& call_id) {
    if (!base::is_utf8(result.text)) {
        result.text = base::to_utf8(result.text).text;
    }
    if (result.text.size() <= base::limits::kToolResultBytes) {
        return;
    }
    std::string where;
    auto file = environment.make_output_file(call_id);
    base::Result<void> written = file ? base::write_all(file->fd->get(), result.text)
                                      : base::Result<void>(std::unexpected(file.error()));
    where = written ? file->guest_path : "could not be stored: " + written.error().message;
    // The line between head and tail takes some bytes too.
    const std::size_t room = base::limits::kToolResultBytes - where.size() - 128;
    result.text = base::head_and_tail(result.text, room, where);
}

}  // namespace ars::tools
