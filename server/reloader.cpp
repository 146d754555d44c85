#include "server/reloader.hpp"

#include "base/clock.hpp"
#include "runtime/people/audit.hpp"
#include "server/config_fields.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <utility>

namespace ars::server {

namespace {

namespace json = boost::json;

// One reload reads some hundred small files and makes one commit.
constexpr auto kReloadWait = std::chrono::seconds(30);

// What a reload takes over; all other sections are the running server's until it restarts.
bool takes_effect(std::string_view section) {
    return section == "agents" || section == "users" || section == "api_keys";
}

json::array to_json(const std::vector<std::string>& list) {
    return json::array(list.begin(), list.end());
}

// One entry that names what changed, in the commit of the change.
agents::AccompanySync audit_of(people::Caller caller) {
    people::AuditEntry entry{std::move(caller), "config.reload", {}, {}};
    return [entry = std::move(entry)](store::WriteTxn& txn, const agents::FileSync& sync) mutable {
        entry.detail = {
            {"by", entry.caller.user.uid.empty() ? "signal" : "request"},
            {"added", to_json(sync.added)},
            {"changed", to_json(sync.changed)},
            {"removed", to_json(sync.removed)}
        };
        people::put_audit(txn, entry);
    };
}

}  // namespace

Reloader::Reloader(
    base::asio::any_io_executor executor,
    const LoadedConfig& running,
    agents::AgentCatalog& catalog,
    base::Offload& offload,
    const base::Log& log,
    std::function<base::Result<void>(people::Declaration)> take_people
)
    : running_(running),
      catalog_(catalog),
      offload_(offload),
      log_(log),
      take_people_(std::move(take_people)),
      idle_(std::move(executor)),
      people_(running.declared_people()) {}

base::Task<base::Result<ReloadReport>> Reloader::reload(people::Caller caller) {
    const auto deadline = base::Deadline::after(kReloadWait);
    while (busy_) {
        if (deadline.passed()) {
            co_return base::fail(
                base::ErrorKind::unavailable,
                "reload_busy",
                "another reload has been under way for 30 seconds: try again, and look at the "
                "server's log"
            );
        }
        co_await idle_.wait(deadline);
    }
    // Half a reload is none: it goes on when who asked is gone.
    co_await base::shield_from_cancellation();
    busy_ = true;
    base::Result<ReloadReport> report =
        base::fail(base::ErrorKind::internal, "reload_failed", "the reload ended early");
    try {
        report = co_await read_and_apply(std::move(caller));
    } catch (...) {
        busy_ = false;
        idle_.notify_all();
        throw;
    }
    busy_ = false;
    idle_.notify_all();
    if (!report) {
        log_.error("reload_failed", {{"error", report.error().message}});
        co_return report;
    }
    last_ = *report;
    if (!report->faults.empty()) {
        log_.error(
            "reload_refused",
            {{"faults", to_json(report->faults)},
             {"remedy", "mend them and reload again; what was there before goes on"}}
        );
    } else {
        log_.info(
            "reloaded",
            {{"added", to_json(report->agents.added)},
             {"changed", to_json(report->agents.changed)},
             {"removed", to_json(report->agents.removed)},
             {"needs_restart", to_json(report->needs_restart)}}
        );
    }
    co_return report;
}

base::Task<base::Result<ReloadReport>> Reloader::read_and_apply(people::Caller caller) {
    ReloadReport report;
    report.at_ms = base::now_ms();
    auto read = [file = running_.file] { return load_config(file); };
    auto loaded = co_await offload_.run(std::move(read));
    if (!loaded) {
        report.faults = std::move(loaded.error());
        co_return report;
    }
    check_names(*loaded, report.faults);
    if (!report.faults.empty()) {
        co_return report;
    }
    if (auto taken = take_people_(loaded->declared_people()); !taken) {
        report.faults.push_back(loaded->file + ": users: " + taken.error().message);
        co_return report;
    }
    auto synced = co_await catalog_.reload(loaded->agents, audit_of(std::move(caller)));
    if (!synced) {
        // What was in force a moment ago is not refused now.
        (void)take_people_(people_);
        co_return std::unexpected(synced.error());
    }
    people_ = loaded->declared_people();
    report.agents = std::move(*synced);
    report.needs_restart = changed_sections(*loaded);
    for (const std::string& note : loaded->notes) {
        log_.warning("reload_note", {{"note", note}});
    }
    co_return report;
}

// An agent may name what the new appliance.yaml has and the running server has not.
void Reloader::check_names(const LoadedConfig& loaded, std::vector<std::string>& faults) const {
    const auto policies = running_.policies.names();
    const auto refuse = [&faults](const agents::Agent& agent, const std::string& what) {
        faults.push_back(
            agent.source + ": " + what +
            " is new in appliance.yaml; restart the server, which can't take it over by a reload"
        );
    };
    for (const agents::Agent& agent : loaded.agents) {
        const std::string& model = agent.context.model;
        const std::string provider = model.substr(0, model.find(':'));
        if (!model.empty() && !running_.config.models.providers.contains(provider)) {
            refuse(agent, "the provider \"" + provider + "\"");
        }
        if (std::ranges::find(policies, agent.context.policy) == policies.end()) {
            refuse(agent, "the policy \"" + agent.context.policy + "\"");
        }
    }
}

std::vector<std::string> Reloader::changed_sections(const LoadedConfig& loaded) const {
    const json::object before = config_fields().encode(running_.config);
    std::vector<std::string> out;
    for (const auto& [name, section] : config_fields().encode(loaded.config)) {
        if (!takes_effect(name) && before.at(name) != section) {
            out.emplace_back(name);
        }
    }
    return out;
}

}  // namespace ars::server
