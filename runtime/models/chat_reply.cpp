#include "runtime/models/chat_reply.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/models/json_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <utility>

namespace ars::models {

namespace {

namespace json = boost::json;

const json::object* object_in(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr ? value->if_object() : nullptr;
}

const json::array* array_in(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr ? value->if_array() : nullptr;
}

std::string_view text_in(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    const json::string* text = value != nullptr ? value->if_string() : nullptr;
    return text != nullptr ? std::string_view(*text) : std::string_view();
}

std::optional<std::uint64_t> count_in(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_number()) {
        return std::nullopt;
    }
    json::error_code error;
    const auto count = value->to_number<std::uint64_t>(error);
    return error ? std::optional<std::uint64_t>() : count;
}

}  // namespace

std::expected<void, CallFailure> ReplyBuilder::feed(std::string_view data) {
    data = base::trim(data);
    if (data.empty() || done_) {
        return {};
    }
    if (data == "[DONE]") {
        done_ = true;
        return {};
    }
    std::array<unsigned char, 4096> space;
    json::monotonic_resource memory(space.data(), space.size());
    const auto chunk = parse_json_leniently(data, &memory);
    if (!chunk || !chunk->is_object()) {
        return std::unexpected(failure_of_protocol(
            "the provider sent a chunk that is not a JSON object: " +
            std::string(base::utf8_head(base::to_utf8(data.substr(0, 400)).text, 200))
        ));
    }
    const json::object& object = chunk->get_object();
    if (const json::value* error = object.if_contains("error");
        error != nullptr && !error->is_null()) {
        return std::unexpected(failure_of_error_value(*error));
    }
    if (const json::object* usage = object_in(object, "usage")) {
        feed_usage(*usage);
    }
    if (const json::array* choices = array_in(object, "choices")) {
        for (const json::value& choice : *choices) {
            if (choice.is_object()) {
                feed_choice(choice.get_object());
            }
        }
    }
    if (reply_.content.size() + reply_.reasoning.size() + calls_.size() >
        base::limits::kModelReplyBytes) {
        CallFailure failure = failure_of_protocol(
            "the reply is larger than " + std::to_string(base::limits::kModelReplyBytes) + " bytes"
        );
        failure.retryable = false;
        return std::unexpected(std::move(failure));
    }
    return {};
}

void ReplyBuilder::feed_choice(const json::object& choice) {
    if (const json::value* index = choice.if_contains("index");
        index != nullptr && index->is_int64() && index->get_int64() != 0) {
        return;  // one choice was asked for
    }
    any_choice_ = true;
    if (const json::object* delta = object_in(choice, "delta")) {
        feed_delta(*delta);
    } else if (const json::object* message = object_in(choice, "message")) {
        feed_delta(*message);
    }
    if (const std::string_view reason = text_in(choice, "finish_reason"); !reason.empty()) {
        finish_reason_ = reason;
    }
}

void ReplyBuilder::feed_delta(const json::object& delta) {
    const std::string_view reasoning = text_in(delta, "reasoning_content");
    add_reasoning(reasoning.empty() ? text_in(delta, "reasoning") : reasoning);
    add_text(text_in(delta, "content"));
    add_text(text_in(delta, "refusal"));
    if (const json::array* parts = array_in(delta, "content")) {
        for (const json::value& part : *parts) {
            if (part.is_object()) {
                add_text(text_in(part.get_object(), "text"));
            }
        }
    }
    if (const json::array* calls = array_in(delta, "tool_calls")) {
        for (const json::value& call : *calls) {
            if (call.is_object()) {
                calls_.feed(call.get_object());
            }
        }
    }
    if (const json::object* legacy = object_in(delta, "function_call")) {
        json::object item;
        item["function"] = *legacy;
        calls_.feed(item);
    }
}

void ReplyBuilder::feed_usage(const json::object& usage) {
    const auto input = count_in(usage, "prompt_tokens");
    const auto output = count_in(usage, "completion_tokens");
    if (input || output) {
        reply_.usage = {input.value_or(0), output.value_or(0)};
        reply_.usage_known = true;
    }
}

void ReplyBuilder::add_text(std::string_view piece) {
    if (!piece.empty()) {
        reply_.content += piece;
        sink_.text(piece);
    }
}

void ReplyBuilder::add_reasoning(std::string_view piece) {
    if (!piece.empty()) {
        reply_.reasoning += piece;
        sink_.reasoning(piece);
    }
}

std::expected<ModelReply, CallFailure> ReplyBuilder::take() {
    if (!finished()) {
        CallFailure failure = failure_of_protocol("the stream ended before the reply was complete");
        failure.error.code = "model_unavailable";
        return std::unexpected(std::move(failure));
    }
    if (!any_choice_) {
        return std::unexpected(failure_of_protocol("the provider ended its stream without a reply")
        );
    }
    if (finish_reason_ == "error") {
        return std::unexpected(
            failure_of_protocol("the provider ended its reply with finish_reason \"error\"")
        );
    }
    if (finish_reason_ == "content_filter" && reply_.content.empty() && calls_.empty()) {
        CallFailure failure;
        failure.error = {
            base::ErrorKind::invalid,
            "model_rejected",
            "the provider's content filter withheld the reply"
        };
        return std::unexpected(std::move(failure));
    }
    const bool at_limit = max_output_tokens_ > 0 && reply_.usage_known &&
                          reply_.usage.output_tokens >= max_output_tokens_;
    reply_.cut_by_length = finish_reason_ == "length" || (at_limit && calls_.last_is_cut());
    reply_.tool_calls = calls_.take();
    return std::move(reply_);
}

}  // namespace ars::models
