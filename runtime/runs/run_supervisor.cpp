#include "runtime/runs/run_supervisor.hpp"

#include "base/clock.hpp"
#include "runtime/agents/agent_context.hpp"
#include "runtime/runs/attachment_service.hpp"
#include "runtime/runs/events.hpp"
#include "runtime/runs/lineage.hpp"
#include "runtime/runs/projects.hpp"
#include "runtime/runs/run_loop.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <cassert>

namespace ars::runs {

namespace {

constexpr std::string_view kCancelledCall = "Cancelled before it finished.";
constexpr std::string_view kFailedCall = "Not finished: the run ended first.";

}  // namespace

RunSupervisor::RunSupervisor(const RunParts& parts, const ToolSet& tools)
    : parts_(parts),
      tools_(tools),
      roots_(parts.executor, parts.settings.max_concurrent),
      children_(parts.executor, parts.settings.max_children),
      launched_(parts.executor),
      emptied_(parts.executor) {}

RunSupervisor::~RunSupervisor() { assert(live_.empty() && "shutdown() comes before destruction"); }

void RunSupervisor::launch(store::RunRecord record, Slots::Place place, bool taken_over) {
    const store::RunNo no = record.no;
    if (stopping_) {
        return;
    }
    const auto known = parts_.user_of(record.uid);
    agents::User user = known.value_or(agents::User{record.uid, agents::UserRole::user, {}});
    auto run = std::make_shared<LiveRun>(parts_.executor, std::move(record), std::move(user));
    run->has_user = known.has_value();
    run->slot = std::move(place);
    run->taken_over = taken_over;
    run->user_env = user_env_for(run->record);
    live_.emplace(no, run);
    launched_.notify_all();
    auto over = [this, run](std::exception_ptr error) {
        if (error) {
            parts_.log.error("run_boundary_threw", {{"run_id", run->record.id}});
        }
        run->slot = Slots::Place();
        live_.erase(run->record.no);
        run->changed.notify_all();
        emptied_.notify_all();
    };
    base::asio::co_spawn(
        parts_.executor, serve(run), base::asio::bind_cancellation_slot(run->cancel.slot(), over)
    );
}

// One execution tree has one: what a sub-agent's command leaves in a file must not be read by its
// parent's model either.
std::shared_ptr<const UserEnv> RunSupervisor::user_env_for(const store::RunRecord& run) const {
    if (const LiveRunPtr parent = find(run.parent)) {
        return parent->user_env;
    }
    return make_user_env(
        parts_.store.read([&](const store::ReadTxn& txn) { return user_variables(txn, run.uid); }),
        parts_.settings.secrets
    );
}

LiveRunPtr RunSupervisor::find(store::RunNo run) const {
    const auto it = live_.find(run);
    return it == live_.end() ? nullptr : it->second;
}

std::size_t RunSupervisor::live_children_of(store::RunNo run) const {
    const std::vector<store::RunRecord> parents =
        parts_.store.read([&](const store::ReadTxn& txn) { return lineage_of(txn, run); });
    std::size_t count = 0;
    for (const auto& [no, live] : live_) {
        const bool works = live->record.type == store::RunType::subagent &&
                           !store::is_terminal(live->record.status);
        count += works && std::ranges::find(parents, live->record.parent, &store::RunRecord::no) !=
                              parents.end()
                     ? 1U
                     : 0U;
    }
    return count;
}

base::Task<void> RunSupervisor::serve(LiveRunPtr run) {
    std::optional<RunEnd> end = co_await serve_until_end(run);
    co_await base::shield_from_cancellation();
    if (run->stop == StopReason::shutdown) {
        co_return;
    }
    if (end) {
        // Whatever an error quotes goes to the record, the events and the log from here.
        end->error_message = run->user_env->secrets.redact(std::move(end->error_message));
        co_await commit_end(run, *end);
    }
    run->slot = Slots::Place();
    run->changed.notify_all();
    parts_.log.info(
        "run_ended",
        {{"run_id", run->record.id},
         {"agent", run->record.agent_slug},
         {"status", store::to_string(run->record.status)},
         {"steps", run->record.steps},
         {"error", run->record.error_message}}
    );
    const bool ended = run->record.status != store::RunStatus::interrupted;
    if (ended && run->record.type != store::RunType::subagent &&
        !parts_.settings.children_outlive_root) {
        co_await close_children(run->record.no);
    }
    if (run->record.type != store::RunType::subagent && thread_is_free_) {
        co_await thread_is_free_(run->record.thread);
    }
}

// The run boundary: whatever a run does wrong ends that run and nothing else.
base::Task<std::optional<RunEnd>> RunSupervisor::serve_until_end(LiveRunPtr run) {
    std::string failure;
    try {
        const base::Result<void> admitted = co_await admit(run);
        if (!admitted) {
            co_return RunEnd{
                store::RunStatus::failed, admitted.error().code, admitted.error().message
            };
        }
        RunLoop loop(parts_, tools_, schemas_, run);
        co_return co_await loop.serve();
    } catch (const boost::system::system_error& error) {
        if (error.code() == base::asio::error::operation_aborted) {
            co_return RunEnd{store::RunStatus::cancelled, "cancelled", ""};
        }
        failure = error.what();
    } catch (const std::exception& error) {
        failure = error.what();
    }
    failure = run->user_env->secrets.redact(std::move(failure));
    parts_.log.error("run_threw", {{"run_id", run->record.id}, {"error", failure}});
    co_return RunEnd{store::RunStatus::failed, "unexpected_error", failure};
}

base::Task<base::Result<void>> RunSupervisor::admit(LiveRunPtr run) {
    if (!run->slot) {
        Slots& slots = run->record.type == store::RunType::subagent ? children_ : roots_;
        run->slot = co_await slots.take();
    }
    run->serving_since = std::chrono::steady_clock::now();
    const auto left = base::milliseconds(run->record.timeout_ms - run->record.served_ms);
    run->deadline = base::Deadline::after(std::max(left, base::milliseconds(0)));
    if (run->record.status == store::RunStatus::pending) {
        std::function<base::Result<store::RunRecord>(store::WriteTxn&)> change =
            [no = run->record.no](store::WriteTxn& txn) -> base::Result<store::RunRecord> {
            store::RunRecord record = txn.run(no).value();
            if (record.status != store::RunStatus::pending) {
                return base::fail(
                    base::ErrorKind::cancelled, "cancelled", "cancelled before it started"
                );
            }
            record.status = store::RunStatus::running;
            if (record.started_ms == 0) {
                record.started_ms = base::now_ms();
            }
            txn.put_run(record);
            return record;
        };
        base::Result<store::RunRecord> started = co_await commit<store::RunRecord>(
            parts_.store, run->deadline, run->process_ends, std::move(change)
        );
        if (!started) {
            co_return std::unexpected(started.error());
        }
        run->record = std::move(*started);
        run->changed.notify_all();
    }
    if (parts_.attachments != nullptr) {
        if (auto placed = co_await parts_.attachments->place(run->record.scope_id); !placed) {
            co_return std::unexpected(placed.error());
        }
    }
    co_return equip(*run);
}

// Everything the loop needs that is not in the record.
base::Result<void> RunSupervisor::equip(LiveRun& run) {
    const base::Result<ContextPtr> context = parts_.snapshots->parse(run.record.agent_config);
    if (!context) {
        return std::unexpected(context.error());
    }
    run.context = *context;
    if (!run.has_user) {
        agents::AgentContext poor = **context;
        agents::take_resources(poor);
        run.context = std::make_shared<const agents::AgentContext>(std::move(poor));
    } else if (run.record.type != store::RunType::subagent) {
        run.subagents = parts_.agents.allowed_subagents(*run.context, run.user);
    }
    auto workspace = parts_.open_workspace(run.record.uid);
    if (!workspace) {
        return std::unexpected(workspace.error());
    }
    store::ThreadRecord thread;
    bool in_project = false;
    parts_.store.read([&](const store::ReadTxn& txn) {
        thread = txn.thread(run.record.thread).value();
        in_project = !project_of_thread(txn, thread).empty();
        run.history = txn.messages(run.record.thread);
        run.attachments = prompt_attachments(txn, run.record);
        const auto checkpoint = txn.latest_checkpoint(run.record.thread);
        if (checkpoint && !checkpoint->state.empty()) {
            run.state = boost::json::parse(checkpoint->state).as_object();
        }
    });
    if (in_project) {
        if (auto there = (*workspace)->find_workdir(thread.workdir_path); !there) {
            return base::fail(
                there.error().kind,
                "workdir_missing",
                "the directory of the thread's project can't be used: " + there.error().message
            );
        }
    } else if (auto made = (*workspace)->make_workdir(thread.workdir_path); !made) {
        return made;
    }
    const sandbox::ScopeKey key{run.record.uid, run.record.scope_id, run.context->policy};
    const std::shared_ptr<fsmount::Workspace> shared = *workspace;
    auto spec = [this, shared, context = run.context] {
        return parts_.scope_spec(*shared, context->policy);
    };
    // What an agent's file or an admin set binds every user.
    auto variables =
        [context = run.context, env = run.user_env, &all = parts_.settings.environment] {
            std::map<std::string, std::string> out = context->env;
            out.insert(env->variables.begin(), env->variables.end());
            out.insert(all.begin(), all.end());
            return out;
        };
    run.environment = std::make_shared<tools::Environment>(
        shared,
        thread.workdir_path,
        parts_.sandbox,
        key,
        std::move(spec),
        parts_.offload,
        std::move(variables)
    );
    return {};
}

base::Task<void> RunSupervisor::commit_end(LiveRunPtr run, RunEnd end) {
    std::function<base::Result<store::RunRecord>(store::WriteTxn&)> change =
        [record = run->record,
         end](store::WriteTxn& txn) mutable -> base::Result<store::RunRecord> {
        write_end(
            txn, record, end, end.status == store::RunStatus::failed ? kFailedCall : kCancelledCall
        );
        return record;
    };
    base::Result<store::RunRecord> written = co_await commit<store::RunRecord>(
        parts_.store, base::Deadline::never(), run->process_ends, std::move(change)
    );
    if (!written) {
        parts_.log.error(
            "run_end_not_stored",
            {{"run_id", run->record.id},
             {"error", written.error().message},
             {"remedy", "free disk space and restart: the next boot takes the run over"}}
        );
        co_return;
    }
    run->record = std::move(*written);
    if (run->record.type == store::RunType::subagent) {
        const store::RunNo served = parts_.store.read([&](const store::ReadTxn& txn) {
            return latest_of_lineage(txn, txn.run(run->record.parent).value()).no;
        });
        if (const LiveRunPtr parent = find(served)) {
            parent->changed.notify_all();
        }
    }
}

base::Task<void> RunSupervisor::close_children(store::RunNo run) {
    std::vector<store::RunNo> children;
    parts_.store.read([&](const store::ReadTxn& txn) {
        for (const store::RunRecord& one : lineage_of(txn, run)) {
            const std::vector<store::RunNo> own = txn.children_of(one.no);
            children.insert(children.end(), own.begin(), own.end());
        }
    });
    for (const store::RunNo child : children) {
        const LiveRunPtr live = find(child);
        if (live && live->record.type == store::RunType::subagent &&
            !store::is_terminal(live->record.status)) {
            co_await request_cancel(child);
        }
    }
}

namespace {

struct CancelRequest {
    store::RunRecord asked;   // the run that was named, as it then stands
    store::RunRecord served;  // the one of its lineage that may be at work
};

// The newest run of a lineage does the work; those it resumed wait for nobody any more.
base::Result<CancelRequest> write_cancel(store::WriteTxn& txn, store::RunNo run) {
    std::vector<store::RunRecord> lineage = lineage_of(txn, run);
    store::RunRecord& newest = lineage.front();
    if (store::is_terminal(newest.status)) {
        return CancelRequest{txn.run(run).value(), newest};
    }
    const RunEnd end{store::RunStatus::cancelled, "cancelled", ""};
    if (newest.status == store::RunStatus::running) {
        newest.status = store::RunStatus::cancel_requested;
        txn.put_run(newest);
    } else if (newest.status != store::RunStatus::cancel_requested) {
        write_end(txn, newest, end, kCancelledCall);
    }
    for (std::size_t i = 1; i < lineage.size(); ++i) {
        write_end(txn, lineage[i], end);
    }
    return CancelRequest{txn.run(run).value(), newest};
}

}  // namespace

base::Task<base::Result<store::RunRecord>> RunSupervisor::request_cancel(store::RunNo run) {
    std::function<base::Result<CancelRequest>(store::WriteTxn&)> change =
        [run](store::WriteTxn& txn) { return write_cancel(txn, run); };
    base::Result<CancelRequest> written =
        co_await parts_.store.write<CancelRequest>(std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    const LiveRunPtr live = find(written->served.no);
    if (live && live->stop != StopReason::cancel) {
        live->record.status = written->served.status;
        if (live->stop == StopReason::none) {
            live->stop = StopReason::cancel;
        }
        live->cancel.emit(base::asio::cancellation_type::terminal);
        live->changed.notify_all();
    }
    co_await close_children(run);
    co_return std::move(written->asked);
}

base::Task<bool> RunSupervisor::wait_change(store::RunNo run, base::Deadline deadline) {
    const LiveRunPtr live = find(run);
    if (!live) {
        // Nothing of it changes before it is launched: just committed and about to be, or at rest.
        co_return co_await launched_.wait(deadline);
    }
    co_return co_await live->changed.wait(deadline);
}

base::Task<void> RunSupervisor::wait_rest(store::RunNo run, base::Deadline deadline) {
    const LiveRunPtr live = find(run);
    if (!live) {
        co_await launched_.wait(deadline);
        co_return;
    }
    // Looking into the store at each of its commits would cost more than the commit's own news.
    while (!store::is_terminal(live->record.status) &&
           live->record.status != store::RunStatus::interrupted && find(run) == live) {
        const bool woken = co_await live->changed.wait(deadline);
        if (!woken) {
            co_return;
        }
    }
}

base::Task<std::optional<store::RunRecord>> RunSupervisor::wait_end(
    store::RunNo run, base::Deadline deadline
) {
    for (;;) {
        std::optional<store::RunRecord> record =
            parts_.store.read([&](const store::ReadTxn& txn) { return txn.run(run); });
        const LiveRunPtr live = find(run);
        if (!record || store::is_terminal(record->status) || !live || deadline.passed()) {
            co_return record;
        }
        co_await live->changed.wait(deadline);
    }
}

base::Task<void> RunSupervisor::drain(base::milliseconds grace) {
    stop_runs(false);
    const auto deadline = base::Deadline::after(grace);
    while (!live_.empty() && !deadline.passed()) {
        co_await emptied_.wait(deadline);
    }
}

void RunSupervisor::stop_runs(bool cut) {
    stopping_ = true;
    std::vector<LiveRunPtr> all;
    for (const auto& [no, run] : live_) {
        all.push_back(run);
    }
    for (const LiveRunPtr& run : all) {
        run->process_ends = true;
        if (run->stop == StopReason::none) {
            run->stop = StopReason::shutdown;
        }
        if (run->stop == StopReason::shutdown && (cut || run->busy_calls == 0)) {
            run->cancel.emit(base::asio::cancellation_type::terminal);
        }
    }
}

base::Task<void> RunSupervisor::shutdown() {
    stop_runs(true);
    while (!live_.empty()) {
        co_await emptied_.wait(base::Deadline::never());  // the tools' kill limits bound it
    }
}

}  // namespace ars::runs
