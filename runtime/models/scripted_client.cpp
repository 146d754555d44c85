#include "runtime/models/scripted_client.hpp"

#include "base/fields.hpp"
#include "base/text.hpp"
#include "runtime/models/scripted_template.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
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
class Position {
  public:
    explicit Position(const ModelRequest& request) {
        const auto& messages = request.messages;
        std::size_t next = messages.size();
        while (next > 0 && messages[next - 1].role != Role::user) {
            --next;
        }
        user_ = next > 0 ? std::string_view(messages[next - 1].content) : std::string_view();
        after_ = std::span(messages).subspan(next);
        std::set<std::string_view> known;
        for (const Message& message : after_) {
            if (message.role != Role::assistant) {
                continue;
            }
            last_ = &message;
            bool repeats = !message.tool_calls.empty();
            for (const ToolCall& call : message.tool_calls) {
                repeats = !known.insert(call.id).second && repeats;
            }
            turn_ += repeats ? 0 : 1;
        }
    }

    [[nodiscard]] std::string_view user() const { return user_; }
    [[nodiscard]] std::size_t turn() const { return turn_; }

    // The result of the last call with this id.
    [[nodiscard]] std::optional<std::string> lookup(const std::string& source) const {
        if (source == "user") {
            return std::string(user_);
        }
        for (const Message& message : std::views::reverse(after_)) {
            if (message.role == Role::tool && message.tool_call_id == source) {
                return message.content;
            }
        }
        return std::nullopt;
    }

    // The calls of the last turn whose result holds `text`.
    [[nodiscard]] std::vector<ToolCall> calls_ended_with(std::string_view text) const {
        std::vector<ToolCall> out;
        for (const ToolCall& call :
             last_ != nullptr ? last_->tool_calls : std::vector<ToolCall>{}) {
            const auto result = lookup(call.id);
            if (result && result->find(text) != std::string::npos) {
                out.push_back(call);
            }
        }
        return out;
    }

  private:
    std::string_view user_;
    std::span<const Message> after_;
    const Message* last_ = nullptr;  // from the assistant
    std::size_t turn_ = 0;
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

// Calls that a restart cut off, once more.
ModelReply redo(std::vector<ToolCall> calls) {
    ModelReply reply;
    std::vector<std::string> ids;
    for (const ToolCall& call : calls) {
        ids.push_back(call.id);
    }
    reply.content = "A restart cut this off, so I do it again: " + base::list_names(ids) + ".";
    reply.tool_calls = std::move(calls);
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

struct Chosen {
    const ScriptTurn* turn = nullptr;  // whose pace and place hold
    std::chrono::milliseconds pace{0};
    ModelReply reply;
};

base::Result<Chosen> choose(const ScriptBook& scripts, const ModelRequest& request) {
    const Position position(request);
    const Script* script = scripts.find(request.agent_slug, position.user());
    if (script == nullptr) {
        return rejected(fmt::format(
            "no script answers the agent \"{}\" with this user message; add one to the provider's "
            "scripts, or choose another model",
            request.agent_slug
        ));
    }
    Chosen out;
    auto cut_off = script->redo_after.empty() ? std::vector<ToolCall>{}
                                              : position.calls_ended_with(script->redo_after);
    if (!cut_off.empty()) {
        out.turn = &script->turns[std::min(position.turn(), script->turns.size()) - 1];
        out.reply = redo(std::move(cut_off));
    } else if (position.turn() < script->turns.size()) {
        out.turn = &script->turns[position.turn()];
        auto reply = make_reply(*out.turn, position);
        if (!reply) {
            return std::unexpected(reply.error());
        }
        out.reply = std::move(*reply);
    } else {
        return rejected(fmt::format(
            "{}: the script has {} turns, but turn {} is asked for; add a turn",
            script->turns.back().place,
            script->turns.size(),
            position.turn() + 1
        ));
    }
    out.reply.usage = estimate(request, out.reply);
    out.reply.usage_known = true;
    out.pace = out.turn->pace.value_or(script->pace);
    return out;
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
    base::Result<Chosen> chosen = choose(*scripts_, request);
    if (!chosen) {
        co_return std::unexpected(chosen.error());
    }
    const ScriptTurn& turn = *chosen->turn;
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
    for (std::string_view rest = chosen->reply.content; !rest.empty();) {
        const std::string_view piece = next_piece(rest);
        sink.text(piece);
        rest.remove_prefix(piece.size());
        if (!rest.empty() && !co_await pause(chosen->pace, request.deadline)) {
            co_return timed_out();
        }
    }
    co_return std::move(chosen->reply);
}

}  // namespace ars::models
