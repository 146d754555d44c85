// A streamed reply of the chat completions format put together from its chunks, under the rules
// that survive what real providers send (tests/unit/runtime/models/chat_reply_test.cpp has them as
// a table). Pure: chunks in, deltas to the sink, one ModelReply out.
#pragma once

#include "runtime/models/call_failure.hpp"
#include "runtime/models/model_client.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::models {

// The tool calls of one reply. Chunks name their call by index, by id, by both or by nothing.
class ToolCallAssembly {
  public:
    // `tools` are those of the request and outlive this object: they tell a second call from the
    // rest of a name that came in pieces.
    explicit ToolCallAssembly(const std::vector<ToolSchemaPtr>& tools) : tools_(tools) {}

    // One element of `delta.tool_calls`, or a legacy `delta.function_call` wrapped as one.
    void feed(const boost::json::object& item);
    [[nodiscard]] bool empty() const { return calls_.empty(); }
    // Bytes held, for the bound on a reply.
    [[nodiscard]] std::size_t size() const { return size_; }
    // True when the last call's arguments are not JSON: it was cut.
    [[nodiscard]] bool last_is_cut() const;
    [[nodiscard]] std::vector<ToolCall> take();

  private:
    struct Open {
        ToolCall call;
        std::optional<std::int64_t> index;
    };
    struct Piece {
        std::optional<std::int64_t> index;
        std::string_view id;
        std::string_view name;
        std::string arguments;
        bool whole = false;  // the arguments came as a JSON value, not as a fragment of text
    };
    static Piece piece_of(const boost::json::object& item);
    [[nodiscard]] Open* target_of(const Piece& piece);
    [[nodiscard]] bool starts_new(const Open& open, const Piece& piece) const;
    [[nodiscard]] Open* by_index(std::int64_t index);
    [[nodiscard]] bool is_tool(std::string_view name) const;
    void add_name(std::string& name, std::string_view piece) const;

    const std::vector<ToolSchemaPtr>& tools_;
    std::vector<Open> calls_;
    std::size_t size_ = 0;
};

class ReplyBuilder {
  public:
    // `tools` and `sink` outlive the builder. `max_output_tokens` as sent to the provider, 0 when
    // unknown.
    ReplyBuilder(
        const std::vector<ToolSchemaPtr>& tools, std::uint32_t max_output_tokens, DeltaSink& sink
    )
        : calls_(tools), max_output_tokens_(max_output_tokens), sink_(sink) {}

    // The data of one event, or the body of an answer that was not streamed. A failure is the end
    // of this attempt: an error the provider reported, or data that can't be read.
    [[nodiscard]] std::expected<void, CallFailure> feed(std::string_view data);
    // `[DONE]` was seen: nothing more comes.
    [[nodiscard]] bool done() const { return done_; }
    // The reply is whole (`[DONE]` or a finish_reason); a usage chunk may still follow.
    [[nodiscard]] bool finished() const { return done_ || !finish_reason_.empty(); }
    // The reply. Fails when the stream ended too early, said nothing, or was filtered away.
    [[nodiscard]] std::expected<ModelReply, CallFailure> take();

  private:
    void feed_choice(const boost::json::object& choice);
    void feed_delta(const boost::json::object& delta);
    void feed_usage(const boost::json::object& usage);
    void add_text(std::string_view piece);
    void add_reasoning(std::string_view piece);

    ToolCallAssembly calls_;
    std::uint32_t max_output_tokens_;
    DeltaSink& sink_;
    ModelReply reply_;
    std::string finish_reason_;
    bool any_choice_ = false;
    bool done_ = false;
};

}  // namespace ars::models
