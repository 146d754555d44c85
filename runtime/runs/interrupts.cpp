#include "runtime/runs/interrupts.hpp"

#include "runtime/runs/lineage.hpp"
#include "runtime/runs/prompt.hpp"
#include "runtime/runs/tool_round.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace ars::runs {

namespace json = boost::json;

namespace {

std::vector<tools::Question> questions_of(const store::ToolCall& call) {
    if (call.name != tools::kAskUserQuestion) {
        return {};
    }
    const auto arguments = parse_arguments(call.arguments);
    auto questions = arguments ? tools::parse_questions(*arguments)
                               : base::Result<std::vector<tools::Question>>();
    return questions ? std::move(*questions) : std::vector<tools::Question>();
}

json::object arguments_of(const store::ToolCall& call) {
    auto arguments = parse_arguments(call.arguments);
    return arguments ? std::move(*arguments) : json::object();
}

}  // namespace

bool waits_for_person(
    const store::RunRecord& run,
    const std::vector<tools::Tool*>& offered,
    const store::ToolCall& call
) {
    const bool is_offered = std::ranges::any_of(offered, [&](const tools::Tool* tool) {
        return tool->spec().name == call.name;
    });
    if (!is_offered || !parse_arguments(call.arguments)) {
        return false;
    }
    return call.name == tools::kAskUserQuestion
               ? !questions_of(call).empty()
               : run.approval_mode != kAlwaysTrust && needs_approval(call.name);
}

std::vector<Interrupt> pending_interrupts(const store::ReadTxn& txn, const store::RunRecord& run) {
    std::vector<Interrupt> out;
    if (run.status != store::RunStatus::interrupted || resumed_by(txn, run) != 0) {
        return out;
    }
    const auto message = txn.message(run.output_message);
    if (!message) {
        return out;
    }
    std::vector<std::string> answered;
    for (store::MessageRecord& later : txn.messages(run.thread, message->seq)) {
        answered.push_back(std::move(later.tool_call_id));
    }
    for (std::size_t i = 0; i < message->tool_calls.size(); ++i) {
        const store::ToolCall& call = message->tool_calls[i];
        const std::uint32_t step = step_of_call_id(call.id);
        const auto index = static_cast<std::uint32_t>(i);
        if (std::ranges::find(answered, call.id) == answered.end() &&
            !txn.call(run.no, step, index)) {
            out.push_back({call.id, step, index, call, questions_of(call)});
        }
    }
    return out;
}

json::object interrupt_to_json(const store::RunRecord& run, const Interrupt& interrupt) {
    json::object out{
        {"id", interrupt.id},
        {"type", interrupt.is_question() ? "question" : "approval"},
        {"run_id", run.id},
        {"tool_call_id", interrupt.call.id},
        {"tool_name", interrupt.call.name},
    };
    if (interrupt.is_question()) {
        out["questions"] = tools::questions_to_json(interrupt.questions);
    } else {
        out["arguments"] = arguments_of(interrupt.call);
    }
    return out;
}

json::array interrupts_to_json(const store::ReadTxn& txn, const store::RunRecord& run) {
    json::array out;
    for (const Interrupt& interrupt : pending_interrupts(txn, run)) {
        out.push_back(interrupt_to_json(run, interrupt));
    }
    return out;
}

store::EventRecord interrupt_event(const store::RunRecord& run, const Interrupt& interrupt) {
    json::object chunk{{"request_id", run.request_id}, {"thread_id", run.thread_id}};
    if (interrupt.is_question()) {
        chunk["status"] = "ask_user_question_required";
        chunk["questions"] = tools::questions_to_json(interrupt.questions);
        chunk["source"] = interrupt.call.name;
    } else {
        chunk["status"] = "human_approval_required";
        chunk["action_requests"] = json::array{
            json::object{{"name", interrupt.call.name}, {"args", arguments_of(interrupt.call)}}
        };
        chunk["review_configs"] = json::array{json::object{
            {"action_name", interrupt.call.name},
            {"allowed_decisions", json::array{"approve", "reject"}}
        }};
    }
    store::EventRecord event;
    event.run = run.no;
    event.type = "interrupt";
    event.payload = json::serialize(json::object{
        {"reason", interrupt.is_question() ? "ask_user_question_required" : "human_approval"},
        {"interrupt", interrupt_to_json(run, interrupt)},
        {"chunk", std::move(chunk)},
    });
    return event;
}

}  // namespace ars::runs
