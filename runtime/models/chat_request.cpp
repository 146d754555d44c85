#include "runtime/models/chat_request.hpp"

#include "base/digest.hpp"
#include "base/text.hpp"
#include "runtime/models/json_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace ars::models {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxCallIdBytes = 40;

json::string clean(std::string_view text, const json::storage_ptr& storage) {
    if (base::is_utf8(text)) {
        return json::string(text, storage);
    }
    return json::string(base::to_utf8(text).text, storage);
}

// Some providers parse the arguments they are shown again, so a malformed text goes back wrapped.
std::string wire_arguments(const std::string& arguments) {
    if (base::trim(arguments).empty()) {
        return "{}";
    }
    if (shape_of_json(arguments) == JsonShape::object) {
        return arguments;
    }
    std::string mended = mend_surrogates(base::to_utf8(arguments).text);
    if (shape_of_json(mended) == JsonShape::object) {
        return mended;
    }
    json::object wrapped;
    wrapped["malformed_arguments"] = base::to_utf8(arguments).text;
    return json::serialize(wrapped);
}

class MessageWriter {
  public:
    MessageWriter(
        const ModelRequest& request, const ChatOptions& options, json::storage_ptr storage
    )
        : messages_(request.messages),
          options_(options),
          storage_(std::move(storage)),
          out_(storage_),
          written_(messages_.size()) {}

    base::Result<json::array> write() {
        for (std::size_t at = 0; at < messages_.size(); ++at) {
            const Message& message = messages_[at];
            if (message.role == Role::assistant && !message.tool_calls.empty()) {
                if (auto ok = write_turn(at); !ok) {
                    return std::unexpected(ok.error());
                }
            } else if (message.role == Role::tool) {
                if (!written_[at]) {
                    return unpaired(
                        "the result", message.tool_call_id, "belongs to no call before it"
                    );
                }
            } else if (!message.content.empty()) {
                write_plain(message);
            }
            // An empty message says nothing, and strict providers refuse the whole request for it.
        }
        return std::move(out_);
    }

  private:
    static std::unexpected<base::Error> unpaired(
        std::string_view what, const std::string& id, std::string_view why
    ) {
        return base::fail(
            base::ErrorKind::internal,
            "history_unpaired",
            std::string(what) + " \"" + id + "\" " + std::string(why) +
                "; the stored history must be repaired before the model can be asked"
        );
    }

    void write_plain(const Message& message) {
        json::object entry(storage_);
        entry["role"] = message.role == Role::system ? "system"
                        : message.role == Role::user ? "user"
                                                     : "assistant";
        entry["content"] = clean(message.content, storage_);
        if (message.role == Role::assistant && options_.reasoning == ReasoningReplay::always) {
            add_reasoning(message, entry);
        }
        out_.push_back(std::move(entry));
    }

    void add_reasoning(const Message& message, json::object& entry) const {
        if (!message.reasoning.empty()) {
            entry["reasoning_content"] = clean(message.reasoning, storage_);
        }
    }

    // An assistant message with calls, and the results of those calls behind it.
    base::Result<void> write_turn(std::size_t at) {
        const Message& message = messages_[at];
        json::object entry(storage_);
        entry["role"] = "assistant";
        if (message.content.empty()) {
            entry["content"] = nullptr;
        } else {
            entry["content"] = clean(message.content, storage_);
        }
        if (options_.reasoning != ReasoningReplay::never) {
            add_reasoning(message, entry);
        }
        json::array calls(storage_);
        std::vector<std::string> ids;
        for (const ToolCall& call : message.tool_calls) {
            ids.push_back(unique_id(call.id, at));
            json::object function(storage_);
            function["name"] = clean(call.name, storage_);
            function["arguments"] = wire_arguments(call.arguments);
            json::object one(storage_);
            one["id"] = ids.back();
            one["type"] = "function";
            one["function"] = std::move(function);
            calls.push_back(std::move(one));
        }
        entry["tool_calls"] = std::move(calls);
        out_.push_back(std::move(entry));
        return write_results(at, ids);
    }

    // Models that call their calls call_0 in every turn are understood by their own provider only.
    std::string unique_id(const std::string& id, std::size_t at) {
        std::string wire = wire_call_id(id);
        for (std::size_t again = 0; !seen_ids_.insert(wire).second; ++again) {
            wire = wire_call_id(id + ":" + std::to_string(at) + ":" + std::to_string(again));
        }
        return wire;
    }

