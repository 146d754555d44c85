// Keeps a tool's answer within what a model's context may take: the whole text goes to a file that
// the model can read piece by piece, and head and tail stay in the answer.
#pragma once

#include "runtime/tools/environment.hpp"
#include "runtime/tools/tool.hpp"

#include <string>

namespace ars::tools {

// `result` with a text of valid UTF-8 of at most about limits::kToolResultBytes. When it was
// longer, the text is under <workdir>/outputs/large_tool_results and the answer names the file;
// where that fails, it says why. A text over the bound is written off the I/O thread. `environment`
// outlives the call.
[[nodiscard]] base::Task<ToolResult> cap_result(
    ToolResult result, const Environment& environment, std::string call_id
);

}  // namespace ars::tools
