// The request of the chat completions format, built so that the strictest known provider accepts
// it. Pure functions.
#pragma once

#include "base/result.hpp"
#include "runtime/models/model_client.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ars::models {

// Whether the reasoning of earlier turns goes back to the provider: some demand it next to tool
// calls, some refuse it anywhere.
enum class ReasoningReplay : std::uint8_t { never, with_tool_calls, always };

struct ChatOptions {
    ReasoningReplay reasoning = ReasoningReplay::with_tool_calls;
    std::uint32_t max_output_tokens = 0;  // 0: not sent
};

// The JSON body. Tool results come out right after their assistant message, in call order, and call
// ids that repeat are made unique. Error code "history_unpaired" when a call lacks its one result:
// the history is broken and no provider would take it.
[[nodiscard]] base::Result<std::string> chat_request_body(
    const ModelRequest& request, const ChatOptions& options
);

// A parameter schema without what providers refuse: `$schema` and `uniqueItems` dropped,
// `properties` and `items` added where missing, at every level.
[[nodiscard]] boost::json::object normalized_schema(const boost::json::object& schema);

// A call id within every provider's rules (1 to 40 of [A-Za-z0-9_-]): itself, or a name made from
// its hash.
[[nodiscard]] std::string wire_call_id(std::string_view id);

}  // namespace ars::models
