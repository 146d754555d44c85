// The shapes of a run's event stream: one function per event, all JSON of the stream in one place.
// The envelope (schema_version, run_id, thread_id, event, created_at) is added by who sends it.
#pragma once

#include "runtime/store/records.hpp"
#include "runtime/tools/tool.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ars::runs::events {

// First event of a run. `resumed_run_id`: the interrupted one it goes on from.
[[nodiscard]] store::EventRecord metadata(
    const store::RunRecord& run, std::string_view resumed_run_id = {}
);

// A piece of the assistant's text or reasoning, gathered over limits::kDeltaFlush.
[[nodiscard]] store::EventRecord message_delta(
    const store::RunRecord& run,
    std::string_view message_id,
    std::string_view content,
    std::string_view reasoning
);
[[nodiscard]] store::EventRecord tool_call(
    const store::RunRecord& run,
    std::string_view message_id,
    const store::ToolCall& call,
    std::size_t index
);
[[nodiscard]] store::EventRecord tool_started(
    const store::RunRecord& run, const store::ToolCall& call
);
[[nodiscard]] store::EventRecord tool_finished(
    const store::RunRecord& run,
    const store::MessageRecord& result,
    const boost::json::object& facts
);
[[nodiscard]] store::EventRecord agent_state(const store::RunRecord& run, std::string_view state);
// Into the stream of its parent (or of the run that resumed it), when a child starts and ends.
[[nodiscard]] store::EventRecord subagent_update(
    const store::RunRecord& child, store::RunNo parent
);
// What was streamed of `message_id` (empty: of any message that never completed) is void.
[[nodiscard]] store::EventRecord reset(
    const store::RunRecord& run, std::string_view message_id, std::string_view reason
);
[[nodiscard]] store::EventRecord interrupt(const store::RunRecord& run, std::string_view reason);
[[nodiscard]] store::EventRecord error(const store::RunRecord& run);
// Last event, once.
[[nodiscard]] store::EventRecord end(const store::RunRecord& run);

}  // namespace ars::runs::events
