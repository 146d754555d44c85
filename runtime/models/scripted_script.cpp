#include "runtime/models/scripted_script.hpp"

#include "base/fields.hpp"
#include "base/limits.hpp"
#include "runtime/models/scripted_template.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace ars::models {

namespace {

using base::FieldPlace;
using Calls = std::set<std::string, std::less<>>;

constexpr std::int64_t kTurns = 1000;
constexpr std::int64_t kCallsPerTurn = base::limits::kMaxToolCallsPerTurn;
constexpr std::int64_t kDelayMs = 600'000;
constexpr std::string_view kAnyAgent = "*";

std::string check_call_id(std::string_view id) {
    const bool fits =
        id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
        std::string_view::npos;
    if (!fits || id.empty() || id == "user" || id.size() > 40) {
        return "must be 1 to 40 letters, digits, \"_\" or \"-\", and not \"user\"";
    }
    return {};
}

const base::Fields<ScriptCall>& call_fields() {
    static const base::Fields<ScriptCall> fields =
        base::Fields<ScriptCall>{}
            .text(
                "id",
                &ScriptCall::id,
                {.required = true, .check = check_call_id, .doc = "Names the call in placeholders."}
            )
            .text(
                "tool", &ScriptCall::tool, {.required = true, .min = 1, .doc = "The tool's name."}
            )
            .raw("args", &ScriptCall::args, {.doc = "Its arguments; texts may hold placeholders."});
    return fields;
}

const base::Fields<ScriptTurn>& turn_fields() {
    static const base::Fields<ScriptTurn> fields =
        base::Fields<ScriptTurn>{}
            .text("text", &ScriptTurn::text, {.doc = "What the model says; may hold placeholders."})
            .duration(
                "delay", &ScriptTurn::delay, {.max = kDelayMs, .doc = "Before the first piece."}
            )
            .duration(
                "pace", &ScriptTurn::pace, {.max = kDelayMs, .doc = "Between pieces of text."}
            )
            .objects(
                "tool_calls",
                &ScriptTurn::tool_calls,
                call_fields(),
                {.max = kCallsPerTurn, .doc = "The calls of this turn, made in parallel."}
            );
    return fields;
}

const base::Fields<ScriptCondition>& condition_fields() {
    static const base::Fields<ScriptCondition> fields = base::Fields<ScriptCondition>{}.text(
        "user_contains",
        &ScriptCondition::user_contains,
        {.required = true, .min = 1, .doc = "A part of the last user message."}
    );
    return fields;
}

const base::Fields<Script>& script_fields() {
    static const base::Fields<Script> fields =
        base::Fields<Script>{}
            .text(
                "agent",
                &Script::agent,
                {.required = true, .min = 1, .doc = "Slug of the agent that is answered, or *."}
            )
            .object("when", &Script::when, condition_fields(), {.doc = "When the script applies."})
            .duration("pace", &Script::pace, {.max = kDelayMs, .doc = "The pace of every turn."})
            .text(
                "redo_after",
                &Script::redo_after,
                {.min = 1, .doc = "Calls whose result holds this text are made again."}
            )
            .objects(
                "turns",
                &Script::turns,
                turn_fields(),
                {.required = true, .min = 1, .max = kTurns, .doc = "The replies, in order."}
            );
    return fields;
}

void check_template(std::string_view text, const Calls& earlier, const FieldPlace& place) {
    const auto parts = parse_template(text);
    if (!parts) {
        place.fault(parts.error().message);
        return;
    }
    for (const TemplatePart& part : *parts) {
        if (part.placeholder && part.placeholder->source != "user" &&
            !earlier.contains(part.placeholder->source)) {
            place.fault(
                "the placeholder {{" + part.placeholder->written +
                    "}} names no call of an earlier turn",
                "earlier calls: " +
                    base::list_names(std::vector<std::string>(earlier.begin(), earlier.end()))
            );
        }
    }
}

void check_templates(
    const boost::json::value& value, const Calls& earlier, const FieldPlace& place
) {
    if (const auto* text = value.if_string()) {
        check_template(*text, earlier, place);
    } else if (const auto* object = value.if_object()) {
        for (const auto& entry : *object) {
            check_templates(entry.value(), earlier, place.at(entry.key()));
        }
    } else if (const auto* array = value.if_array()) {
        for (std::size_t i = 0; i < array->size(); ++i) {
            check_templates((*array)[i], earlier, place.at(i));
        }
    }
}

void check_turns(Script& script, const base::Document& document, const FieldPlace& turns) {
    Calls earlier;
    for (std::size_t i = 0; i < script.turns.size(); ++i) {
        ScriptTurn& turn = script.turns[i];
        const FieldPlace place = turns.at(i);
        turn.place = document.file + ":" + std::to_string(document.line_of(place.path));
        check_template(turn.text, earlier, place.at("text"));
        if (turn.text.empty() && turn.tool_calls.empty()) {
            place.fault("says nothing and calls nothing", "give it a text or tool_calls");
        }
        Calls own;
        for (std::size_t c = 0; c < turn.tool_calls.size(); ++c) {
            const ScriptCall& call = turn.tool_calls[c];
            const FieldPlace at = place.at("tool_calls").at(c);
            check_templates(call.args, earlier, at.at("args"));
            if (earlier.contains(call.id) || !own.insert(call.id).second) {
                at.at("id").fault("another call of this script has the id \"" + call.id + "\"");
            }
        }
        earlier.merge(own);
    }
}

}  // namespace

const Script* ScriptBook::find(std::string_view agent, std::string_view user) const {
    const Script* best = nullptr;
    const auto rank = [agent](const Script& script) {
        return std::tuple(script.agent == agent, script.when.user_contains.size());
    };
    for (const Script& script : scripts_) {
        const bool fits = (script.agent == agent || script.agent == kAnyAgent) &&
                          user.find(script.when.user_contains) != std::string_view::npos;
        if (fits && (best == nullptr || rank(script) > rank(*best))) {
            best = &script;
        }
    }
    return best;
}

std::expected<std::shared_ptr<const ScriptBook>, std::vector<std::string>> load_scripts(
    const std::vector<std::string>& files
) {
    std::vector<Script> scripts;
    std::vector<std::string> lines;
    for (const std::string& file : files) {
        const auto document = base::load_yaml(file);
        if (!document) {
            lines.push_back(document.error().message);
            continue;
        }
        Script script;
        std::vector<base::Fault> faults = script_fields().decode(document->value, script);
        // Wrong shapes leave gaps in the lists, and indices would then name the wrong turn.
        if (faults.empty()) {
            check_turns(script, *document, FieldPlace{"/turns", faults, {}});
        }
        for (const base::Fault& fault : faults) {
            lines.push_back(document->describe(fault));
        }
        script.file = file;
        scripts.push_back(std::move(script));
    }
    if (!lines.empty()) {
        return std::unexpected(std::move(lines));
    }
    return std::make_shared<const ScriptBook>(std::move(scripts));
}

}  // namespace ars::models
