// One step of a model: a prompt goes in, text and tool calls come out, streamed. Providers
// implement ModelClient; nobody above knows which wire format they speak.
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ars::models {

enum class Role : std::uint8_t { system, user, assistant, tool };

struct ToolCall {
    std::string id;  // the provider's; may be empty or repeat. In a request: what we send it
    std::string name;
    std::string arguments;  // as written by the model; "" means {}
};

struct Message {
    Role role = Role::user;
    std::string content;
    std::string reasoning;             // assistant
    std::vector<ToolCall> tool_calls;  // assistant
    std::string tool_call_id;          // tool
    bool is_error = false;             // tool
};

// A tool as models are told of it. Made once for each tool: its text is the larger part of a short
// request.
struct ToolSchema {
    // `parameters`: JSON Schema of type object, with "properties".
    ToolSchema(
        std::string tool_name, std::string_view description, const boost::json::object& parameters
    );
    std::string name;
    std::string chat_text;  // its entry in the `tools` of a chat completions request
};
using ToolSchemaPtr = std::shared_ptr<const ToolSchema>;

struct ModelRequest {
    std::string model;  // the part of the spec after the provider: "gpt-x"
    // The system prompt first; every tool call has exactly one result.
    std::vector<Message> messages;
    std::vector<ToolSchemaPtr> tools;
    std::string agent_slug;  // for the scripted provider, never sent
    base::Deadline deadline = base::Deadline::never();
};

struct Usage {
    std::uint64_t input_tokens = 0;
    std::uint64_t output_tokens = 0;
};

struct ModelReply {
    std::string content;
    std::string reasoning;
    std::vector<ToolCall> tool_calls;
    Usage usage;
    bool usage_known = false;
    bool cut_by_length = false;  // finish_reason "length": its tool calls must not be run
};

// Receives the stream while complete() runs, on the I/O thread. Implementations only buffer.
class DeltaSink {
  public:
    virtual ~DeltaSink() = default;
    virtual void text(std::string_view piece) = 0;
    virtual void reasoning(std::string_view piece) = 0;
    // The pieces so far are void: the call is tried again (`reason` for people).
    virtual void restart(std::string_view reason) = 0;
};

class ModelClient {
  public:
    virtual ~ModelClient() = default;
    // Errors: code "model_rejected" (4xx, final), "model_rate_limited" and "model_unavailable"
    // (retries used up), "model_timeout", "model_protocol" (unreadable reply),
    // "model_context_overflow". Retries inside. Throws operation_aborted when cancelled.
    virtual base::Task<base::Result<ModelReply>> complete(
        const ModelRequest& request, DeltaSink& sink
    ) = 0;
};

}  // namespace ars::models
