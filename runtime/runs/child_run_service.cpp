#include "runtime/runs/child_run_service.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/lineage.hpp"
#include "runtime/runs/run_view.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace ars::runs {

namespace json = boost::json;
using base::ErrorKind;
using base::fail;

namespace {

std::string events_url(const store::RunRecord& run) {
    return "/api/agent/runs/" + run.id + "/events";
}
std::string result_url(const store::RunRecord& run) {
    return "/api/agent/runs/" + run.id + "/result";
}

json::object head(const store::RunRecord& run, std::string_view status) {
    return {
        {"status", status},
        {"run_id", run.id},
        {"thread_id", run.thread_id},
        {"subagent_slug", run.agent_slug},
        {"events_url", events_url(run)},
        {"result_url", result_url(run)},
    };
}

}  // namespace

std::string child_thread_id(
    std::string_view parent_thread_id, std::string_view slug, std::string_view call_id
) {
    const std::string digest =
        base::sha256_hex(fmt::format("{}:{}:{}", parent_thread_id, slug, call_id));
    return fmt::format("{}_sub_{}_{}", parent_thread_id, slug, digest.substr(0, 8));
}

struct ChildRunService::Plan {
    store::RunRecord run;
    store::ThreadRecord thread;  // no == 0: to be made
    std::string description;
    std::string subagent_name;
    std::uint32_t call_step = 0;
    std::uint32_t call_index = 0;
};

namespace {

struct Started {
    store::RunRecord run;
    std::string status;  // "started", "existing" or "busy"
    bool continuing = false;
};

// The child's thread, message, run and first events, and the parent's notice of it: one
// transaction.
template <class Plan>
base::Result<Started> write_child(store::WriteTxn& txn, Plan plan) {
    if (const auto known = txn.run_by_request(plan.run.request_id)) {
        return Started{*known, "existing", plan.thread.no != 0};
    }
    const auto parent = txn.run(plan.run.parent);
    if (!parent || parent->status != store::RunStatus::running) {
        return fail(ErrorKind::conflict, "parent_not_running", "The calling run has ended.");
    }
    const bool continuing = plan.thread.no != 0;
    if (continuing) {
        if (const auto open = txn.open_run_of_thread(plan.thread.no)) {
            return Started{txn.run(*open).value(), "busy", true};
        }
    } else {
        plan.thread.parent = parent->thread;
        plan.thread.root = txn.thread(parent->thread).value().root;
        txn.put_thread(plan.thread);
    }
    plan.run.thread = plan.thread.no;
    txn.put_run(plan.run);
    store::MessageRecord message;
    message.thread = plan.thread.no;
    message.run = plan.run.no;
    message.role = store::Role::user;
    message.content = plan.description;
    txn.add_message(message);
    plan.run.input_message = message.seq;
    txn.put_run(plan.run);
    store::CallRecord call =
        txn.call(parent->no, plan.call_step, plan.call_index).value_or(store::CallRecord{});
    call.run = parent->no;
    call.step = plan.call_step;
    call.index = plan.call_index;
    call.child = plan.run.no;
    txn.put_call(call);
    store::EventRecord metadata = events::metadata(plan.run);
    txn.add_event(metadata);
    store::EventRecord update = events::subagent_update(plan.run, parent->no);
    txn.add_event(update);
    return Started{plan.run, "started", continuing};
}

}  // namespace

