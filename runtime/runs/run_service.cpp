#include "runtime/runs/run_service.hpp"

#include "runtime/runs/intake.hpp"
#include "runtime/runs/recovery.hpp"
#include "runtime/runs/request_queue.hpp"
#include "runtime/runs/resume.hpp"
#include "runtime/runs/run_view.hpp"

#include <fmt/format.h>

namespace ars::runs {

using base::ErrorKind;
using base::fail;

namespace {

using namespace std::chrono_literals;

constexpr auto kBootWait = 10s;  // probing the host and the first transaction, on a busy machine

std::unexpected<base::Error> run_missing(const std::string& id) {
    return fail(ErrorKind::not_found, "run_not_found", fmt::format("no run \"{}\"", id));
}

std::unexpected<base::Error> not_accepting() {
    return fail(
        ErrorKind::unavailable, "not_accepting", "the server is starting or stopping; try again"
    );
}

}  // namespace

RunService::RunService(RunParts parts)
    : parts_(std::move(parts)),
      supervisor_(parts_, tools_),
      child_runs_(parts_, supervisor_),
      requests_(
          parts_.store,
          parts_.executor,
          parts_.log,
          [this](store::RunRecord run) { supervisor_.launch(std::move(run)); }
      ),
      begun_(parts_.executor) {
    supervisor_.when_thread_is_free([this](store::ThreadNo thread) {
        return requests_.advance(thread);
    });
}

base::Task<bool> RunService::wait_until_accepting() {
    if (!accepting_ && !stopping_) {
        co_await begun_.wait(base::Deadline::after(kBootWait));
    }
    co_return accepting_;
}

base::Task<base::Result<void>> RunService::recover() {
    base::Result<std::vector<store::RunRecord>> open = co_await take_over_open_runs(parts_);
    if (!open) {
        co_return std::unexpected(open.error());
    }
    if (stopping_) {
        co_return base::Result<void>();  // stopped while it began: the next boot serves them
    }
    for (store::RunRecord& run : *open) {
        const bool taken_over = run.attempt > 1;
        supervisor_.launch(std::move(run), {}, taken_over);
    }
    accepting_ = true;
    requests_.open();
    begun_.notify_all();
    co_await requests_.advance_all();
    co_return base::Result<void>();
}

void RunService::refuse_more() {
    accepting_ = false;
    stopping_ = true;
    requests_.close();
    begun_.notify_all();
}

base::Task<void> RunService::drain(base::milliseconds grace) {
    refuse_more();
    co_await supervisor_.drain(grace);
}

base::Task<void> RunService::shutdown() {
    refuse_more();
    co_await supervisor_.shutdown();
}

base::Task<base::Result<Submitted>> RunService::submit(SubmitRun request) {
    const bool accepting = co_await wait_until_accepting();
    if (!accepting) {
        co_return not_accepting();
    }
    base::Result<Intake> intake = check_submission(parts_, request);
    if (!intake) {
        co_return std::unexpected(intake.error());
    }
    Slots::Place place = supervisor_.roots().try_take();
    const IntakeBounds bounds{
        .no_slot = !place,
        .starts = static_cast<bool>(place),
        .max_queued = parts_.settings.max_queued
    };
    std::function<base::Result<Submitted>(store::WriteTxn&)> change =
        [intake = std::move(*intake), bounds](store::WriteTxn& txn) mutable {
            return write_intake(txn, std::move(intake), bounds);
        };
    base::Result<Submitted> submitted = co_await parts_.store.write<Submitted>(std::move(change));
    if (!submitted || submitted->replayed) {
        co_return submitted;
    }
    if (submitted->request.status == store::RequestStatus::dispatched) {
        supervisor_.launch(submitted->run, std::move(place));
    } else if (submitted->request.status == store::RequestStatus::queued) {
        place = Slots::Place();
        const store::RequestNo no = submitted->request.no;
        requests_.notify(submitted->request.thread);
        // The thread may have become free between the end of its run and this message.
        co_await requests_.advance(
            submitted->request.thread, base::Deadline::after(kDispatchLimit)
        );
        parts_.store.read([&](const store::ReadTxn& txn) {
            submitted->request = txn.request(no).value();
            submitted->position = queue_position(txn, submitted->request);
            submitted->run = txn.run(submitted->request.run).value_or(store::RunRecord{});
        });
    }
    co_return submitted;
}

base::Task<base::Result<Submitted>> RunService::resume(ResumeRun request) {
    const bool accepting = co_await wait_until_accepting();
    if (!accepting) {
        co_return not_accepting();
    }
    base::Result<Resumption> resumption = check_resumption(std::move(request));
    if (!resumption) {
        co_return std::unexpected(resumption.error());
    }
    Slots::Place place = supervisor_.roots().try_take();
    resumption->no_slot = !place;
    std::function<base::Result<Submitted>(store::WriteTxn&)> change =
        [resumption = std::move(*resumption)](store::WriteTxn& txn) {
            return write_resumption(txn, resumption);
        };
    base::Result<Submitted> submitted = co_await parts_.store.write<Submitted>(std::move(change));
    if (submitted && !submitted->replayed && submitted->run.status == store::RunStatus::pending) {
        supervisor_.launch(submitted->run, std::move(place));
    }
    co_return submitted;
}

base::Task<base::Result<store::RunRecord>> RunService::cancel(
    const agents::User& user, std::string run_id
) {
    const auto run = find_run(user, run_id);
    if (!run) {
        co_return std::unexpected(run.error());
    }
    co_return co_await supervisor_.request_cancel(run->no);
}

base::Task<base::Result<store::ThreadRecord>> RunService::create_thread(NewThread request) {
    base::Result<store::ThreadRecord> thread = check_new_thread(parts_, request);
    if (!thread) {
        co_return std::unexpected(thread.error());
    }
    std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> change =
        [thread = std::move(*thread), project = request.project_id](store::WriteTxn& txn
        ) mutable -> base::Result<store::ThreadRecord> {
        if (!thread.id.empty()) {
            if (const auto known = txn.thread_by_id(thread.id)) {
                const bool same =
                    known->uid == thread.uid && !thread.request_id.empty() &&
                    known->request_id == thread.request_id &&
                    known->agent_slug == thread.agent_slug && known->title == thread.title &&
                    known->metadata == thread.metadata && project_of_thread(txn, *known) == project;
                if (same) {
                    return *known;
                }
                return fail(
                    ErrorKind::conflict, "thread_exists", "this thread id is taken; use another one"
                );
            }
        }
        if (txn.thread_by_request(thread.uid, thread.request_id)) {  // a fork's
            return fail(
                ErrorKind::conflict,
                "request_id_conflict",
                "this request_id was used for a different request; use a new one"
            );
        }
        txn.put_thread(thread);
        thread.root = thread.no;
        txn.put_thread(thread);
        put_project_of_thread(txn, thread.id, project);
        return thread;
    };
    co_return co_await parts_.store.write<store::ThreadRecord>(std::move(change));
}

base::Task<base::Result<Project>> RunService::create_project(Project wanted) {
    std::function<base::Result<Project>(store::WriteTxn&)> change =
        [wanted = std::move(wanted)](store::WriteTxn& txn) { return write_project(txn, wanted); };
    co_return co_await parts_.store.write<Project>(std::move(change));
}

base::Task<base::Result<store::ThreadRecord>> RunService::fork_thread(ForkThread request) {
    auto origin = find_thread(request.user, request.thread_id);
    if (!origin) {
        co_return std::unexpected(origin.error());
    }
    std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> change =
        [origin = std::move(*origin), request = std::move(request)](store::WriteTxn& txn) {
            return write_fork(txn, origin, request);
        };
    co_return co_await parts_.store.write<store::ThreadRecord>(std::move(change));
}

base::Task<base::Result<store::ThreadRecord>> RunService::change_thread(ChangeThread change) {
    const auto thread = find_thread(change.user, change.thread_id);
    if (!thread) {
        co_return std::unexpected(thread.error());
    }
    std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> write =
        [no = thread->no, change = std::move(change)](store::WriteTxn& txn) {
            return write_thread_change(txn, no, change);
        };
    co_return co_await parts_.store.write<store::ThreadRecord>(std::move(write));
}

base::Task<base::Result<store::ThreadRecord>> RunService::mark_viewed(
    const agents::User& user, std::string thread_id
) {
    const auto thread = find_thread(user, thread_id);
    if (!thread) {
        co_return std::unexpected(thread.error());
    }
    std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> write =
        [no = thread->no](store::WriteTxn& txn) { return write_thread_viewed(txn, no); };
    co_return co_await parts_.store.write<store::ThreadRecord>(std::move(write));
}

base::Task<base::Result<void>> RunService::set_user_variables(
    const agents::User& user, Variables variables
) {
    return write_user_variables(parts_.store, user.uid, std::move(variables));
}

base::Task<base::Result<void>> RunService::delete_thread(
    const agents::User& user, std::string thread_id
) {
    const auto thread = find_thread(user, thread_id);
    if (!thread) {
        co_return std::unexpected(thread.error());
    }
    if (thread->parent != 0) {
        co_return fail(
            ErrorKind::conflict,
            "thread_is_subagent",
            "this is a sub-agent's thread: it goes with the thread that it works for"
        );
    }
    const store::ThreadNo no = thread->no;
    std::function<base::Result<std::vector<store::RunNo>>(store::WriteTxn&)> change =
        [no](store::WriteTxn& txn) -> base::Result<std::vector<store::RunNo>> {
        store::ThreadRecord record = txn.thread(no).value();
        record.status = store::ThreadStatus::deleted;
        txn.put_thread(record);
        withdraw_all(txn, no);
        std::vector<store::RunNo> open = txn.open_runs();
        std::erase_if(open, [&](store::RunNo run) { return txn.run(run)->thread != no; });
        return open;
    };
    auto open = co_await parts_.store.write<std::vector<store::RunNo>>(std::move(change));
    if (!open) {
        co_return std::unexpected(open.error());
    }
    requests_.notify(no);
    for (const store::RunNo run : *open) {
        if (auto cancelled = co_await supervisor_.request_cancel(run); !cancelled) {
            co_return std::unexpected(cancelled.error());
        }
    }
    for (const std::string& policy : parts_.settings.policies) {
        sandbox::ScopeKey key{thread->uid, thread->id, policy};
        co_await parts_.sandbox.release(std::move(key));
    }
    co_return base::Result<void>();
}

base::Result<store::RunRecord> RunService::find_run(
    const agents::User& user, const std::string& run_id
) const {
    auto run = parts_.store.read([&](const store::ReadTxn& txn) { return txn.run_by_id(run_id); });
    if (!run || run->uid != user.uid) {
        return run_missing(run_id);
    }
    return std::move(*run);
}

base::Result<store::ThreadRecord> RunService::find_thread(
    const agents::User& user, const std::string& thread_id
) const {
    auto thread =
        parts_.store.read([&](const store::ReadTxn& txn) { return txn.thread_by_id(thread_id); });
    if (!thread || thread->uid != user.uid || thread->status == store::ThreadStatus::deleted) {
        return fail(
            ErrorKind::not_found, "thread_not_found", fmt::format("no thread \"{}\"", thread_id)
        );
    }
    return std::move(*thread);
}

base::Result<RunOutcome> RunService::outcome(const agents::User& user, const std::string& run_id)
    const {
    auto run = find_run(user, run_id);
    if (!run) {
        return std::unexpected(run.error());
    }
    RunOutcome outcome;
    outcome.run = std::move(*run);
    parts_.store.read([&](const store::ReadTxn& txn) {
        outcome.output = output_of(txn, outcome.run);
        outcome.children_usage = usage_of_children(txn, outcome.run);
        if (outcome.run.status == store::RunStatus::completed) {
            const auto message = txn.message(outcome.run.output_message);
            outcome.final_message_id = message ? message->id : std::string();
        }
    });
    return outcome;
}

base::Task<bool> RunService::wait_for_events(store::RunNo run, base::Deadline deadline) {
    co_return co_await supervisor_.wait_change(run, deadline);
}

base::Task<void> RunService::wait_for_rest(store::RunNo run, base::Deadline deadline) {
    co_await supervisor_.wait_rest(run, deadline);
}

RunManager::Counts RunService::counts() const {
    return Counts{
        supervisor_.roots().taken(),
        supervisor_.children().taken(),
        supervisor_.children().waiting(),
        parts_.store.read([](const store::ReadTxn& txn) { return txn.queued_requests(); }),
        parts_.sandbox.size(),
        parts_.sandbox.counters(),
    };
}

}  // namespace ars::runs
