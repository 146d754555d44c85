// Calls that wait for a person: which ones do, which of a run still do, and what is shown of them.
// A waiting call has no intent and no result: from that alone the pending ones are read, so nothing
// about them can be lost or be stored twice.
#pragma once

#include "runtime/store/store.hpp"
#include "runtime/tools/questions.hpp"
#include "runtime/tools/tool.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ars::runs {

struct Interrupt {
    std::string id;           // of the tool call: unique for ever
    std::uint32_t step = 0;   // of its call
    std::uint32_t index = 0;  // in its message
    store::ToolCall call;
    std::vector<tools::Question> questions;  // empty: an approval
    [[nodiscard]] bool is_question() const { return !questions.empty(); }
};

// True when this call of a run must not start before a person said so. What can't run anyway (a
// tool that isn't offered, arguments that can't be read, no question in it) waits for nobody.
[[nodiscard]] bool waits_for_person(
    const store::RunRecord& run,
    const std::vector<tools::Tool*>& offered,
    const store::ToolCall& call
);

// What an interrupted run waits for, in call order; nothing for any other, and for one that was
// resumed.
[[nodiscard]] std::vector<Interrupt> pending_interrupts(
    const store::ReadTxn& txn, const store::RunRecord& run
);

// {"id", "type": "approval" | "question", "run_id", "tool_call_id", "tool_name", and "arguments" or
// "questions"}
[[nodiscard]] boost::json::object interrupt_to_json(
    const store::RunRecord& run, const Interrupt& interrupt
);
[[nodiscard]] boost::json::array interrupts_to_json(
    const store::ReadTxn& txn, const store::RunRecord& run
);

// The `interrupt` event of one waiting call.
[[nodiscard]] store::EventRecord interrupt_event(
    const store::RunRecord& run, const Interrupt& interrupt
);

}  // namespace ars::runs
