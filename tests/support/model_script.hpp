// Answers of the test model server chosen by a script: a list of rules, the first that matches a
// request answers it. As a file:
//
//   [{"match": {"last_user_contains": "weather", "turn": 1}, "times": 1,
//     "reply": {"tool_calls": [{"name": "execute", "arguments": {"command": "date"}}]}},
//    {"match": {"last_tool_contains": "2026"}, "reply": {"text": ["It is ", "{{last_tool}}"]}},
//    {"reply": {"text": "hello"}}]
//
// match: last_user_contains, last_tool_contains, system_contains, and turn, which is 1 for the
// first model call after the last user message. Absent: anything. times: how often the rule may
// answer, else without end. reply: text (string or list of pieces), reasoning, tool_calls [{id?,
// name, arguments}], finish_reason, usage (object, or null for none), delay_ms, chunk_delay_ms,
// split_bytes, cut_after_bytes, reset, headers; or status and body; or raw (the bytes of the
// stream). {{last_user}} and {{last_tool}} are filled in.
#pragma once

#include "tests/support/model_server.hpp"

#include <memory>
#include <string>

namespace ars::tests {

// Throws std::runtime_error when the text is not such a list.
[[nodiscard]] ModelServer::Handler handler_of_script(const std::string& json_text);

}  // namespace ars::tests
