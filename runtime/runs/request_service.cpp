#include "runtime/runs/request_service.hpp"

#include "base/limits.hpp"
#include "base/task_group.hpp"
#include "base/text.hpp"
#include "runtime/runs/run_records.hpp"

#include <fmt/format.h>

namespace ars::runs {

using base::ErrorKind;
using base::fail;

namespace {

using namespace std::chrono_literals;

// Of each message in a listed queue: a full queue of full messages would be a GiB.
constexpr std::size_t kShownBytes = 4 * base::limits::kKiB;

std::unexpected<base::Error> request_missing(const std::string& id) {
    return fail(ErrorKind::not_found, "request_not_found", fmt::format("no request \"{}\"", id));
}

std::unexpected<base::Error> not_accepting() {
    return fail(
        ErrorKind::unavailable, "not_accepting", "the server is starting or stopping; try again"
    );
}

}  // namespace

base::Result<store::RequestRecord> RequestService::find(
    const agents::User& user, const std::string& request_id
) const {
    std::optional<store::RequestRecord> found = store_.read([&](const store::ReadTxn& txn) {
        std::optional<store::RequestRecord> request = txn.request_by_id(request_id);
        if (!request) {
            const auto run = txn.run_by_request(request_id);
            if (run && run->type != store::RunType::subagent) {
                request = request_of(txn, *run);
            }
        }
        return request;
    });
    if (!found || found->uid != user.uid) {
        return request_missing(request_id);
    }
    return *std::move(found);
}

base::Result<store::ThreadRecord> RequestService::thread_of(
    const agents::User& user, const std::string& thread_id, const std::string& agent_slug
) const {
    auto thread =
        store_.read([&](const store::ReadTxn& txn) { return txn.thread_by_id(thread_id); });
    if (!thread || thread->uid != user.uid || thread->status == store::ThreadStatus::deleted ||
        thread->status == store::ThreadStatus::subagent ||
        (!agent_slug.empty() && thread->agent_slug != agent_slug)) {
        return fail(
            ErrorKind::not_found, "thread_not_found", fmt::format("no thread \"{}\"", thread_id)
        );
    }
    return *std::move(thread);
}

base::Result<ThreadQueue> RequestService::queue(
    const agents::User& user, const std::string& thread_id, const std::string& agent_slug
) const {
    const auto thread = thread_of(user, thread_id, agent_slug);
    if (!thread) {
        return std::unexpected(thread.error());
    }
    return store_.read([&](const store::ReadTxn& txn) {
        ThreadQueue out;
        out.state = queue_state(txn, thread->no);
        for (const store::RequestNo no : txn.queue_of(thread->no)) {
            store::RequestRecord request = txn.request(no).value();
            request.content.resize(base::utf8_head(request.content, kShownBytes).size());
            request.agent_config.clear();
            out.requests.push_back(std::move(request));
        }
        return out;
    });
}

base::Result<std::optional<store::RunRecord>> RequestService::active_run(
    const agents::User& user, const std::string& thread_id
) const {
    const auto thread = thread_of(user, thread_id, "");
    if (!thread) {
        return std::unexpected(thread.error());
    }
    return store_.read([&](const store::ReadTxn& txn) {
        const auto latest = txn.latest_run_of_thread(thread->no);
        std::optional<store::RunRecord> run = latest ? txn.run(*latest) : std::nullopt;
        if (run && store::is_terminal(run->status)) {
            run.reset();
        }
        return run;
    });
}

base::Task<base::Result<store::RunRecord>> RequestService::go_on(
    const agents::User& user, std::string thread_id, std::string agent_slug
) {
    const auto thread = thread_of(user, thread_id, agent_slug);
    if (!thread) {
        co_return std::unexpected(thread.error());
    }
    if (closed_) {
        co_return not_accepting();
    }
    const store::ThreadNo no = thread->no;
    std::function<base::Result<store::RunRecord>(store::WriteTxn&)> change =
        [no](store::WriteTxn& txn) { return dispatch_paused(txn, no); };
    base::Result<store::RunRecord> run = co_await store_.write<store::RunRecord>(std::move(change));
    if (run) {
        launch_(*run);
        notify(no);
    }
    co_return run;
}

base::Task<base::Result<store::RequestRecord>> RequestService::cancel(
    const agents::User& user, std::string request_id
) {
    const auto found = find(user, request_id);
    if (!found) {
        co_return std::unexpected(found.error());
    }
    if (found->no == 0) {
        co_return fail(
            ErrorKind::conflict,
            "request_already_dispatched",
            "this request is a run already; cancel the run"
        );
    }
    std::function<base::Result<store::RequestRecord>(store::WriteTxn&)> change =
        [no = found->no](store::WriteTxn& txn) { return withdraw(txn, no); };
    base::Result<store::RequestRecord> request =
        co_await store_.write<store::RequestRecord>(std::move(change));
    if (request) {
        notify(request->thread);
        // The one behind it may be newer than the failure that paused the queue.
        co_await advance(request->thread, base::Deadline::after(kDispatchLimit));
    }
    co_return request;
}

base::Task<base::Result<store::RequestRecord>> RequestService::steer(
    const agents::User& user, std::string request_id
) {
    const auto found = find(user, request_id);
    if (!found) {
        co_return std::unexpected(found.error());
    }
    if (found->no == 0) {
        co_return fail(ErrorKind::conflict, "request_not_queued", "this request is a run already");
    }
    std::function<base::Result<store::RequestRecord>(store::WriteTxn&)> change =
        [no = found->no](store::WriteTxn& txn) { return promote(txn, no); };
    base::Result<store::RequestRecord> request =
        co_await store_.write<store::RequestRecord>(std::move(change));
    if (request) {
        notify(request->thread);
    }
    co_return request;
}

// Most threads have no queue: they cost a look, not a commit.
bool RequestService::is_ready(store::ThreadNo thread) const {
    try {
        return store_.read([thread](const store::ReadTxn& txn) {
            return !txn.queue_of(thread).empty() &&
                   queue_state(txn, thread).status == QueueStatus::ready;
        });
    } catch (const std::exception& error) {
        log_.error("queue_unreadable", {{"thread", thread}, {"error", error.what()}});
        return false;
    }
}

base::Task<void> RequestService::advance(store::ThreadNo thread, base::Deadline until) {
    if (closed_ || !is_ready(thread)) {
        co_return;
    }
    using Started = std::optional<store::RunRecord>;
    std::function<base::Result<Started>(store::WriteTxn&)> change = [thread](store::WriteTxn& txn
                                                                    ) -> base::Result<Started> {
        return dispatch_ready(txn, thread);
    };
    base::Result<Started> started =
        co_await commit<Started>(store_, until, closed_, std::move(change));
    if (!started) {
        log_.error(
            "queue_stands",
            {{"thread", thread},
             {"error", started.error().message},
             {"remedy", "free disk space; the next message of the thread moves it on"}}
        );
        co_return;
    }
    if (*started) {
        launch_(**started);
        notify(thread);
    }
}

base::Task<void> RequestService::advance_all() {
    const std::vector<store::ThreadNo> threads =
        store_.read([](const store::ReadTxn& txn) { return txn.queued_threads(); });
    // At once, so that they share commits, and each in a transaction of its own, so that a thread
    // that can't go on keeps no other from it.
    base::TaskGroup group(executor_);
    for (const store::ThreadNo thread : threads) {
        group.spawn(advance(thread, base::Deadline::after(kDispatchLimit)));
    }
    co_await group.join();
}

base::Task<bool> RequestService::wait(store::ThreadNo thread, base::Deadline deadline) {
    std::shared_ptr<base::Notifier>& place = watched_[thread];
    if (!place) {
        place = std::make_shared<base::Notifier>(executor_);
    }
    struct Leave {
        RequestService& service;
        store::ThreadNo thread;
        std::shared_ptr<base::Notifier> notifier;
        ~Leave() {
            if (notifier.use_count() == 2) {  // the last one who waits
                service.watched_.erase(thread);
            }
        }
    } leave{*this, thread, place};
    co_return co_await leave.notifier->wait(deadline);
}

void RequestService::notify(store::ThreadNo thread) {
    if (const auto found = watched_.find(thread); found != watched_.end()) {
        found->second->notify_all();
    }
}

}  // namespace ars::runs