base::Result<ChildRunService::Plan> ChildRunService::plan(
    const LiveRun& parent, const tools::ToolContext& context, const tools::StartChild& request
) const {
    if (parent.record.type == store::RunType::subagent) {
        return fail(ErrorKind::forbidden, "no_nesting", "A sub-agent can't start sub-agents.");
    }
    const auto allowed = std::find_if(
        parent.subagents.begin(),
        parent.subagents.end(),
        [&](const agents::AgentPtr& agent) { return agent->slug == request.subagent_slug; }
    );
    if (allowed == parent.subagents.end()) {
        std::string names;
        for (const agents::AgentPtr& agent : parent.subagents) {
            names += (names.empty() ? "" : ", ") + agent->slug;
        }
        return fail(
            ErrorKind::not_found,
            "unknown_subagent",
            fmt::format(
                "There is no sub-agent \"{}\" here. Call one of: {}.", request.subagent_slug, names
            )
        );
    }
    if (base::trim(request.description).empty()) {
        return fail(
            ErrorKind::invalid,
            "empty_description",
            "Say in `description` what the sub-agent has to do."
        );
    }
    const agents::Agent& agent = **allowed;
    Plan plan;
    plan.description = request.description;
    plan.subagent_name = agent.name;
    plan.call_step = context.step;
    plan.call_index = context.index;
    const std::string thread_id =
        request.thread_id.empty()
            ? child_thread_id(parent.record.thread_id, agent.slug, context.call_id)
            : request.thread_id;
    const auto known =
        parts_.store.read([&](const store::ReadTxn& txn) { return txn.thread_by_id(thread_id); });
    if (!request.thread_id.empty() &&
        (!known || known->uid != parent.record.uid || known->parent != parent.record.thread ||
         known->agent_slug != agent.slug || known->status != store::ThreadStatus::subagent)) {
        return fail(
            ErrorKind::not_found,
            "unknown_subagent_thread",
            fmt::format(
                "This conversation has no thread \"{}\" of {}. Leave thread_id out to start a new "
                "one.",
                thread_id,
                agent.slug
            )
        );
    }
    if (known) {
        plan.thread = *known;
    } else {
        plan.thread.id = thread_id;
        plan.thread.uid = parent.record.uid;
        plan.thread.agent_slug = agent.slug;
        plan.thread.title = "SubAgent: " + agent.name;
        plan.thread.status = store::ThreadStatus::subagent;
        const auto own = parts_.store.read([&](const store::ReadTxn& txn) {
            return txn.thread(parent.record.thread);
        });
        plan.thread.workdir_path = own ? own->workdir_path : std::string();
    }
    store::RunRecord& run = plan.run;
    run.thread_id = thread_id;
    run.uid = parent.record.uid;
    run.agent_slug = agent.slug;
    run.request_id =
        "req:" +
        base::sha256_hex(fmt::format("{}:{}:{}", parent.record.id, thread_id, context.call_id))
            .substr(0, 44);
    run.type = store::RunType::subagent;
    run.parent = parent.record.no;
    run.root = parent.record.root;
    run.parent_call_id = context.call_id;
    run.scope_id = parent.record.scope_id;
    run.model_spec =
        agent.context.model.empty() ? parts_.settings.default_model : agent.context.model;
    run.approval_mode = parent.record.approval_mode;
    run.agent_config = parts_.snapshots->text_of(*allowed);
    run.agent_version = agent.version;
    run.agent_digest = agent.digest;
    run.max_steps = std::min(agent.context.max_execution_steps, parts_.settings.max_steps);
    run.timeout_ms = parent.deadline.remaining().count();
    return plan;
}

