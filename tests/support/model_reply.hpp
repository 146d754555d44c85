// One scripted answer of the test model server, and the makers of common ones.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ars::tests {

struct Send {
    std::string bytes;
};
struct Pause {
    std::chrono::milliseconds time;
};
// Ends the connection without ending the answer: politely, or with a reset.
struct Cut {
    bool reset = false;
};
using Step = std::variant<Send, Pause, Cut>;

struct ScriptedReply {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers = {
        {"Content-Type", "text/event-stream"}
    };
    std::chrono::milliseconds delay_before_head{0};
    std::vector<Step> body;       // sent as HTTP chunks
    std::size_t split_bytes = 0;  // > 0: the body leaves in writes of this many bytes
    bool close_after = false;     // the connection is closed behind the answer
};

struct ScriptedCall {
    std::string id;
    std::string name;
    std::string arguments;
};

// The data of one chunk: `delta` in the first choice.
[[nodiscard]] std::string chunk(
    const boost::json::object& delta, const char* finish_reason = nullptr
);
// "data: ...\n\n".
[[nodiscard]] std::string frame(std::string_view data);

// The pieces as content deltas, then finish_reason, usage (10 in, 5 out) and [DONE].
[[nodiscard]] ScriptedReply text_reply(const std::vector<std::string>& pieces);
// The calls, each in two chunks, then finish_reason "tool_calls", usage and [DONE].
[[nodiscard]] ScriptedReply call_reply(
    const std::vector<ScriptedCall>& calls, const std::string& content = {}
);
// Exactly these bytes as the body.
[[nodiscard]] ScriptedReply raw_reply(std::string bytes);
// A status with a body; JSON when it starts with a brace.
[[nodiscard]] ScriptedReply error_reply(int status, std::string body);

// The "reply" of a script file; see model_script.hpp. Throws std::runtime_error on a malformed one.
// `fill` replaces {{last_user}} and {{last_tool}} in texts.
[[nodiscard]] ScriptedReply reply_from_json(
    const boost::json::object& spec, const std::vector<std::pair<std::string, std::string>>& fill
);

}  // namespace ars::tests
