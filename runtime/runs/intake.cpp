#include "runtime/runs/intake.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "fsmount/layout.hpp"
#include "runtime/runs/attachments.hpp"
#include "runtime/runs/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ars::runs {

using base::ErrorKind;
using base::fail;

namespace {

constexpr std::size_t kTitleBytes = 80;
constexpr std::size_t kThreadIdBytes =
    200;  // LMDB keys end at 511 bytes, a child's id is longer than its parent's
constexpr std::size_t kRequestIdBytes = 200;

base::Result<agents::AgentPtr> chat_agent(
    const RunParts& parts, const agents::User& user, const std::string& slug
) {
    agents::AgentPtr agent = parts.agents.find(slug, user);
    if (agent == nullptr) {
        return fail(ErrorKind::not_found, "agent_not_found", fmt::format("no agent \"{}\"", slug));
    }
    if (agent->is_subagent) {
        return fail(
            ErrorKind::invalid,
            "agent_is_subagent",
            fmt::format("\"{}\" is a sub-agent: it is called by a main agent, not directly", slug)
        );
    }
    return agent;
}

base::Result<void> check_thread_id(const std::string& id) {
    const bool sound =
        id.size() <= kThreadIdBytes && std::all_of(id.begin(), id.end(), [](unsigned char c) {
            return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == ':';
        });
    if (!sound) {
        return fail(
            ErrorKind::invalid,
            "bad_thread_id",
            fmt::format(
                "a thread id has at most {} characters of A-Z a-z 0-9 - _ . :", kThreadIdBytes
            )
        );
    }
    return {};
}

store::ThreadRecord fresh_thread(const agents::User& user, const std::string& agent_slug) {
    store::ThreadRecord thread;
    thread.uid = user.uid;
    thread.agent_slug = agent_slug;
    thread.workdir_path = new_managed_workdir();
    return thread;
}

base::Result<void> check_query(const std::string& query) {
    if (base::trim(query).empty()) {
        return fail(ErrorKind::invalid, "empty_query", "query must not be empty");
    }
    if (query.size() > base::limits::kUserQueryBytes) {
        return fail(
            ErrorKind::too_large,
            "query_too_large",
            fmt::format(
                "query is larger than {} bytes; put long material into a file",
                base::limits::kUserQueryBytes
            )
        );
    }
    if (!base::is_utf8(query)) {
        return fail(ErrorKind::invalid, "query_not_utf8", "query is not valid UTF-8");
    }
    return {};
}

}  // namespace

base::Result<Intake> check_submission(const RunParts& parts, const SubmitRun& request) {
    if (auto sound = check_query(request.query); !sound) {
        return std::unexpected(sound.error());
    }
    if (request.queue_policy == store::QueuePolicy::steer && request.source != "chat" &&
        request.source != "channel") {
        return fail(
            ErrorKind::invalid, "steer_not_allowed", "only messages of a chat can steer a run"
        );
    }
    if (request.request_id.size() > kRequestIdBytes) {
        return fail(ErrorKind::invalid, "bad_request_id", "request_id has at most 200 bytes");
    }
    const auto found = chat_agent(parts, request.user, request.agent_slug);
    if (!found) {
        return std::unexpected(found.error());
    }
    const agents::Agent& agent = **found;
    Intake intake;
    intake.query = request.query;
    intake.attachments = request.attachments;
    if (request.thread_id.empty() || request.makes_thread) {
        intake.thread = fresh_thread(request.user, agent.slug);
        intake.thread.id = request.thread_id;
        intake.thread.is_hidden = request.makes_thread;
        intake.thread.title = base::utf8_head(base::trim(request.query), kTitleBytes);
    } else {
        const auto thread = parts.store.read([&](const store::ReadTxn& txn) {
            return txn.thread_by_id(request.thread_id);
        });
        if (!thread || thread->uid != request.user.uid || thread->agent_slug != agent.slug ||
            thread->status != store::ThreadStatus::active) {
            return fail(
                ErrorKind::not_found,
                "thread_not_found",
                fmt::format("no thread \"{}\" of agent \"{}\"", request.thread_id, agent.slug)
            );
        }
        intake.thread = *thread;
    }
    store::RunRecord& run = intake.run;
    run.uid = request.user.uid;
    run.agent_slug = agent.slug;
    run.request_id = request.request_id;
    run.body_digest = request.body_digest;
    run.source = request.source;
    run.queue_policy = request.queue_policy;
    run.model_spec = !request.model_spec.empty()    ? std::string(base::trim(request.model_spec))
                     : !agent.context.model.empty() ? agent.context.model
                                                    : parts.settings.default_model;
    if (auto model = parts.models.resolve(run.model_spec); !model) {
        return std::unexpected(model.error());
    }
    run.approval_mode = intake.thread.approval_mode;
    if (request.approval_mode || run.approval_mode.empty()) {
        run.approval_mode = name_of(request.approval_mode.value_or(
            agent.context.tool_approval_mode.value_or(parts.settings.approval_mode)
        ));
    }
    run.agent_config = parts.snapshots->text_of(*found);
    run.agent_version = agent.version;
    run.agent_digest = agent.digest;
    const std::uint32_t most =
        std::min(agent.context.max_execution_steps, parts.settings.max_steps);
    run.max_steps = std::min(request.max_steps.value_or(most), most);
    run.timeout_ms =
        std::min(request.timeout.value_or(parts.settings.timeout), parts.settings.timeout).count();
    return intake;
}