base::Task<base::Result<json::object>> ChildRunService::start(
    const tools::ToolContext& context, tools::StartChild request
) {
    const LiveRunPtr parent = supervisor_.find(context.run_no);
    if (!parent) {
        co_return fail(ErrorKind::conflict, "parent_not_running", "The calling run has ended.");
    }
    base::Result<Plan> planned = plan(*parent, context, request);
    if (!planned) {
        co_return std::unexpected(planned.error());
    }
    const std::string name = planned->subagent_name;
    if (supervisor_.live_children_of(context.run_no) >= base::limits::kMaxParallelChildren) {
        co_return fail(
            ErrorKind::exhausted,
            "too_many_children",
            fmt::format(
                "{} sub-agents of this run are still working. Await some of them before you start "
                "another.",
                base::limits::kMaxParallelChildren
            )
        );
    }
    std::function<base::Result<Started>(store::WriteTxn&)> change =
        [plan = std::move(*planned)](store::WriteTxn& txn) { return write_child(txn, plan); };
    base::Result<Started> started = co_await commit<Started>(
        parts_.store, parent->deadline, parent->process_ends, std::move(change)
    );
    if (!started) {
        co_return std::unexpected(started.error());
    }
    const store::RunRecord& run = started->run;
    if (started->status == "busy") {
        co_return json::object{
            {"status", "busy"},
            {"thread_id", run.thread_id},
            {"active_run_id", run.id},
            {"active_run_status", store::to_string(run.status)},
            {"message",
             "This sub-agent thread is still working. Await that run, or leave thread_id out to "
             "start another thread."}
        };
    }
    if (started->status == "started") {
        supervisor_.launch(run);
        parent->changed.notify_all();
    }
    json::object out = head(run, started->status);
    out["subagent_name"] = name;
    out["created_by_run_id"] = context.run_id;
    out["run_status"] = store::to_string(run.status);
    out["continuing"] = started->continuing;
    co_return out;
}

base::Result<store::RunRecord> ChildRunService::owned(
    const tools::ToolContext& context, const std::string& run_id
) const {
    auto run = parts_.store.read([&](const store::ReadTxn& txn) { return txn.run_by_id(run_id); });
    if (!run || run->uid != context.uid || run->type != store::RunType::subagent ||
        !parts_.store.read([&](const store::ReadTxn& txn) {
            return in_lineage(txn, run->parent, context.run_no);
        })) {
        return fail(
            ErrorKind::not_found,
            "unknown_subagent_run",
            fmt::format(
                "This run started no sub-agent run \"{}\". Use a run_id that subagent_start gave "
                "you.",
                run_id
            )
        );
    }
    return std::move(*run);
}

base::Task<base::Result<json::object>> ChildRunService::status(
    const tools::ToolContext& context, std::string run_id
) {
    const auto run = owned(context, run_id);
    if (!run) {
        co_return std::unexpected(run.error());
    }
    json::object out = head(*run, store::to_string(run->status));
    out["error"] =
        run->error_message.empty() ? json::value(nullptr) : json::value(run->error_message);
    parts_.store.read([&](const store::ReadTxn& txn) {
        out["progress"] = progress_of(txn, *run);
        if (store::is_terminal(run->status)) {
            out["result"] = result_of(txn, *run);
        }
    });
    co_return out;
}

base::Task<base::Result<json::object>> ChildRunService::await(
    const tools::ToolContext& context, std::string run_id, base::milliseconds limit
) {
    const auto before = owned(context, run_id);
    if (!before) {
        co_return std::unexpected(before.error());
    }
    base::Deadline deadline = base::Deadline::after(limit).earlier(context.deadline);
    if (context.deadline_ms != 0) {
        const auto left = base::milliseconds(context.deadline_ms - base::now_ms());
        deadline = deadline.earlier(base::Deadline::after(std::max(left, base::milliseconds(0))));
    }
    co_await supervisor_.wait_end(before->no, deadline);
    const auto run = owned(context, run_id);
    if (!run) {
        co_return std::unexpected(run.error());
    }
    json::object out = head(*run, store::to_string(run->status));
    parts_.store.read([&](const store::ReadTxn& txn) { out["result"] = result_of(txn, *run); });
    if (!store::is_terminal(run->status)) {
        out["wait_timed_out"] = true;
        out["message"] =
            "The sub-agent is still working. Call subagent_await or subagent_status again later.";
    }
    co_return out;
}

base::Task<base::Result<json::object>> ChildRunService::cancel(
    const tools::ToolContext& context, std::string run_id
) {
    const auto run = owned(context, run_id);
    if (!run) {
        co_return std::unexpected(run.error());
    }
    const auto cancelled = co_await supervisor_.request_cancel(run->no);
    if (!cancelled) {
        co_return std::unexpected(cancelled.error());
    }
    co_return head(*cancelled, store::to_string(cancelled->status));
}

}  // namespace ars::runs
