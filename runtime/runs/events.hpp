// The event stream of a run: one function per event, all JSON of the stream in one place. The
// envelope (schema_version, run_id, thread_id, event, created_at) is added by who sends it.
//
// What an event shows mostly stands in the store already: a message, a checkpoint, the run. Such an
// event is stored as its Shape and a reference, a few bytes, and made whole for those who read it;
// most are never read.
#pragma once

#include "runtime/store/store.hpp"
#include "runtime/tools/tool.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::runs::events {

// How a stored event is made whole. Numbers on disk: they keep their meaning.
enum class Shape : std::uint8_t {
    as_written = 0,
    metadata = 1,
    message = 2,        // source: it
    tool_call = 3,      // source: the message; index: of the call in it
    tool_started = 4,   // the same
    tool_finished = 5,  // source: the result; payload: facts, if any
    agent_state = 6,    // source: the checkpoint
    end = 7,            // index: the status that it came to rest with
};

// Of the log of `run`, whole: oldest first, those with id > `after`, at most `limit`.
[[nodiscard]] std::vector<store::EventRecord> read(
    const store::ReadTxn& txn, const store::RunRecord& run, store::EventId after, std::size_t limit
);

// First event of a run.
[[nodiscard]] store::EventRecord metadata(const store::RunRecord& run);
// The text and reasoning of an assistant's message of which nothing was streamed before.
[[nodiscard]] store::EventRecord message(
    const store::RunRecord& run, const store::MessageRecord& message
);
// A piece of the assistant's text or reasoning, gathered over limits::kDeltaFlush.
[[nodiscard]] store::EventRecord message_delta(
    const store::RunRecord& run,
    std::string_view message_id,
    std::string_view content,
    std::string_view reasoning
);
// A call of a stored message, the `index`-th of it.
[[nodiscard]] store::EventRecord tool_call(
    const store::RunRecord& run, store::Seq message, std::uint32_t index
);
[[nodiscard]] store::EventRecord tool_started(
    const store::RunRecord& run, store::Seq message, std::uint32_t index
);
// `result` is stored already.
[[nodiscard]] store::EventRecord tool_finished(
    const store::RunRecord& run,
    const store::MessageRecord& result,
    const boost::json::object& facts
);
[[nodiscard]] store::EventRecord agent_state(
    const store::RunRecord& run, const store::CheckpointRecord& checkpoint
);
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
