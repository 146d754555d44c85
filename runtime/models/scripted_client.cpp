#include "runtime/models/scripted_client.hpp"

#include "base/text.hpp"
#include "runtime/models/scripted_template.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace ars::models {

namespace {

namespace json = boost::json;
constexpr std::size_t kPieceBytes = 24;
constexpr std::uint64_t kBytesPerToken = 4;

std::unexpected<base::Error> rejected(std::string message) {
    return base::fail(base::ErrorKind::invalid, "model_rejected", std::move(message));
}

// What the script sees of a conversation: the last user message and what follows it.
struct Position {
    std::string_view user;
    std::span<const Message> after;
    std::size_t turn = 0;

    explicit Position(const ModelRequest& request) {
        const auto& messages = request.messages;
        std::size_t next = messages.size();
        while (next > 0 && messages[next - 1].role != Role::user) {
            --next;
        }
        user = next > 0 ? std::string_view(messages[next - 1].content) : std::string_view();
        after = std::span(messages).subspan(next);
        turn = static_cast<std::size_t>(std::count_if(
            after.begin(), after.end(), [](const Message& m) { return m.role == Role::assistant; }
        ));
    }

    [[nodiscard]] std::optional<std::string> lookup(const std::string& source) const {
        if (source == "user") {
            return std::string(user);
        }
        for (const Message& message : after) {
            if (message.role == Role::tool && message.tool_call_id == source) {
                return message.content;
            }
        }
        return std::nullopt;
    }
};

base::Result<json::value> render(const json::value& value, const Position& position) {
    if (const auto* text = value.if_string()) {
        auto rendered = render_template(*text, [&](const std::string& source) {
            return position.lookup(source);
        });
        if (!rendered) {
            return std::unexpected(rendered.error());
        }
        return json::value(std::move(*rendered));
    }
    if (const auto* object = value.if_object()) {
        json::object out;
        for (const auto& entry : *object) {
            auto item = render(entry.value(), position);
            if (!item) {
                return item;
            }
            out[entry.key()] = std::move(*item);
        }
        return out;
    }
    if (const auto* array = value.if_array()) {
        json::array out;
        for (const json::value& entry : *array) {
            auto item = render(entry, position);
            if (!item) {
                return item;
            }
            out.push_back(std::move(*item));
        }
        return out;
    }
    return value;
}

base::Result<ModelReply> make_reply(const ScriptTurn& turn, const Position& position) {
    const auto failed = [&turn](const base::Error& error) {
        return rejected(turn.place + ": " + error.message);
    };
    ModelReply reply;
    const auto text = render(json::value(turn.text), position);
    if (!text) {
        return failed(text.error());
    }
    reply.content = text->get_string();
    for (const ScriptCall& call : turn.tool_calls) {
        const auto args = render(call.args, position);
        if (!args) {
            return failed(args.error());
        }
        reply.tool_calls.push_back({call.id, call.tool, json::serialize(*args)});
    }
    return reply;
}

Usage estimate(const ModelRequest& request, const ModelReply& reply) {
    const auto calls_bytes = [](const std::vector<ToolCall>& calls) {
        std::size_t bytes = 0;
        for (const ToolCall& call : calls) {
            bytes += call.name.size() + call.arguments.size();
        }
        return bytes;
    };
    std::size_t input = 0;
    for (const Message& message : request.messages) {
        input += message.content.size() + calls_bytes(message.tool_calls);
    }
    const std::size_t output = reply.content.size() + calls_bytes(reply.tool_calls);
    return {input / kBytesPerToken + 1, output / kBytesPerToken + 1};
}

// The next few words of `text`, with the spaces after them.
std::string_view next_piece(std::string_view text) {
    std::string_view piece = base::utf8_head(text, kPieceBytes);
    if (piece.size() == text.size()) {
        return piece;
    }
    const std::size_t space = piece.find_last_of(" \n");
    return space == std::string_view::npos ? piece : piece.substr(0, space + 1);
}

// False when the deadline passes before the pause is over.
base::Task<bool> pause(std::chrono::milliseconds length, base::Deadline deadline) {
    if (length.count() > 0) {
        co_await base::sleep_until(base::Deadline::after(length).earlier(deadline));
    }
    co_return !deadline.passed();
}

}  // namespace

base::Task<base::Result<ModelReply>> ScriptedClient::complete(
    const ModelRequest& request, DeltaSink& sink
) {
    const Position position(request);
    const Script* script = scripts_->find(request.agent_slug, position.user);
    if (script == nullptr) {
        co_return rejected(fmt::format(
            "no script answers the agent \"{}\" with this user message; add one to the provider's "
            "scripts, or choose another model",
            request.agent_slug
        ));
    }
    if (position.turn >= script->turns.size()) {
        co_return rejected(fmt::format(
            "{}: the script has {} turns, but turn {} is asked for; add a turn",
            script->turns.back().place,
            script->turns.size(),
            position.turn + 1
        ));
    }
    const ScriptTurn& turn = script->turns[position.turn];
    base::Result<ModelReply> reply = make_reply(turn, position);
    if (!reply) {
        co_return reply;
    }
    reply->usage = estimate(request, *reply);
    reply->usage_known = true;

    const auto timed_out = [&turn] {
        return base::fail(
            base::ErrorKind::timeout,
            "model_timeout",
            turn.place + ": the deadline passed before the scripted reply was out"
        );
    };
    if (!co_await pause(turn.delay, request.deadline)) {
        co_return timed_out();
    }
    const auto pace = turn.pace.value_or(script->pace);
    for (std::string_view rest = reply->content; !rest.empty();) {
        const std::string_view piece = next_piece(rest);
        sink.text(piece);
        rest.remove_prefix(piece.size());
        if (!rest.empty() && !co_await pause(pace, request.deadline)) {
            co_return timed_out();
        }
    }
    co_return reply;
}

}  // namespace ars::models
