#include "runtime/runs/resume.hpp"

#include "base/digest.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/intake.hpp"
#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/lineage.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ars::runs {

namespace json = boost::json;
using base::ErrorKind;
using base::fail;

namespace {

constexpr std::size_t kDerivedIdBytes = 64;
constexpr std::size_t kReasonBytes = 4096;

std::unexpected<base::Error> bad_resume(std::string message) {
    return fail(ErrorKind::invalid, "bad_resume", std::move(message));
}

base::Result<Decision> read_decision(const json::value& value) {
    constexpr const char* kShape =
        "resume: an answer is {\"answers\": {...}} or {\"decision\": \"approve\" | \"reject\", "
        "\"reason\"?}";
    const json::object* object = value.if_object();
    if (object == nullptr) {
        return bad_resume(kShape);
    }
    Decision out;
    if (const json::value* answers = object->if_contains("answers")) {
        if (object->size() != 1 || !answers->is_object()) {
            return bad_resume(kShape);
        }
        out.kind = Decision::Kind::answers;
        out.answers = answers->get_object();
        if (json::serialize(out.answers).size() > base::limits::kUserQueryBytes) {
            return fail(ErrorKind::too_large, "answers_too_large", "resume: answers are too large");
        }
        return out;
    }
    const json::value* decision = object->if_contains("decision");
    const json::value* reason = object->if_contains("reason");
    const std::size_t known = (decision != nullptr ? 1U : 0U) + (reason != nullptr ? 1U : 0U);
    if (decision == nullptr || object->size() != known) {
        return bad_resume(kShape);
    }
    if (*decision == "reject") {
        out.kind = Decision::Kind::reject;
    } else if (*decision != "approve") {
        return bad_resume("resume: decision must be \"approve\" or \"reject\"");
    }
    if (reason != nullptr) {
        if (out.kind != Decision::Kind::reject || !reason->is_string() ||
            reason->get_string().size() > kReasonBytes) {
            return bad_resume(fmt::format(
                "resume: reason goes with \"reject\" and is a text of at most {} bytes",
                kReasonBytes
            ));
        }
        out.reason = reason->get_string();
    }
    return out;
}

// The same value however its keys were ordered.
json::value canonical(const json::value& value) {
    if (const json::object* object = value.if_object()) {
        std::map<std::string, json::value> sorted;
        for (const auto& [key, item] : *object) {
            sorted.emplace(key, canonical(item));
        }
        json::object out;
        for (auto& [key, item] : sorted) {
            out.emplace(key, std::move(item));
        }
        return out;
    }
    if (const json::array* array = value.if_array()) {
        json::array out;
        for (const json::value& item : *array) {
            out.push_back(canonical(item));
        }
        return out;
    }
    return value;
}

using Decided = std::vector<std::pair<Interrupt, Decision>>;

base::Result<void> check_kind(const Interrupt& interrupt, const Decision& decision) {
    const bool answers = decision.kind == Decision::Kind::answers;
    if (answers != interrupt.is_question()) {
        return fail(
            ErrorKind::invalid,
            "wrong_answer",
            fmt::format(
                "interrupt {} is {}",
                interrupt.id,
                interrupt.is_question() ? "a question: send {\"answers\": {...}}"
                                        : "an approval: send {\"decision\": \"approve\" | "
                                          "\"reject\"}"
            )
        );
    }
    return answers ? tools::check_answers(interrupt.questions, decision.answers)
                   : base::Result<void>();
}

base::Result<Decided> match(std::vector<Interrupt> pending, const Decisions& decisions) {
    std::string ids;
    for (const Interrupt& interrupt : pending) {
        ids += (ids.empty() ? "" : ", ") + interrupt.id;
    }
    if (decisions.bare && pending.size() != 1) {
        return fail(
            ErrorKind::conflict,
            "interrupt_id_required",
            fmt::format("{} answers are awaited; send them by id: {}", pending.size(), ids)
        );
    }
    for (const auto& [id, decision] : decisions.by_id) {
        if (std::ranges::find(pending, id, &Interrupt::id) == pending.end()) {
            return fail(
                ErrorKind::invalid,
                "unknown_interrupt",
                fmt::format("no interrupt \"{}\" is pending here; pending: {}", id, ids)
            );
        }
    }
    Decided out;
    for (Interrupt& interrupt : pending) {
        const auto found = decisions.by_id.find(interrupt.id);
        if (!decisions.bare && found == decisions.by_id.end()) {
            continue;
        }
        const Decision& decision = decisions.bare ? *decisions.bare : found->second;
        if (auto fits = check_kind(interrupt, decision); !fits) {
            return std::unexpected(fits.error());
        }
        out.emplace_back(std::move(interrupt), decision);
    }
    return out;
}

// The result of a call that will not run: its answer, or that it was rejected.
store::MessageRecord result_of(
    const store::RunRecord& run, const Interrupt& interrupt, const Decision& decision
) {
    store::MessageRecord message;
    message.thread = run.thread;
    message.run = run.no;
    message.role = store::Role::tool;
    message.tool_call_id = interrupt.id;
    message.tool_name = interrupt.call.name;
    if (decision.kind == Decision::Kind::answers) {
        message.content = json::serialize(json::object{
            {"questions", tools::questions_to_json(interrupt.questions)},
            {"answer", decision.answers},
        });
        return message;
    }
    message.is_error = true;
    message.content = "The user rejected this call: it was not run.";
    if (!decision.reason.empty()) {
        message.content += " Reason: " + base::to_utf8(decision.reason).text;
    }
    return message;
}

store::RunRecord next_run(const store::RunRecord& parent, const Resumption& resumption) {
    store::RunRecord run;
    run.thread = parent.thread;
    run.thread_id = parent.thread_id;
    run.uid = parent.uid;
    run.agent_slug = parent.agent_slug;
    run.request_id = resumption.request.request_id;
    run.body_digest = resumption.digest;
    run.source = parent.source;
    run.type = store::RunType::resume;
    run.parent = parent.no;
    run.root = parent.root;
    run.scope_id = parent.scope_id;
    run.model_spec = parent.model_spec;
    run.approval_mode = parent.approval_mode;
    run.agent_config = parent.agent_config;
    run.agent_version = parent.agent_version;
    run.agent_digest = parent.agent_digest;
    // One lineage has one budget: an orchestrator that approves everything gets no endless run.
    run.steps = parent.steps;
    run.max_steps = parent.max_steps;
    run.served_ms = parent.served_ms;
    run.timeout_ms = parent.timeout_ms;
    return run;
}

struct OpenCall {
    store::ToolCall call;
    std::uint32_t step = 0;
    std::uint32_t index = 0;
};

// Calls that an earlier answer approved, while others of the same message were still undecided.
std::vector<OpenCall> approved_before(const store::ReadTxn& txn, const store::RunRecord& parent) {
    std::vector<OpenCall> out;
    const auto message = txn.message(parent.output_message);
    for (const store::CallRecord& intent : txn.calls(parent.no, parent.steps)) {
        if (!intent.done && message && intent.index < message->tool_calls.size()) {
            out.push_back({message->tool_calls[intent.index], intent.step, intent.index});
        }
    }
    return out;
}

void write_decided(
    store::WriteTxn& txn,
    const store::RunRecord& run,
    const Decided& decided,
    std::vector<OpenCall> approved,
    store::Seq message,
    bool starts
) {
    for (const auto& [interrupt, decision] : decided) {
        if (decision.kind == Decision::Kind::approve) {
            approved.push_back({interrupt.call, interrupt.step, interrupt.index});
            continue;
        }
        store::MessageRecord result = result_of(run, interrupt, decision);
        txn.add_message(result);
        store::CallRecord call;
        call.run = run.no;
        call.step = interrupt.step;
        call.index = interrupt.index;
        call.done = true;
        call.result = result.seq;
        txn.put_call(call);
        store::EventRecord finished = events::tool_finished(run, result, {});
        txn.add_event(finished);
    }
    for (const OpenCall& open : approved) {
        store::CallRecord intent;
        intent.run = run.no;
        intent.step = open.step;
        intent.index = open.index;
        txn.put_call(intent);
        if (starts) {
            store::EventRecord started = events::tool_started(run, message, open.index);
            txn.add_event(started);
        }
    }
}

base::Result<store::RunRecord> parent_of(store::WriteTxn& txn, const ResumeRun& request) {
    auto parent = txn.run_by_id(request.run_id);
    if (!parent || parent->uid != request.user.uid || parent->agent_slug != request.agent_slug ||
        parent->type == store::RunType::subagent ||
        (!request.thread_id.empty() && parent->thread_id != request.thread_id)) {
        return fail(
            ErrorKind::not_found,
            "run_not_found",
            fmt::format("no run \"{}\" of agent \"{}\"", request.run_id, request.agent_slug)
        );
    }
    return std::move(*parent);
}

base::Result<void> check_waits(const store::WriteTxn& txn, const store::RunRecord& parent) {
    if (parent.status != store::RunStatus::interrupted) {
        return fail(
            ErrorKind::conflict,
            "run_not_interrupted",
            fmt::format(
                "run {} waits for nobody: it is {}", parent.id, store::to_string(parent.status)
            )
        );
    }
    if (const store::RunRecord latest = latest_of_lineage(txn, parent); latest.no != parent.no) {
        return fail(
            ErrorKind::conflict,
            "resume_superseded",
            fmt::format("run {} was resumed already; the latest is {}", parent.id, latest.id)
        );
    }
    return {};
}

}  // namespace

