#include "server/run_follower.hpp"

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "runtime/runs/events.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace ars::server {

namespace json = boost::json;

std::string event_line(const store::EventRecord& event, const store::RunRecord& run) {
    json::object line{
        {"id", store::to_string(event.id)},
        {"schema_version", 1},
        {"run_id", run.id},
        {"thread_id", run.thread_id},
        {"event", event.type},
        {"payload", json::parse(event.payload)},
        {"created_at", base::iso8601(event.created_ms)},
    };
    return json::serialize(line) + "\n";
}

RunFollower::RunFollower(
    runs::RunManager& runs,
    base::asio::any_io_executor executor,
    RunPrinter* printer,
    std::FILE* json_lines,
    const base::Fd* log_file
)
    : runs_(runs),
      group_(std::move(executor)),
      printer_(printer),
      json_lines_(json_lines),
      log_file_(log_file) {}

base::Task<void> RunFollower::follow(store::RunRecord root) {
    seen_runs_.insert(root.id);
    group_.spawn(follow_one(std::move(root), 0));
    co_await group_.join();
}

void RunFollower::begin(const store::RunRecord& run, int depth) {
    if (printer_ == nullptr) {
        return;
    }
    const int nth = ++seen_slugs_[run.agent_slug];
    const std::string label =
        depth == 0 ? run.agent_slug : fmt::format("{}-{}", run.agent_slug, nth);
    printer_->begin(
        run.no, depth, label, fmt::format("run {}, model {}", run.id.substr(0, 8), run.model_spec)
    );
}

base::Task<void> RunFollower::follow_one(store::RunRecord run, int depth) {
    begin(run, depth);
    store::EventId cursor;
    for (;;) {
        const std::vector<store::EventRecord> events =
            runs_.store().read([&](const store::ReadTxn& txn) {
                return runs::events::read(txn, run, cursor, base::limits::kSseBatch);
            });
        for (const store::EventRecord& event : events) {
            cursor = event.id;
            hand_on(event, run, depth);
            if (event.type == "end") {
                co_return;
            }
        }
        if (events.empty()) {
            // The run's own time limit bounds this loop; a second is the pulse of runs that are not
            // served.
            co_await runs_.wait_for_events(run.no, base::Deadline::after(std::chrono::seconds(1)));
        }
    }
}

void RunFollower::hand_on(const store::EventRecord& event, const store::RunRecord& run, int depth) {
    if (json_lines_ != nullptr || log_file_ != nullptr) {
        const std::string line = event_line(event, run);
        if (json_lines_ != nullptr) {
            std::fwrite(line.data(), 1, line.size(), json_lines_);
            std::fflush(json_lines_);
        }
        if (log_file_ != nullptr) {
            // The store holds the same events; a full disk must not end the run's display.
            (void)base::write_all(log_file_->get(), line);
        }
    }
    if (printer_ != nullptr) {
        printer_->event(event);
    }
    if (event.type != "custom") {
        return;
    }
    const json::value payload = json::parse(event.payload);
    const json::value* name = payload.as_object().if_contains("name");
    if (name == nullptr || *name != "ars.subagent_run_update") {
        return;
    }
    const std::string child_id(payload.as_object().at("run_id").as_string());
    if (seen_runs_.insert(child_id).second) {
        const auto child =
            runs_.store().read([&](const store::ReadTxn& txn) { return txn.run_by_id(child_id); });
        if (child) {
            group_.spawn(follow_one(*child, depth + 1));
        }
    }
}

}  // namespace ars::server
