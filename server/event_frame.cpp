#include "server/event_frame.hpp"

#include "base/clock.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <optional>

namespace ars::server {

namespace json = boost::json;

namespace {

// Ids and event names come from inside, but a text with a quote in it must not break the envelope.
void append_quoted(std::string& out, std::string_view text) {
    const bool plain = std::ranges::all_of(text, [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    });
    if (plain) {
        out += '"';
        out += text;
        out += '"';
    } else {
        out += json::serialize(json::string(text));
    }
}

// A frame ends at a line break, and JSON allows them only between tokens.
void append_one_line(std::string& out, std::string_view text) {
    const std::size_t start = out.size();
    out += text;
    if (text.find_first_of("\r\n") != std::string_view::npos) {
        std::replace_if(
            out.begin() + static_cast<std::ptrdiff_t>(start),
            out.end(),
            [](char c) { return c == '\n' || c == '\r'; },
            ' '
        );
    }
}

void erase_keys(json::object& object, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
        object.erase(key);
    }
}

void shorten_member(
    json::object& object, std::string_view name, std::initializer_list<std::string_view> keys
) {
    json::value* const member = object.if_contains(name);
    if (member != nullptr && member->is_object()) {
        erase_keys(member->get_object(), keys);
    }
}

// Only at these places: below them are the arguments and results of tools, whose keys are theirs.
void shorten_chunk(json::value& chunk) {
    if (!chunk.is_object()) {
        return;
    }
    json::object& object = chunk.get_object();
    erase_keys(
        object, {"request_id", "thread_id", "response", "meta", "metadata", "image_content"}
    );
    shorten_member(object, "stream_event", {"thread_id", "namespace"});
    shorten_member(object, "event", {"namespace"});
}

bool is_empty(const json::value& value) {
    return value.is_null() || (value.is_array() && value.get_array().empty()) ||
           (value.is_object() && std::ranges::all_of(value.get_object(), [](const auto& member) {
                return is_empty(member.value());
            }));
}

// The payload as a brief reader gets it; nothing when it need not.
std::optional<std::string> brief(std::string_view type, std::string_view text) {
    boost::system::error_code error;
    json::value payload = json::parse(text, error);
    if (error || !payload.is_object()) {
        return std::string(text);
    }
    json::object& object = payload.get_object();
    if (type == "metadata") {
        json::object short_one;
        for (const char* key : {"run_type", "source"}) {
            if (const json::value* value = object.if_contains(key)) {
                short_one[key] = *value;
            }
        }
        return json::serialize(short_one);
    }
    if (const json::value* state = object.if_contains("agent_state"); state && is_empty(*state)) {
        return std::nullopt;
    }
    object.erase("request_id");
    if (json::value* chunk = object.if_contains("chunk")) {
        shorten_chunk(*chunk);
    }
    if (json::value* items = object.if_contains("items"); items && items->is_array()) {
        std::ranges::for_each(items->get_array(), shorten_chunk);
    }
    return json::serialize(payload);
}

}  // namespace

void append_event_frame(
    std::string& out, const Frame& frame, const store::RunRecord& run, Detail detail
) {
    std::optional<std::string> shortened;
    std::string_view payload = frame.payload.empty() ? std::string_view("{}") : frame.payload;
    if (detail == Detail::brief) {
        shortened = brief(frame.type, payload);
        if (!shortened) {
            return;
        }
        payload = *shortened;
    }
    out += "event: ";
    out += frame.type;
    out += "\ndata: {\"schema_version\":1,\"run_id\":";
    append_quoted(out, run.id);
    out += detail == Detail::brief ? ",\"request_id\":" : ",\"thread_id\":";
    append_quoted(out, detail == Detail::brief ? run.request_id : run.thread_id);
    out += ",\"event\":";
    append_quoted(out, frame.type);
    out += ",\"payload\":";
    append_one_line(out, payload);
    out += ",\"created_at\":\"";
    out += base::iso8601(frame.created_ms);
    out += "\"}\n";
    if (!frame.id.empty()) {
        out += "id: ";
        out += frame.id;
        out += '\n';
    }
    out += '\n';
}

}  // namespace ars::server