base::Result<store::ThreadRecord> check_new_thread(
    const RunParts& parts, const NewThread& request
) {
    const auto agent = chat_agent(parts, request.user, request.agent_slug);
    if (!agent) {
        return std::unexpected(agent.error());
    }
    if (auto sound = check_thread_id(request.thread_id); !sound) {
        return std::unexpected(sound.error());
    }
    store::ThreadRecord thread = fresh_thread(request.user, (*agent)->slug);
    thread.id = request.thread_id;
    if (thread.id.empty() && !request.request_id.empty()) {
        // The same request finds the same thread again, without an index of its own.
        thread.id =
            "t-" + base::sha256_hex(request.user.uid + "\n" + request.request_id).substr(0, 40);
    }
    thread.title = request.title;
    thread.request_id = request.request_id;
    thread.metadata = request.metadata;
    if (!request.project_id.empty()) {
        const auto project = parts.store.read([&request](const store::ReadTxn& txn) {
            return find_project(txn, request.user.uid, request.project_id);
        });
        if (!project) {
            return std::unexpected(project.error());
        }
        thread.workdir_path = project->workdir_path;
    }
    if (request.workdir_path) {
        if (auto sound = fsmount::check_workdir(*request.workdir_path); !sound) {
            return std::unexpected(sound.error());
        }
        thread.workdir_path = *request.workdir_path;
    }
    return thread;
}

Submitted submitted_run(const store::ReadTxn& txn, store::RunRecord run, bool replayed) {
    Submitted out;
    out.request = request_of(txn, run);
    out.run = std::move(run);
    out.message_id = out.request.message_id;
    out.replayed = replayed;
    return out;
}

