// The five tools a main agent hands work out with: task, subagent_start, subagent_status,
// subagent_await, subagent_cancel. They only translate between arguments, result texts and
// tools::ChildRuns.
#pragma once

#include "runtime/tools/child_runs.hpp"
#include "runtime/tools/tool.hpp"

#include <memory>
#include <vector>

namespace ars::tools {

// `children` outlives the tools.
[[nodiscard]] std::vector<std::unique_ptr<Tool>> make_subagent_tools(ChildRuns& children);

}  // namespace ars::tools