base::Result<Decisions> read_decisions(const json::value& resume) {
    const json::object* object = resume.if_object();
    if (object == nullptr || object->empty()) {
        return bad_resume("resume: must be an object of answers by interrupt id");
    }
    Decisions out;
    if (object->contains("answers") || object->contains("decision")) {
        base::Result<Decision> bare = read_decision(resume);
        if (!bare) {
            return std::unexpected(bare.error());
        }
        out.bare = std::move(*bare);
        return out;
    }
    for (const auto& [id, value] : *object) {
        base::Result<Decision> decision = read_decision(value);
        if (!decision) {
            return std::unexpected(decision.error());
        }
        out.by_id.emplace(id, std::move(*decision));
    }
    return out;
}

base::Result<Resumption> check_resumption(ResumeRun request) {
    base::Result<Decisions> decisions = read_decisions(request.resume);
    if (!decisions) {
        return std::unexpected(decisions.error());
    }
    Resumption out;
    out.decisions = std::move(*decisions);
    const std::string intent = fmt::format(
        "{}\n{}\n{}", request.user.uid, request.run_id, json::serialize(canonical(request.resume))
    );
    out.digest = base::sha256_hex(intent);
    if (request.request_id.empty()) {
        // The same answers, sent again, are the same run.
        request.request_id = ("resume:" + out.digest).substr(0, kDerivedIdBytes);
    }
    out.request = std::move(request);
    return out;
}