namespace {

// What the request id stands for already; nothing when it is new.
std::optional<base::Result<Submitted>> known_request(
    const store::ReadTxn& txn, const store::RunRecord& wanted
) {
    if (wanted.request_id.empty()) {
        return std::nullopt;
    }
    Submitted known;
    if (auto request = txn.request_by_id(wanted.request_id)) {
        known.replayed = true;
        known.request = *std::move(request);
        known.run = txn.run(known.request.run).value_or(store::RunRecord{});
        known.message_id = known.request.message_id;
        known.position = queue_position(txn, known.request);
    } else if (auto run = txn.run_by_request(wanted.request_id)) {
        known = submitted_run(txn, *std::move(run), true);
    } else {
        return std::nullopt;
    }
    if (known.request.uid != wanted.uid || known.request.body_digest != wanted.body_digest) {
        return fail(
            ErrorKind::conflict,
            "request_id_conflict",
            "this request_id was used for a different request; use a new one"
        );
    }
    return known;
}

// A new thread whose id was given may be there already: then it is that one.
base::Result<void> same_thread(const store::ReadTxn& txn, store::ThreadRecord& thread) {
    if (thread.no != 0 || thread.id.empty()) {
        return {};
    }
    if (auto known = txn.thread_by_id(thread.id)) {
        if (known->uid != thread.uid || known->agent_slug != thread.agent_slug) {
            return fail(
                ErrorKind::conflict, "thread_exists", "this thread id is taken; use another one"
            );
        }
        thread = *std::move(known);
    }
    return {};
}

base::Result<Submitted> begin_at_once(
    store::WriteTxn& txn, Intake intake, const IntakeBounds& bounds
) {
    if (bounds.starts) {
        intake.run.status = store::RunStatus::running;
        intake.run.started_ms = base::now_ms();
    }
    store::MessageRecord message;
    message.content = std::move(intake.query);
    begin_run(txn, intake.run, intake.thread, std::move(message));
    return submitted_run(txn, std::move(intake.run), false);
}

store::RequestRecord request_for(const store::ReadTxn& txn, const Intake& intake) {
    const store::RunRecord& run = intake.run;
    store::RequestRecord request;
    request.request_id = run.request_id.empty() ? "req-" + base::random_uuid() : run.request_id;
    request.thread = intake.thread.no;
    request.thread_id = intake.thread.id;
    request.uid = run.uid;
    request.agent_slug = run.agent_slug;
    request.body_digest = run.body_digest;
    request.source = run.source;
    request.policy = run.queue_policy;
    request.message_id = base::random_uuid();
    request.model_spec = run.model_spec;
    request.approval_mode = run.approval_mode;
    request.max_steps = run.max_steps;
    request.timeout_ms = run.timeout_ms;
    // A message after a failure is later than it, also within one millisecond: it must not pause.
    const auto latest = txn.latest_run_of_thread(intake.thread.no);
    request.created_ms = std::max(base::now_ms(), (latest ? txn.run(*latest)->finished_ms : 0) + 1);
    return request;
}

base::Result<Submitted> refuse(
    store::WriteTxn& txn, const Intake& intake, const QueueState& state
) {
    Submitted out;
    out.request = request_for(txn, intake);
    out.request.status = store::RequestStatus::rejected;
    const bool paused = state.status == QueueStatus::paused;
    out.request.error_type = paused ? "queue_paused" : "run_busy";
    out.request.error_message =
        paused ? "earlier messages of this thread wait until somebody continues the queue"
               : "a run of this thread has not ended, or earlier messages wait; await or cancel it";
    if (state.blocker) {
        out.run = *state.blocker;
        out.request.run = out.run.no;
    }
    txn.put_request(out.request);
    out.message_id = out.request.message_id;
    return out;
}

base::Result<Submitted> queue_up(
    store::WriteTxn& txn, const Intake& intake, const IntakeBounds& bounds
) {
    if (txn.queued_requests() >= bounds.max_queued) {
        return fail(
            ErrorKind::exhausted,
            "queue_full",
            "as many messages as runs.max_queued allows wait for their turn; try again"
        );
    }
    Submitted out;
    out.request = request_for(txn, intake);
    out.request.content = intake.query;
    out.request.agent_config = intake.run.agent_config;
    out.request.agent_version = intake.run.agent_version;
    out.request.agent_digest = intake.run.agent_digest;
    txn.put_request(out.request);
    out.message_id = out.request.message_id;
    out.position = queue_position(txn, out.request);
    return out;
}

base::Result<Submitted> accept(
    store::WriteTxn& txn, Intake intake, const IntakeBounds& bounds, const QueueState& state
) {
    if (state.status != QueueStatus::idle) {
        return intake.run.queue_policy == store::QueuePolicy::reject
                   ? refuse(txn, intake, state)
                   : queue_up(txn, intake, bounds);
    }
    if (bounds.no_slot) {
        return fail(
            ErrorKind::exhausted,
            "runs_full",
            "as many runs as runs.max_concurrent allows are active; try again"
        );
    }
    return begin_at_once(txn, std::move(intake), bounds);
}

}  // namespace

base::Result<Submitted> write_intake(
    store::WriteTxn& txn, Intake intake, const IntakeBounds& bounds
) {
    if (auto known = known_request(txn, intake.run)) {
        return *std::move(known);
    }
    QueueState state;
    if (auto taken = same_thread(txn, intake.thread); !taken) {
        return std::unexpected(taken.error());
    }
    if (intake.thread.no == 0) {
        txn.put_thread(intake.thread);
    } else if (txn.thread(intake.thread.no)->status != store::ThreadStatus::active) {
        return fail(ErrorKind::not_found, "thread_not_found", "the thread was deleted meanwhile");
    } else {
        state = queue_state(txn, intake.thread.no);
    }
    if (state.status == QueueStatus::interrupted) {
        return fail(
            ErrorKind::conflict,
            "run_interrupted",
            fmt::format("run {} waits for an answer; resume or cancel it", state.blocker->id)
        );
    }
    if (intake.run.queue_policy == store::QueuePolicy::steer) {
        if (auto allowed = check_steer(txn, intake.thread.no, state); !allowed) {
            return std::unexpected(allowed.error());
        }
    }
    if (intake.attachments.empty()) {
        return accept(txn, std::move(intake), bounds, state);
    }
    const store::ThreadRecord thread = intake.thread;
    const std::vector<std::string> attachments = std::move(intake.attachments);
    auto accepted = accept(txn, std::move(intake), bounds, state);
    if (accepted) {
        const Attachment::Use use{accepted->request.request_id, accepted->message_id};
        if (auto bound = bind_attachments(txn, thread, attachments, use); !bound) {
            return std::unexpected(bound.error());
        }
    }
    return accepted;
}

}  // namespace ars::runs
