#include "tests/support/model_plan.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace ars::tests {

namespace {

namespace json = boost::json;

constexpr std::string_view kMark = "PLAN ";

std::string text(const json::value& object, std::string_view key) {
    const json::value* found = object.as_object().if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

std::string call_id(std::size_t turn, std::size_t place) {
    return "c" + std::to_string(turn) + "_" + std::to_string(place);
}

json::object to_json(const Plan& plan) {
    json::array turns;
    for (const auto& turn : plan.turns) {
        json::array calls;
        for (const PlannedCall& call : turn) {
            calls.push_back(
                json::object{{"kind", call.kind}, {"of", call.of}, {"child", call.child}}
            );
        }
        turns.push_back(std::move(calls));
    }
    return {{"id", plan.id}, {"turns", turns}, {"fails", plan.fails}, {"hangs", plan.hangs}};
}

Plan from_json(const json::value& value) {
    Plan plan;
    plan.id = text(value, "id");
    plan.fails = value.at("fails").as_bool();
    plan.hangs = value.at("hangs").as_bool();
    for (const json::value& turn : value.at("turns").as_array()) {
        auto& calls = plan.turns.emplace_back();
        for (const json::value& call : turn.as_array()) {
            calls.push_back({text(call, "kind"), text(call, "of"), text(call, "child")});
        }
    }
    return plan;
}

Plan child_of(const PlannedCall& call) { return from_json(json::parse(call.child)); }

int pick(std::mt19937& random, int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
}

Plan random_child(const std::string& id, std::mt19937& random, bool may_hang) {
    Plan plan;
    plan.id = id;
    plan.turns.resize(static_cast<std::size_t>(pick(random, 0, 2)));
    for (auto& turn : plan.turns) {
        turn.resize(static_cast<std::size_t>(pick(random, 1, 2)), PlannedCall{"note", "", ""});
    }
    const int end = pick(random, 0, 9);
    plan.fails = end == 0;
    plan.hangs = may_hang && end == 1;
    return plan;
}

// A child as the parent's later turns see it.
struct Child {
    std::string call;
    Plan plan;  // the last one of its thread
    bool cancelled = false;
    bool ended = false;  // its end was waited for: its thread is free
};

// --- what the model sees --------------------------------------------------------------------

struct Talk {
    Plan plan;
    std::size_t turn = 0;                       // how many of its turns were made
    int messages = 0;                           // of users, with a plan
    std::map<std::string, std::string> result;  // by call id
};

std::optional<Talk> read_talk(const RecordedRequest& request) {
    std::optional<Talk> talk;
    int messages = 0;
    for (const json::value& message : request.json.at("messages").as_array()) {
        const std::string role = text(message, "role");
        const std::string content = text(message, "content");
        if (const std::size_t at = content.find(kMark); role == "user" && at != std::string::npos) {
            talk = Talk{};
            talk->plan = from_json(json::parse(content.substr(at + kMark.size())));
            talk->messages = ++messages;
        } else if (role == "assistant" && talk) {
            ++talk->turn;
        } else if (role == "tool" && talk) {
            const std::string id = text(message, "tool_call_id");
            talk->result[id.substr(std::min(id.size(), id.find('c')))] = content;
        }
    }
    return talk;
}

// {} when the text is no object.
json::object object_in(const std::string& result) {
    boost::system::error_code error;
    const json::value value = json::parse(result, error);
    return !error && value.is_object() ? value.as_object() : json::object{};
}

std::string thread_in(const std::string& result) {
    constexpr std::string_view kLine = "Sub-agent thread ID: ";
    if (result.starts_with(kLine)) {
        return result.substr(kLine.size(), result.find('\n') - kLine.size());
    }
    return text(object_in(result), "thread_id");
}

std::string end_in(const json::object& answer) {
    const json::value* result = answer.if_contains("result");
    const std::string output = result != nullptr ? text(*result, "output") : "";
    return output.empty() ? text(answer, "status") : output;
}

std::string token_of(const PlannedCall& call, const std::string& result) {
    if (call.kind == "task" || call.kind == "again") {
        const std::string said = result.substr(std::min(result.size(), result.find("\n\n") + 2));
        return said.starts_with("The sub-agent's run failed") ? "failed" : said;
    }
    const json::object answer = object_in(result);
    if (call.kind == "start") {
        // A call that a kill interrupted finds what it had started.
        const std::string status = text(answer, "status");
        return status == "existing" ? "started" : status;
    }
    if (call.kind == "await") {
        return end_in(answer);
    }
    if (call.kind == "status" || call.kind == "cancel") {
        return answer.contains("status") ? "seen" : result;  // when it ends is its own affair
    }
    if (call.kind == "ask") {
        return result.find("blue") != std::string::npos ? "blue" : result;
    }
    return result.find("note-") != std::string::npos ? "noted" : result;
}

std::string result_of(const Talk& talk, const std::string& call) {
    const auto found = talk.result.find(call);
    return found != talk.result.end() ? found->second : "no result of " + call;
}

std::string last_words(const Plan& plan, int messages, const std::vector<std::string>& tokens) {
    std::string out = plan.id + " in " + std::to_string(messages) + ":";
    for (const std::string& token : tokens) {
        out += " <" + token + ">";
    }
    return out;
}

json::object arguments_of(const Talk& talk, const PlannedCall& call, const std::string& id) {
    if (call.kind == "note") {
        const std::string name = "note-" + talk.plan.id + "-" + id;
        return {{"file_path", name}, {"content", name}};
    }
    if (call.kind == "ask") {
        return {
            {"questions",
             json::array{json::object{
                 {"question_id", "colour"},
                 {"question", "Which?"},
                 {"options", json::array{"red", "blue"}}
             }}}
        };
    }
    if (call.kind == "task" || call.kind == "start" || call.kind == "again") {
        json::object out{
            {"subagent_slug", "helper"}, {"description", std::string(kMark) + call.child}
        };
        if (call.kind == "again") {
            out["thread_id"] = thread_in(result_of(talk, call.of));
        }
        return out;
    }
    return {{"run_id", text(object_in(result_of(talk, call.of)), "run_id")}};
}

const char* tool_of(const std::string& kind) {
    static const std::map<std::string, const char*> tools{
        {"note", "write_file"},
        {"ask", "ask_user_question"},
        {"task", "task"},
        {"again", "task"},
        {"start", "subagent_start"},
        {"await", "subagent_await"},
        {"status", "subagent_status"},
        {"cancel", "subagent_cancel"}
    };
    return tools.at(kind);
}

ScriptedReply play(const RecordedRequest& request) {
    const std::optional<Talk> talk = read_talk(request);
    if (!talk) {
        return error_reply(400, R"({"error": {"message": "no plan in this conversation"}})");
    }
    const Plan& plan = talk->plan;
    if (talk->turn < plan.turns.size()) {
        std::vector<ScriptedCall> calls;
        const auto& turn = plan.turns[talk->turn];
        for (std::size_t i = 0; i < turn.size(); ++i) {
            const std::string id = call_id(talk->turn, i);
            // Once in a conversation: the client renames an id that comes again.
            calls.push_back(
                {"m" + std::to_string(talk->messages) + id,
                 tool_of(turn[i].kind),
                 json::serialize(arguments_of(*talk, turn[i], id))}
            );
        }
        return call_reply(calls);
    }
    if (plan.fails) {
        return error_reply(400, R"({"error": {"message": "refused as planned"}})");
    }
    if (plan.hangs) {
        ScriptedReply never = text_reply({"never said"});
        never.delay_before_head = std::chrono::minutes(10);
        return never;
    }
    std::vector<std::string> tokens;
    for (std::size_t turn = 0; turn < plan.turns.size(); ++turn) {
        for (std::size_t i = 0; i < plan.turns[turn].size(); ++i) {
            tokens.push_back(token_of(plan.turns[turn][i], result_of(*talk, call_id(turn, i))));
        }
    }
    return text_reply({last_words(plan, talk->messages, tokens)});
}

// One of an earlier turn that no call of this turn is about yet, as calls run side by side; null
// when there is none.
Child* known_child(
    std::vector<Child>& children, std::vector<std::string>& touched, std::mt19937& random
) {
    if (children.empty()) {
        return nullptr;
    }
    Child& found =
        children[static_cast<std::size_t>(pick(random, 0, static_cast<int>(children.size()) - 1))];
    if (std::ranges::find(touched, found.call) != touched.end()) {
        return nullptr;
    }
    touched.push_back(found.call);
    return &found;
}

PlannedCall look_after(Child& child, const std::string& next_id, std::mt19937& random) {
    if (!child.ended) {
        if (child.plan.hangs && !std::exchange(child.cancelled, true)) {
            return {"cancel", child.call, ""};
        }
        if (pick(random, 0, 3) == 0) {
            return {"status", child.call, ""};
        }
        child.ended = true;
        return {"await", child.call, ""};
    }
    if (child.plan.fails || child.plan.hangs) {
        return {"note", "", ""};
    }
    child.plan = random_child(next_id, random, false);
    return {"again", child.call, json::serialize(to_json(child.plan))};
}

}  // namespace

Plan random_plan(const std::string& id, std::mt19937& random, PlanSettings settings) {
    Plan plan;
    plan.id = id;
    std::vector<Child> children;
    bool asked = false;
    for (int turn = 0; turn < settings.turns; ++turn) {
        auto& calls = plan.turns.emplace_back();
        std::vector<Child> made;
        std::vector<std::string> touched;  // one call a child in a turn: calls run side by side
        const int count = pick(random, 1, settings.calls);
        for (int place = 0; place < count; ++place) {
            const std::string call =
                call_id(static_cast<std::size_t>(turn), static_cast<std::size_t>(place));
            const std::string child_id = id + "-" + call;
            Child* const known = known_child(children, touched, random);
            switch (pick(random, 0, 9)) {
                case 0:
                case 1:
                    made.push_back({call, random_child(child_id, random, false), false, true});
                    calls.push_back({"task", "", json::serialize(to_json(made.back().plan))});
                    break;
                case 2:
                case 3:
                case 4:
                    made.push_back({call, random_child(child_id, random, true)});
                    calls.push_back({"start", "", json::serialize(to_json(made.back().plan))});
                    break;
                case 5:
                    calls.push_back({settings.asks && !asked ? "ask" : "note", "", ""});
                    asked = true;
                    break;
                default:
                    calls.push_back(
                        known != nullptr ? look_after(*known, child_id, random)
                                         : PlannedCall{"note", "", ""}
                    );
            }
        }
        children.insert(children.end(), made.begin(), made.end());
    }
    return plan;
}

std::string message_of(const Plan& plan) {
    return std::string(kMark) + json::serialize(to_json(plan));
}

namespace {

Foreseen foresee_message(const Plan& plan, int messages) {
    Foreseen out;
    struct Known {
        Plan plan;
        int messages = 1;
    };
    std::map<std::string, Known> started;
    std::vector<std::string> tokens;
    const auto end_of = [&out](const Plan& child, int talked) -> std::string {
        if (child.hangs) {
            return "cancelled";
        }
        const Foreseen seen = foresee_message(child, talked);
        out.model_calls.insert(seen.model_calls.begin(), seen.model_calls.end());
        out.notes.insert(out.notes.end(), seen.notes.begin(), seen.notes.end());
        return child.fails ? "failed" : seen.output;
    };
    for (std::size_t turn = 0; turn < plan.turns.size(); ++turn) {
        for (std::size_t i = 0; i < plan.turns[turn].size(); ++i) {
            const PlannedCall& call = plan.turns[turn][i];
            const std::string id = call_id(turn, i);
            if (call.kind == "note") {
                out.notes.push_back("note-" + plan.id + "-" + id);
                tokens.emplace_back("noted");
            } else if (call.kind == "ask") {
                tokens.emplace_back("blue");
            } else if (call.kind == "task") {
                started[id] = {child_of(call), 1};
                tokens.push_back(end_of(started[id].plan, 1));
            } else if (call.kind == "again") {
                tokens.push_back(end_of(child_of(call), ++started.at(call.of).messages));
            } else if (call.kind == "start") {
                started[id] = {child_of(call), 1};
                tokens.emplace_back("started");
            } else if (call.kind == "await") {
                tokens.push_back(end_of(started.at(call.of).plan, 1));
            } else {
                tokens.emplace_back("seen");
            }
        }
    }
    out.model_calls[plan.id] = static_cast<int>(plan.turns.size()) + 1;
    out.output = last_words(plan, messages, tokens);
    return out;
}

}  // namespace

Foreseen foresee(const Plan& plan) { return foresee_message(plan, 1); }

std::string plan_id_of(const RecordedRequest& request) {
    const std::optional<Talk> talk = read_talk(request);
    return talk ? talk->plan.id : std::string();
}

ModelServer::Handler plan_player() {
    return [](const RecordedRequest& request, std::size_t) { return play(request); };
}

}  // namespace ars::tests