    // `ids`: what the calls of message `at` are named on the wire.
    base::Result<void> write_results(std::size_t at, const std::vector<std::string>& ids) {
        std::vector<std::size_t> results;
        for (std::size_t i = at + 1; i < messages_.size(); ++i) {
            if (messages_[i].role == Role::assistant) {
                break;
            }
            if (messages_[i].role == Role::tool) {
                results.push_back(i);
            }
        }
        for (std::size_t n = 0; n < ids.size(); ++n) {
            const ToolCall& call = messages_[at].tool_calls[n];
            const auto found = std::ranges::find_if(results, [&](std::size_t i) {
                return messages_[i].tool_call_id == call.id;
            });
            if (found == results.end()) {
                return unpaired("the call", call.id, "has no result");
            }
            json::object entry(storage_);
            entry["role"] = "tool";
            entry["tool_call_id"] = ids[n];
            const std::string& content = messages_[*found].content;
            entry["content"] = clean(content.empty() ? "(empty result)" : content, storage_);
            out_.push_back(std::move(entry));
            written_[*found] = true;
            results.erase(found);
        }
        if (!results.empty()) {
            const std::string& id = messages_[results.front()].tool_call_id;
            return unpaired("the result", id, "is a second one, or belongs to no call of its turn");
        }
        return {};
    }

    const std::vector<Message>& messages_;
    const ChatOptions& options_;
    json::storage_ptr storage_;
    json::array out_;
    std::unordered_set<std::string> seen_ids_;
    std::vector<bool> written_;  // results that went out behind their calls
};

// Keywords whose value is a schema, a map of schemas, a list of schemas.
constexpr std::string_view kOne[] = {
    "items", "additionalProperties", "not", "contains", "if", "then", "else"
};
constexpr std::string_view kMaps[] = {"properties", "patternProperties", "$defs", "definitions"};
constexpr std::string_view kLists[] = {"anyOf", "allOf", "oneOf", "prefixItems", "items"};

template <std::size_t N>
bool is_one_of(std::string_view key, const std::string_view (&keys)[N]) {
    return std::ranges::find(keys, key) != std::end(keys);
}

json::value normalized_value(const json::value& value) {
    if (const json::object* schema = value.if_object()) {
        return normalized_schema(*schema);
    }
    return value;
}

json::value normalized_keyword(std::string_view key, const json::value& value) {
    if (value.is_object() && is_one_of(key, kOne)) {
        return normalized_schema(value.get_object());
    }
    if (value.is_object() && is_one_of(key, kMaps)) {
        json::object out;
        for (const auto& [name, schema] : value.get_object()) {
            out[name] = normalized_value(schema);
        }
        return out;
    }
    if (value.is_array() && is_one_of(key, kLists)) {
        json::array out;
        for (const json::value& schema : value.get_array()) {
            out.push_back(normalized_value(schema));
        }
        return out;
    }
    return value;
}

json::array tools_of(const ModelRequest& request, const json::storage_ptr& storage) {
    json::array out(storage);
    for (const ToolSchema& tool : request.tools) {
        json::object parameters = normalized_schema(tool.parameters);
        parameters["type"] = "object";
        if (const json::value* properties = parameters.if_contains("properties");
            properties == nullptr || !properties->is_object()) {
            parameters["properties"] = json::object();
        }
        json::object function(storage);
        function["name"] = clean(tool.name, storage);
        function["description"] = clean(tool.description, storage);
        function["parameters"] = std::move(parameters);
        json::object one(storage);
        one["type"] = "function";
        one["function"] = std::move(function);
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace

json::object normalized_schema(const json::object& schema) {
    json::object out;
    for (const auto& [key, value] : schema) {
        if (key != "$schema" && key != "uniqueItems") {
            out[key] = normalized_keyword(key, value);
        }
    }
    // Looked up before anything is added: that moves the members.
    const json::value* type = out.if_contains("type");
    const bool object = type != nullptr && *type == "object";
    const bool array = type != nullptr && *type == "array";
    if (object && !out.contains("properties")) {
        out["properties"] = json::object();
    }
    if (array && !out.contains("items") && !out.contains("prefixItems")) {
        out["items"] = json::object();
    }
    return out;
}

std::string wire_call_id(std::string_view id) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    };
    if (!id.empty() && id.size() <= kMaxCallIdBytes && std::ranges::all_of(id, allowed)) {
        return std::string(id);
    }
    return "call_" + base::sha256_hex(id).substr(0, 32);
}

base::Result<std::string> chat_request_body(
    const ModelRequest& request, const ChatOptions& options
) {
    json::monotonic_resource memory;
    const json::storage_ptr storage(&memory);
    auto messages = MessageWriter(request, options, storage).write();
    if (!messages) {
        return std::unexpected(messages.error());
    }
    json::object body(storage);
    body["model"] = clean(request.model, storage);
    body["messages"] = std::move(*messages);
    if (!request.tools.empty()) {
        body["tools"] = tools_of(request, storage);
    }
    body["stream"] = true;
    body["stream_options"] = json::object({{"include_usage", true}}, storage);
    if (options.max_output_tokens > 0) {
        body["max_tokens"] = options.max_output_tokens;
    }
    return json::serialize(body);
}

}  // namespace ars::models