base::Result<Submitted> write_resumption(store::WriteTxn& txn, const Resumption& resumption) {
    const base::Result<store::RunRecord> parent = parent_of(txn, resumption.request);
    if (!parent) {
        return std::unexpected(parent.error());
    }
    const std::string& request_id = resumption.request.request_id;
    if (auto known = txn.run_by_request(request_id);
        known && known->uid == parent->uid && known->body_digest == resumption.digest) {
        return submitted_run(txn, std::move(*known), true);
    } else if (known || txn.request_by_id(request_id)) {
        return fail(
            ErrorKind::conflict,
            "request_id_conflict",
            "this request_id was used for a different request; use a new one"
        );
    }
    if (const auto waits = check_waits(txn, *parent); !waits) {
        return std::unexpected(waits.error());
    }
    std::vector<Interrupt> pending = pending_interrupts(txn, *parent);
    const std::size_t awaited = pending.size();
    const base::Result<Decided> decided = match(std::move(pending), resumption.decisions);
    if (!decided) {
        return std::unexpected(decided.error());
    }
    const bool starts = decided->size() == awaited;
    if (starts && resumption.no_slot) {
        return fail(
            ErrorKind::exhausted,
            "runs_full",
            "as many runs as runs.max_concurrent allows are active; try again"
        );
    }
    const std::vector<OpenCall> before = approved_before(txn, *parent);
    store::RunRecord run = next_run(*parent, resumption);
    run.status = starts ? store::RunStatus::pending : store::RunStatus::interrupted;
    run.output_message = starts ? 0 : parent->output_message;
    txn.put_run(run);
    store::EventRecord metadata = events::metadata(run);
    txn.add_event(metadata);
    write_decided(txn, run, *decided, before, parent->output_message, starts);
    if (!starts) {
        for (const Interrupt& interrupt : pending_interrupts(txn, run)) {
            store::EventRecord event = interrupt_event(run, interrupt);
            txn.add_event(event);
        }
        store::EventRecord end = events::end(run);
        txn.add_event(end);
    }
    return submitted_run(txn, run, false);
}

}  // namespace ars::runs
