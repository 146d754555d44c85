#include "runtime/models/chat_request.hpp"

#include "base/digest.hpp"
#include "base/text.hpp"
#include "runtime/models/json_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace ars::models {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxCallIdBytes = 40;

void append_member(std::string& out, std::string_view name, std::string_view text) {
    out += '"';
    out += name;
    out += "\":";
    append_json_string(out, text);
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
    MessageWriter(const ModelRequest& request, const ChatOptions& options, std::string& out)
        : messages_(request.messages), options_(options), out_(out), written_(messages_.size()) {}

    // Adds the list of messages.
    base::Result<void> write() {
        out_ += '[';
        for (std::size_t at = 0; at < messages_.size(); ++at) {
            const Message& message = messages_[at];
            if (message.role == Role::assistant && !message.tool_calls.empty()) {
                if (auto ok = write_turn(at); !ok) {
                    return ok;
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
        out_ += ']';
        return {};
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

    void open_message(std::string_view role) {
        if (out_.back() != '[') {
            out_ += ',';
        }
        out_ += R"({"role":")";
        out_ += role;
        out_ += R"(",)";
    }

    void write_plain(const Message& message) {
        open_message(
            message.role == Role::system ? "system"
            : message.role == Role::user ? "user"
                                         : "assistant"
        );
        append_member(out_, "content", message.content);
        if (message.role == Role::assistant && options_.reasoning == ReasoningReplay::always) {
            add_reasoning(message);
        }
        out_ += '}';
    }

    void add_reasoning(const Message& message) {
        if (!message.reasoning.empty()) {
            out_ += ',';
            append_member(out_, "reasoning_content", message.reasoning);
        }
    }

    // An assistant message with calls, and the results of those calls behind it.
    base::Result<void> write_turn(std::size_t at) {
        const Message& message = messages_[at];
        open_message("assistant");
        if (message.content.empty()) {
            out_ += R"("content":null)";
        } else {
            append_member(out_, "content", message.content);
        }
        if (options_.reasoning != ReasoningReplay::never) {
            add_reasoning(message);
        }
        out_ += R"(,"tool_calls":[)";
        std::vector<std::string> ids;
        for (const ToolCall& call : message.tool_calls) {
            out_ += ids.empty() ? "{" : ",{";
            ids.push_back(unique_id(call.id, at));
            append_member(out_, "id", ids.back());
            out_ += R"(,"type":"function","function":{)";
            append_member(out_, "name", call.name);
            out_ += ',';
            append_member(out_, "arguments", wire_arguments(call.arguments));
            out_ += "}}";
        }
        out_ += "]}";
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
            open_message("tool");
            append_member(out_, "tool_call_id", ids[n]);
            out_ += ',';
            const std::string& content = messages_[*found].content;
            append_member(out_, "content", content.empty() ? "(empty result)" : content);
            out_ += '}';
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
    std::string& out_;
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

// Nearly what the body needs; escapes come on top.
std::size_t size_of(const ModelRequest& request) {
    std::size_t size = 256;
    for (const Message& message : request.messages) {
        size += 128 + message.content.size() + message.reasoning.size();
        for (const ToolCall& call : message.tool_calls) {
            size += 192 + call.name.size() + call.arguments.size();
        }
    }
    for (const ToolSchemaPtr& tool : request.tools) {
        size += tool->chat_text.size() + 1;
    }
    return size;
}

std::string tool_text(
    std::string_view name, std::string_view description, const json::object& schema
) {
    json::object parameters = normalized_schema(schema);
    parameters["type"] = "object";
    if (const json::value* properties = parameters.if_contains("properties");
        properties == nullptr || !properties->is_object()) {
        parameters["properties"] = json::object();
    }
    std::string out = R"({"type":"function","function":{)";
    append_member(out, "name", name);
    out += ',';
    append_member(out, "description", description);
    out += R"(,"parameters":)";
    out += json::serialize(parameters);
    out += "}}";
    return out;
}

}  // namespace

ToolSchema::ToolSchema(
    std::string tool_name, std::string_view description, const json::object& parameters
)
    : name(std::move(tool_name)), chat_text(tool_text(name, description, parameters)) {}

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
    std::string body = "{";
    body.reserve(size_of(request));
    append_member(body, "model", request.model);
    body += R"(,"messages":)";
    if (auto written = MessageWriter(request, options, body).write(); !written) {
        return std::unexpected(written.error());
    }
    if (!request.tools.empty()) {
        body += R"(,"tools":[)";
        for (const ToolSchemaPtr& tool : request.tools) {
            body += body.back() == '[' ? "" : ",";
            body += tool->chat_text;
        }
        body += ']';
    }
    body += R"(,"stream":true,"stream_options":{"include_usage":true})";
    if (options.max_output_tokens > 0) {
        body += R"(,"max_tokens":)" + std::to_string(options.max_output_tokens);
    }
    body += '}';
    return body;
}

}  // namespace ars::models
