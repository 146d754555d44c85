// What a tool is: a name, a schema, a class of effect, and a call that always ends in a result
// text. A tool never throws for what a model did wrong: the result says what to do instead.
#pragma once

#include "base/async.hpp"
#include "base/deadline.hpp"
#include "base/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace ars::tools {

// Decides what happens to an open call after a crash (ARCHITECTURE.md, "Recovery").
enum class Effect : std::uint8_t {
    pure,        // touches nothing but the thread's state and never waits: its result may share the
                 // commit of its intent; rerun
    read_only,   // rerun
    idempotent,  // rerun
    waiting,     // re-enter with the stored deadline
    effect,      // "may have happened": never again by itself
};

struct ToolSpec {
    std::string name;
    std::string description;         // what the model reads
    boost::json::object parameters;  // JSON Schema, type object
    Effect effect = Effect::effect;
};

struct ToolResult {
    std::string text;  // valid UTF-8; the run loop caps it at limits::kToolResultBytes
    bool is_error = false;
    // For people and programs that watch, not for the model: {"exit_code": 0, "status": "exited"}.
    boost::json::object facts;
    // Merged into the thread's state: {"todos": [...]}; absent keys stay.
    boost::json::object state;
};

[[nodiscard]] inline ToolResult tool_error(std::string text) {
    return ToolResult{std::move(text), true, {}, {}};
}

class Environment;  // runtime/tools/environment.hpp: workspace and sandbox scope of the execution
                    // tree

// Who calls: made by the run loop for each call, alive until the call returned.
struct ToolContext {
    std::string uid;
    std::string run_id;
    std::string thread_id;
    std::string call_id;  // "<run id>:<step>:<index>"
    std::uint64_t run_no = 0;
    std::uint32_t step = 0;
    std::uint32_t index = 0;
    bool rerun = false;            // the call was open when the server died, and runs again
    std::int64_t deadline_ms = 0;  // stored absolute deadline of a waiting tool; 0 = not set yet
    base::Deadline deadline = base::Deadline::never();  // the run's own
    Environment* environment = nullptr;
};

class Tool {
  public:
    virtual ~Tool() = default;
    [[nodiscard]] virtual const ToolSpec& spec() const = 0;
    // `arguments` is an object; it is not yet checked against the schema. Throws operation_aborted
    // when cancelled, after its processes are gone.
    virtual base::Task<ToolResult> call(
        const ToolContext& context, boost::json::object arguments
    ) = 0;
};

}  // namespace ars::tools
