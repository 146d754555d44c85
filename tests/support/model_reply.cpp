#include "tests/support/model_reply.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <stdexcept>

namespace ars::tests {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr const char* kUsage =
    R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}})";

void end_with(ScriptedReply& reply, const char* finish_reason, const std::string& usage) {
    reply.body.push_back(Send{frame(chunk({}, finish_reason))});
    if (!usage.empty()) {
        reply.body.push_back(Send{frame(usage)});
    }
    reply.body.push_back(Send{frame("[DONE]")});
}

void add_call(ScriptedReply& reply, std::size_t index, const ScriptedCall& call) {
    json::object head{
        {"index", index},
        {"id", call.id},
        {"type", "function"},
        {"function", {{"name", call.name}, {"arguments", ""}}}
    };
    reply.body.push_back(Send{frame(chunk({{"tool_calls", json::array{head}}}))});
    json::object rest{{"index", index}, {"function", {{"arguments", call.arguments}}}};
    reply.body.push_back(Send{frame(chunk({{"tool_calls", json::array{rest}}}))});
}

std::string text_of(const json::object& spec, std::string_view key, std::string otherwise = {}) {
    const json::value* value = spec.if_contains(key);
    if (value == nullptr) {
        return otherwise;
    }
    if (value->is_string()) {
        return std::string(value->get_string());
    }
    return json::serialize(*value);
}

milliseconds time_of(const json::object& spec, std::string_view key) {
    const json::value* value = spec.if_contains(key);
    return milliseconds(value != nullptr ? value->to_number<std::int64_t>() : 0);
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& fill) {
    for (const auto& [name, value] : fill) {
        const std::string mark = "{{" + name + "}}";
        for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;
             at += value.size()) {
            text.replace(at, mark.size(), value);
        }
    }
    return text;
}

// Keeps the first `bytes` of the body and cuts the connection there.
void cut_after(ScriptedReply& reply, std::size_t bytes, bool reset) {
    std::vector<Step> kept;
    for (Step& step : reply.body) {
        if (Send* send = std::get_if<Send>(&step)) {
            send->bytes.resize(std::min(bytes, send->bytes.size()));
            bytes -= send->bytes.size();
        }
        kept.push_back(std::move(step));
        if (bytes == 0) {
            break;
        }
    }
    kept.push_back(Cut{reset});
    reply.body = std::move(kept);
}

void pace(ScriptedReply& reply, milliseconds between) {
    std::vector<Step> paced;
    for (Step& step : reply.body) {
        paced.push_back(std::move(step));
        paced.push_back(Pause{between});
    }
    reply.body = std::move(paced);
}

ScriptedReply spoken(
    const json::object& spec, const std::vector<std::pair<std::string, std::string>>& fill
) {
    ScriptedReply reply;
    if (const json::value* reasoning = spec.if_contains("reasoning")) {
        reply.body.push_back(Send{frame(chunk({{"reasoning_content", *reasoning}}))});
    }
    const json::value* text = spec.if_contains("text");
    if (text != nullptr && text->is_array()) {
        for (const json::value& piece : text->get_array()) {
            reply.body.push_back(
                Send{frame(chunk({{"content", filled(std::string(piece.as_string()), fill)}}))}
            );
        }
    } else if (text != nullptr) {
        reply.body.push_back(Send{frame(chunk({{"content", filled(text_of(spec, "text"), fill)}}))}
        );
    }
    std::size_t index = 0;
    if (const json::value* calls = spec.if_contains("tool_calls")) {
        for (const json::value& value : calls->as_array()) {
            const json::object& call = value.as_object();
            const std::string id = text_of(call, "id", "call_" + std::to_string(index));
            add_call(
                reply,
                index,
                {id, text_of(call, "name"), filled(text_of(call, "arguments", "{}"), fill)}
            );
            ++index;
        }
    }
    const json::value* usage = spec.if_contains("usage");
    std::string counted = kUsage;
    if (usage != nullptr) {
        counted =
            usage->is_null()
                ? std::string()
                : json::serialize(json::object{{"choices", json::array()}, {"usage", *usage}});
    }
    const std::string reason = text_of(spec, "finish_reason", index > 0 ? "tool_calls" : "stop");
    end_with(reply, reason.c_str(), counted);
    return reply;
}

}  // namespace

std::string chunk(const json::object& delta, const char* finish_reason) {
    json::object choice{{"index", 0}, {"delta", delta}, {"finish_reason", nullptr}};
    if (finish_reason != nullptr) {
        choice["finish_reason"] = finish_reason;
    }
    return json::serialize(json::object{
        {"id", "c1"}, {"object", "chat.completion.chunk"}, {"choices", json::array{choice}}
    });
}

std::string frame(std::string_view data) { return "data: " + std::string(data) + "\n\n"; }

ScriptedReply text_reply(const std::vector<std::string>& pieces) {
    ScriptedReply reply;
    for (const std::string& piece : pieces) {
        reply.body.push_back(Send{frame(chunk({{"content", piece}}))});
    }
    end_with(reply, "stop", kUsage);
    return reply;
}

ScriptedReply call_reply(const std::vector<ScriptedCall>& calls, const std::string& content) {
    ScriptedReply reply;
    if (!content.empty()) {
        reply.body.push_back(Send{frame(chunk({{"content", content}}))});
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
        add_call(reply, i, calls[i]);
    }
    end_with(reply, "tool_calls", kUsage);
    return reply;
}

ScriptedReply raw_reply(std::string bytes) {
    ScriptedReply reply;
    reply.body.push_back(Send{std::move(bytes)});
    return reply;
}

ScriptedReply error_reply(int status, std::string body) {
    ScriptedReply reply;
    reply.status = status;
    reply.headers = {{"Content-Type", body.starts_with('{') ? "application/json" : "text/html"}};
    reply.body.push_back(Send{std::move(body)});
    return reply;
}

ScriptedReply reply_from_json(
    const json::object& spec, const std::vector<std::pair<std::string, std::string>>& fill
) {
    ScriptedReply reply;
    const auto status = spec.contains("status") ? spec.at("status").to_number<int>() : 200;
    if (status != 200) {
        reply = error_reply(status, text_of(spec, "body"));
    } else if (spec.contains("raw")) {
        reply = raw_reply(text_of(spec, "raw"));
    } else {
        reply = spoken(spec, fill);
    }
    if (const json::value* headers = spec.if_contains("headers")) {
        for (const auto& [name, value] : headers->as_object()) {
            reply.headers.emplace_back(name, std::string(value.as_string()));
        }
    }
    reply.delay_before_head = time_of(spec, "delay_ms");
    if (const milliseconds between = time_of(spec, "chunk_delay_ms"); between.count() > 0) {
        pace(reply, between);
    }
    if (const json::value* bytes = spec.if_contains("cut_after_bytes")) {
        const bool reset = spec.contains("reset") && spec.at("reset").as_bool();
        cut_after(reply, bytes->to_number<std::size_t>(), reset);
    }
    if (const json::value* bytes = spec.if_contains("split_bytes")) {
        reply.split_bytes = bytes->to_number<std::size_t>();
    }
    return reply;
}

}  // namespace ars::tests
