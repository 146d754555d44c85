#include "server/webhooks.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "server/dto_runs.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace ars::server {

namespace {

constexpr std::size_t kShareOut = 256;  // entries of one look
constexpr std::uint64_t kUnshared = 0;  // the queue of ends that nobody has looked at

bool wants(const Webhook& hook, const store::RunRecord& run) {
    return (hook.uid.empty() || hook.uid == run.uid) &&
           (hook.statuses.empty() ||
            std::ranges::find(hook.statuses, run.status) != hook.statuses.end());
}

std::string body_of(const std::string& id, const runs::RunOutcome& outcome) {
    const store::RunRecord& run = outcome.run;
    return boost::json::serialize(boost::json::object{
        {"delivery_id", id},
        {"event", std::string("run.") + store::to_string(run.status)},
        {"created_at", time_to_json(run.finished_ms)},
        {"run", outcome_to_json(outcome)}
    });
}

}  // namespace

std::string delivery_id(const std::string& webhook, const std::string& run_id) {
    return base::sha256_hex(webhook + '\0' + run_id).substr(0, 32);
}

std::string signature_of(const std::string& secret, std::string_view body) {
    return "sha256=" + base::hmac_sha256_hex(secret, body);
}

Webhooks::Webhooks(
    base::asio::any_io_executor executor,
    std::vector<Webhook> hooks,
    store::Store& store,
    const runs::RunManager& runs,
    const base::Log& log,
    WebhookLimits limits
)
    : store_(store),
      runs_(runs),
      log_(log),
      limits_(limits),
      shared_out_(executor),
      tasks_(executor) {
    for (Webhook& hook : hooks) {
        hooks_.emplace_back(std::move(hook), executor);
    }
}

void Webhooks::start() {
    tasks_.spawn(share_out());
    for (Hook& hook : hooks_) {
        tasks_.spawn(serve(hook));
    }
}

base::Task<void> Webhooks::stop() {
    co_await base::shield_from_cancellation();
    tasks_.cancel_all();
    try {
        co_await tasks_.join();
    } catch (const boost::system::system_error&) {
        // They were told to stop.
    }
}

// Moves what is over from `done` to `next`, in one commit. What can't be stored now is tried again
// with the next look: the old entry is still there.
base::Task<void> Webhooks::settle(store::OutboxRecord done, std::vector<store::OutboxRecord> next) {
    std::function<base::Result<bool>(store::WriteTxn&)> change = [done, next](store::WriteTxn& txn
                                                                 ) -> base::Result<bool> {
        txn.erase_outbox(done);
        for (const store::OutboxRecord& record : next) {
            txn.put_outbox(record);
        }
        return true;
    };
    const auto written = co_await store_.write<bool>(std::move(change));
    if (!written) {
        log_.warning("webhook_outbox", {{"reason", written.error().message}});
        co_await base::sleep_until(base::Deadline::after(limits_.look));
    }
}

// The end of a run becomes an entry in the queue of each webhook that wants it.
base::Task<void> Webhooks::share_out() {
    for (;;) {
        const auto ends = store_.read([](const store::ReadTxn& txn) {
            return txn.outbox(kUnshared, base::now_ms(), kShareOut);
        });
        for (const store::OutboxRecord& end : ends) {
            const auto run =
                store_.read([&end](const store::ReadTxn& txn) { return txn.run(end.run); });
            std::vector<store::OutboxRecord> next;
            for (const Hook& hook : hooks_) {
                if (run && wants(hook.settings, *run)) {
                    next.push_back({hook.queue, run->finished_ms, end.run, 0});
                }
            }
            co_await settle(end, std::move(next));
        }
        if (ends.empty()) {
            co_await base::sleep_until(base::Deadline::after(limits_.look));
        } else {
            shared_out_.notify_all();
        }
    }
}

base::Task<void> Webhooks::serve(Hook& hook) {
    base::TaskGroup deliveries(shared_out_.executor());
    for (;;) {
        const std::int64_t now = base::now_ms();
        const auto due = store_.read([&](const store::ReadTxn& txn) {
            return txn.outbox(hook.queue, now, limits_.parallel);
        });
        for (const store::OutboxRecord& entry : due) {
            deliveries.spawn(deliver(hook, entry));
        }
        if (!due.empty()) {
            co_await deliveries.join();
            continue;
        }
        const auto next = store_.read([&](const store::ReadTxn& txn) {
            return txn.outbox(hook.queue, INT64_MAX, 1);
        });
        const auto pause =
            next.empty() ? limits_.last_pause : base::milliseconds(next.front().due_ms - now);
        co_await shared_out_.wait(
            base::Deadline::after(std::clamp(pause, base::milliseconds(1), limits_.last_pause))
        );
    }
}

base::Task<void> Webhooks::deliver(Hook& hook, store::OutboxRecord entry) {
    const auto run =
        store_.read([&entry](const store::ReadTxn& txn) { return txn.run(entry.run); });
    std::string reason;
    const Answer answer = run ? co_await send(hook, *run, reason) : Answer::gone;
    // What was answered is stored, also while the server stops: it need not come again.
    co_await base::shield_from_cancellation();
    std::vector<store::OutboxRecord> next;
    if (answer == Answer::failed) {
        store::OutboxRecord again = entry;
        ++again.attempts;
        const bool over = again.attempts >= limits_.attempts;
        log_.warning(
            over ? "webhook_given_up" : "webhook_failed",
            {{"webhook", hook.settings.name},
             {"run", run->id},
             {"attempts", again.attempts},
             {"reason", reason}}
        );
        if (!over) {
            const auto doubled =
                limits_.first_pause * (std::int64_t{1} << std::min(entry.attempts, 30U));
            again.due_ms = base::now_ms() + std::min(doubled, limits_.last_pause).count();
            next.push_back(again);
        }
    } else if (answer == Answer::gone && run) {
        log_.warning(
            "webhook_gone", {{"webhook", hook.settings.name}, {"run", run->id}, {"reason", reason}}
        );
    }
    co_await settle(entry, std::move(next));
}

base::Task<Webhooks::Answer> Webhooks::send(
    Hook& hook, const store::RunRecord& run, std::string& reason
) {
    agents::User owner;
    owner.uid = run.uid;
    const auto outcome = runs_.outcome(owner, run.id);
    if (!outcome) {
        reason = outcome.error().message;
        co_return Answer::gone;
    }
    const std::string id = delivery_id(hook.settings.name, run.id);
    const std::string body = body_of(id, *outcome);
    models::HttpRequest request;
    request.path = hook.settings.endpoint.path.empty() ? "/" : "";
    request.headers = {
        {"Content-Type", "application/json"},
        {"User-Agent", "ars-webhook"},
        {"X-ARS-Delivery", id},
        {"X-ARS-Event", std::string("run.") + store::to_string(run.status)},
        {"X-ARS-Signature-256", signature_of(hook.settings.secret, body)}
    };
    request.body = [&body] { return body; };
    const auto response =
        co_await hook.client.post(std::move(request), base::Deadline::after(hook.settings.timeout));
    if (!response) {
        reason = response.error().message;
        co_return Answer::failed;
    }
    const int status = (*response)->status();
    co_await (*response)->finish();
    reason = "the receiver answered " + std::to_string(status);
    constexpr int kGone = 410;
    co_return status >= 200 && status < 300 ? Answer::delivered
    : status == kGone                       ? Answer::gone
                                            : Answer::failed;
}

}  // namespace ars::server
