// The rules by which fragments of tool calls find their call; see chat_reply.hpp.
#include "runtime/models/chat_reply.hpp"
#include "runtime/models/json_text.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <ranges>
#include <utility>

namespace ars::models {

namespace {

namespace json = boost::json;

std::string_view text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    const json::string* text = value != nullptr ? value->if_string() : nullptr;
    return text != nullptr ? std::string_view(*text) : std::string_view();
}

bool is_complete(std::string_view arguments) {
    return !arguments.empty() && shape_of_json(arguments) != JsonShape::invalid;
}

}  // namespace

ToolCallAssembly::Piece ToolCallAssembly::piece_of(const json::object& item) {
    Piece piece;
    if (const json::value* index = item.if_contains("index");
        index != nullptr && index->is_int64()) {
        piece.index = index->get_int64();
    }
    piece.id = text_of(item, "id");
    const json::value* function = item.if_contains("function");
    if (function == nullptr || !function->is_object()) {
        return piece;
    }
    piece.name = text_of(function->get_object(), "name");
    if (const json::value* arguments = function->get_object().if_contains("arguments")) {
        if (arguments->is_string()) {
            piece.arguments = arguments->get_string();
        } else if (!arguments->is_null()) {
            piece.arguments = json::serialize(*arguments);
            piece.whole = true;
        }
    }
    return piece;
}

ToolCallAssembly::Open* ToolCallAssembly::by_index(std::int64_t index) {
    // The newest one: some providers say 0 for every call.
    for (Open& open : calls_ | std::views::reverse) {
        if (open.index == index) {
            return &open;
        }
    }
    return nullptr;
}

bool ToolCallAssembly::is_tool(std::string_view name) const {
    return std::ranges::any_of(tools_, [&](const ToolSchemaPtr& tool) {
        return tool->name == name;
    });
}

// Whether a piece that points at `open` (by index, or as the last one) is in truth the start of
// another call.
bool ToolCallAssembly::starts_new(const Open& open, const Piece& piece) const {
    if (is_complete(open.call.arguments)) {
        const bool says_nothing = piece.name == open.call.name && piece.arguments.empty();
        return !piece.id.empty() || (!piece.name.empty() && !says_nothing);
    }
    if (piece.name.empty()) {
        // A new id without a name: with an index it is a later word on the same call.
        return !piece.id.empty() && !open.call.id.empty() && !piece.index;
    }
    if (!piece.id.empty() && !open.call.id.empty()) {
        return true;
    }
    return piece.name != open.call.name && is_tool(open.call.name) && is_tool(piece.name);
}

ToolCallAssembly::Open* ToolCallAssembly::target_of(const Piece& piece) {
    if (!piece.id.empty()) {
        for (Open& open : calls_ | std::views::reverse) {
            if (open.call.id != piece.id) {
                continue;
            }
            // The same id under a new index and with a name, after a call that is complete: another
            // call.
            const bool other = piece.index && open.index != piece.index && !piece.name.empty() &&
                               by_index(*piece.index) == nullptr &&
                               is_complete(open.call.arguments);
            if (!other) {
                return &open;
            }
        }
    }
    Open* open = piece.index ? by_index(*piece.index) : nullptr;
    if (open == nullptr) {
        // An index never seen opens a call when a name or an id comes with it; else the index
        // drifted.
        const bool anonymous = piece.name.empty() && piece.id.empty();
        if (calls_.empty() || (piece.index && !anonymous)) {
            return nullptr;
        }
        open = &calls_.back();
    }
    return starts_new(*open, piece) ? nullptr : open;
}

// A name comes once, again in every chunk, in pieces, or longer each time.
void ToolCallAssembly::add_name(std::string& name, std::string_view piece) const {
    if (piece.empty() || piece == name) {
        return;
    }
    if (piece.starts_with(name)) {
        name = piece;
    } else if (!is_tool(name)) {
        name += piece;
    }
}

void ToolCallAssembly::feed(const json::object& item) {
    const Piece piece = piece_of(item);
    if (piece.id.empty() && piece.name.empty() && piece.arguments.empty()) {
        return;
    }
    Open* open = target_of(piece);
    if (open == nullptr) {
        open = &calls_.emplace_back(Open{{}, piece.index});
        size_ += sizeof(Open);
    }
    if (open->call.id.empty()) {
        open->call.id = piece.id;
    }
    add_name(open->call.name, piece.name);
    if (piece.whole) {
        open->call.arguments = piece.arguments;
    } else {
        open->call.arguments += piece.arguments;
    }
    size_ += piece.id.size() + piece.name.size() + piece.arguments.size();
}

bool ToolCallAssembly::last_is_cut() const {
    return !calls_.empty() && !calls_.back().call.arguments.empty() &&
           shape_of_json(calls_.back().call.arguments) == JsonShape::invalid;
}

std::vector<ToolCall> ToolCallAssembly::take() {
    std::vector<ToolCall> out;
    out.reserve(calls_.size());
    for (Open& open : calls_) {
        out.push_back(std::move(open.call));
    }
    calls_.clear();
    return out;
}

}  // namespace ars::models
