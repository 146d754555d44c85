// The front door of runs: submit, look at, follow, cancel. It owns every live run and is their only
// writer; everything it answers is already committed.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/offload.hpp"
#include "base/result.hpp"
#include "base/task_group.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/models/model_registry.hpp"
#include "runtime/runs/projects.hpp"
#include "runtime/runs/request_service.hpp"
#include "runtime/runs/thread_changes.hpp"
#include "runtime/runs/thread_fork.hpp"
#include "runtime/runs/user_env.hpp"
#include "runtime/store/store.hpp"
#include "runtime/tools/child_runs.hpp"
#include "sandbox/scope.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ars::runs {

struct SubmitRun {
    agents::User user;
    std::string agent_slug;
    std::string query;
    std::string thread_id;      // empty = a new thread
    bool makes_thread = false;  // the thread of this id is made in the same commit, if it is new;
                                // it is in no list
    std::string request_id;     // empty = one is made
    std::string body_digest;    // sha256 of the canonical request
    std::string model_spec;     // empty = agent's, else the appliance's default
    std::optional<agents::ApprovalMode> approval_mode;
    std::optional<base::milliseconds> timeout;
    std::optional<std::uint32_t> max_steps;
    store::QueuePolicy queue_policy = store::QueuePolicy::enqueue;
    std::string source = "chat";           // a steer is for "chat" and "channel" only
    std::vector<std::string> attachments;  // ids of those that the message is to show
};

// The answers to what an interrupted run waits for (contract: resume).
struct ResumeRun {
    agents::User user;
    std::string run_id;  // the interrupted one
    std::string agent_slug;
    std::string thread_id;      // empty = whichever the run has
    std::string request_id;     // empty = derived from the answers
    boost::json::value resume;  // runs/resume.hpp has its shape
};

// What became of a message. Its request says it: dispatched (`run` is its run), queued, rejected
// (`run` is the one in its way), or cancelled meanwhile.
struct Submitted {
    store::RunRecord run;  // no == 0: there is none
    std::string message_id;
    bool replayed = false;  // the request id was already known: same request, same run
    store::RequestRecord request;
    std::size_t position = 0;  // in the queue of its thread; 1 = next
};

struct NewThread {
    agents::User user;
    std::string agent_slug;
    std::string thread_id;  // empty = one is made
    std::string title;
    std::string request_id;                   // idempotency per user; empty = none
    std::string metadata;                     // JSON object text
    std::string project_id;                   // whose directory it works in; empty = none
    std::optional<std::string> workdir_path;  // absent = the project's, else projects/<uuid>
};

// What outsiders may read of a run's end (contract 1.4 /result).
struct RunOutcome {
    store::RunRecord run;
    std::string output;                               // text of the bound assistant message
    std::string final_message_id;                     // empty unless completed
    std::optional<store::TokenUsage> children_usage;  // absent without sub-agents
};

class RunManager {
  public:
    virtual ~RunManager() = default;

    // Refused by its own policy `reject` is no error: the request is stored, and says so. Errors:
    // not_found (agent, thread), conflict "run_interrupted" / "request_id_conflict" /
    // "run_not_steerable" / "steer_already_pending", exhausted "runs_full" / "queue_full", invalid
    // "unknown_model" / "unknown_attachment"...
    virtual base::Task<base::Result<Submitted>> submit(SubmitRun request) = 0;
    // The run that goes on from an interrupted one, with the same model, tools and approval mode.
    // It is interrupted itself while other answers are missing. Errors: as runs/resume.hpp lists.
    virtual base::Task<base::Result<Submitted>> resume(ResumeRun request) = 0;
    // Covers the whole lineage. Makes the request durable and wakes the run; the answer may still
    // say cancel_requested. No-op on a terminal run.
    virtual base::Task<base::Result<store::RunRecord>> cancel(
        const agents::User& user, std::string run_id
    ) = 0;
    virtual base::Task<base::Result<store::ThreadRecord>> create_thread(NewThread request) = 0;
    virtual base::Task<base::Result<store::ThreadRecord>> fork_thread(ForkThread request) = 0;
    virtual base::Task<base::Result<store::ThreadRecord>> change_thread(ChangeThread change) = 0;
    virtual base::Task<base::Result<store::ThreadRecord>> mark_viewed(
        const agents::User& user, std::string thread_id
    ) = 0;
    // Hides it for good: takes back what is queued, cancels its runs and releases its scopes. Its
    // records and files stay. Error conflict "thread_is_subagent" for a sub-agent's.
    virtual base::Task<base::Result<void>> delete_thread(
        const agents::User& user, std::string thread_id
    ) = 0;

    // write_project() of projects.hpp. Whether its directory is there was looked at before.
    virtual base::Task<base::Result<Project>> create_project(Project wanted) = 0;

    // Those of user_env.hpp, all of them; what runs already keeps what it began with.
    virtual base::Task<base::Result<void>> set_user_variables(
        const agents::User& user, Variables variables
    ) = 0;

    // Another user's run or thread looks missing.
    [[nodiscard]] virtual base::Result<store::RunRecord> find_run(
        const agents::User& user, const std::string& run_id
    ) const = 0;
    [[nodiscard]] virtual base::Result<store::ThreadRecord> find_thread(
        const agents::User& user, const std::string& thread_id
    ) const = 0;
    [[nodiscard]] virtual base::Result<RunOutcome> outcome(
        const agents::User& user, const std::string& run_id
    ) const = 0;

    // The queues of threads.
    [[nodiscard]] virtual RequestService& requests() = 0;

    // Following a run: read events after a cursor (store().read), then wait for more. True when
    // something new may be there, false when the deadline passed.
    virtual base::Task<bool> wait_for_events(store::RunNo run, base::Deadline deadline) = 0;
    // Until the run is over or waits for a person, or the deadline passed. It may return early:
    // the record says how the run stands.
    virtual base::Task<void> wait_for_rest(store::RunNo run, base::Deadline deadline) = 0;
    [[nodiscard]] virtual const store::Store& store() const = 0;

    struct Counts {
        std::size_t running_roots = 0;
        std::size_t running_children = 0;
        std::size_t waiting_children = 0;
        std::size_t queued_requests = 0;
        std::size_t scopes = 0;
        sandbox::SandboxCounters sandbox;
    };
    [[nodiscard]] virtual Counts counts() const = 0;
    [[nodiscard]] virtual bool accepting(
    ) const = 0;  // false before recovery ended and during shutdown
};

}  // namespace ars::runs
