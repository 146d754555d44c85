// The one knot of the runtime, cut: tools that start runs (task, subagent_*) talk to this
// interface, and runs/ implements it. All shapes are those of the tool results (contract of the
// sub-agent tools).
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"
#include "runtime/tools/tool.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace ars::tools {

struct StartChild {
    std::string subagent_slug;
    std::string description;  // becomes the child's user message
    std::string thread_id;    // empty = a new thread
};

class ChildRuns {
  public:
    virtual ~ChildRuns() = default;
    // {"status": "started"|"existing"|"busy", run_id, thread_id, subagent_slug, ...}. Idempotent by
    // call id.
    virtual base::Task<base::Result<boost::json::object>> start(
        const ToolContext& context, StartChild request
    ) = 0;
    // {"status", run_id, thread_id, progress, result?}
    virtual base::Task<base::Result<boost::json::object>> status(
        const ToolContext& context, std::string run_id
    ) = 0;
    // Waits for the end or the deadline: {"status", run_id, thread_id, result, wait_timed_out?}
    virtual base::Task<base::Result<boost::json::object>> await(
        const ToolContext& context, std::string run_id, base::milliseconds limit
    ) = 0;
    virtual base::Task<base::Result<boost::json::object>> cancel(
        const ToolContext& context, std::string run_id
    ) = 0;
};

}  // namespace ars::tools
