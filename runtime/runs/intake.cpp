#include "runtime/runs/intake.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "fsmount/layout.hpp"
#include "runtime/runs/events.hpp"

#include <boost/json/serialize.hpp>
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
constexpr std::size_t kRequestIdBytes = 128;

base::Result<const agents::Agent*> chat_agent(
    const RunParts& parts, const agents::User& user, const std::string& slug
) {
    const agents::Agent* agent = parts.agents.find(slug, user);
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
    thread.workdir_path = "projects/" + base::random_uuid();
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
    if (request.request_id.size() > kRequestIdBytes) {
        return fail(ErrorKind::invalid, "bad_request_id", "request_id has at most 128 bytes");
    }
    const auto found = chat_agent(parts, request.user, request.agent_slug);
    if (!found) {
        return std::unexpected(found.error());
    }
    const agents::Agent& agent = **found;
    Intake intake;
    intake.query = request.query;
    if (request.thread_id.empty()) {
        intake.thread = fresh_thread(request.user, agent.slug);
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
    run.model_spec = !request.model_spec.empty()    ? std::string(base::trim(request.model_spec))
                     : !agent.context.model.empty() ? agent.context.model
                                                    : parts.settings.default_model;
    if (auto model = parts.models.resolve(run.model_spec); !model) {
        return std::unexpected(model.error());
    }
    const agents::ApprovalMode mode = request.approval_mode.value_or(
        agent.context.tool_approval_mode.value_or(parts.settings.approval_mode)
    );
    run.approval_mode = mode == agents::ApprovalMode::always_trust ? "always_trust" : "default";
    run.agent_config = boost::json::serialize(agents::context_to_json(agent.context));
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
    if (request.workdir_path) {
        if (auto sound = fsmount::check_workdir(*request.workdir_path); !sound) {
            return std::unexpected(sound.error());
        }
        thread.workdir_path = *request.workdir_path;
    }
    return thread;
}

base::Result<Submitted> write_intake(store::WriteTxn& txn, Intake intake) {
    store::RunRecord& run = intake.run;
    if (!run.request_id.empty()) {
        if (const auto known = txn.run_by_request(run.request_id)) {
            if (known->uid != run.uid || known->body_digest != run.body_digest) {
                return fail(
                    ErrorKind::conflict,
                    "request_id_conflict",
                    "this request_id was used for a different request; use a new one"
                );
            }
            const auto message = txn.message(known->input_message);
            return Submitted{*known, message ? message->id : std::string(), true};
        }
    }
    if (intake.thread.no == 0) {
        txn.put_thread(intake.thread);
        intake.thread.root = intake.thread.no;
        txn.put_thread(intake.thread);
    } else {
        if (const auto open = txn.open_run_of_thread(intake.thread.no)) {
            return fail(
                ErrorKind::conflict,
                "run_busy",
                fmt::format(
                    "run {} of this thread has not ended; await or cancel it", txn.run(*open)->id
                )
            );
        }
        const auto latest = txn.latest_run_of_thread(intake.thread.no);
        if (latest && txn.run(*latest)->status == store::RunStatus::interrupted) {
            return fail(
                ErrorKind::conflict,
                "run_interrupted",
                fmt::format("run {} waits for an answer; resume or cancel it", txn.run(*latest)->id)
            );
        }
    }
    run.thread = intake.thread.no;
    run.thread_id = intake.thread.id;
    run.scope_id = intake.thread.id;
    txn.put_run(run);
    run.root = run.no;
    store::MessageRecord message;
    message.thread = run.thread;
    message.run = run.no;
    message.role = store::Role::user;
    message.content = intake.query;
    txn.add_message(message);
    run.input_message = message.seq;
    txn.put_run(run);
    store::EventRecord metadata = events::metadata(run);
    txn.add_event(metadata);
    return Submitted{run, message.id, false};
}

}  // namespace ars::runs
