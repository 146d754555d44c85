#include "server/metrics.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace ars::server {

namespace {

// Resident pages are the second number of statm.
std::uint64_t resident_bytes() {
    const auto text = base::read_file("/proc/self/statm", base::limits::kKiB);
    unsigned long long total = 0;
    unsigned long long resident = 0;
    if (!text || std::sscanf(text->c_str(), "%llu %llu", &total, &resident) != 2) {
        return 0;
    }
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class Text {
  public:
    void family(std::string_view name, std::string_view type, std::string_view help) {
        fmt::format_to(
            std::back_inserter(out_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help
        );
    }
    void sample(std::string_view name, std::uint64_t value) {
        fmt::format_to(std::back_inserter(out_), "{} {}\n", name, value);
    }
    void single(
        std::string_view name, std::string_view type, std::string_view help, std::uint64_t value
    ) {
        family(name, type, help);
        sample(name, value);
    }
    std::string out_;
};

}  // namespace

std::string metrics_text(const Api& api) {
    const auto counts = api.runs.counts();
    Text text;
    text.family("ars_build_info", "gauge", "Version of the server.");
    text.sample(fmt::format("ars_build_info{{version=\"{}\"}}", api.version), 1);
    text.single(
        "ars_uptime_seconds",
        "gauge",
        "Time since the server started.",
        static_cast<std::uint64_t>((base::now_ms() - api.started_ms) / 1000)
    );
    text.single(
        "ars_accepting", "gauge", "1 while new runs are accepted.", api.runs.accepting() ? 1 : 0
    );
    text.family("ars_runs_running", "gauge", "Runs that hold a slot.");
    text.sample("ars_runs_running{kind=\"root\"}", counts.running_roots);
    text.sample("ars_runs_running{kind=\"child\"}", counts.running_children);
    text.single(
        "ars_runs_waiting_children",
        "gauge",
        "Sub-agent runs that wait for a slot.",
        counts.waiting_children
    );
    text.single(
        "ars_requests_queued",
        "gauge",
        "Messages that wait for the run of their thread.",
        counts.queued_requests
    );
    text.family("ars_sandbox_info", "gauge", "Tier of the sandbox, and how its output is read.");
    text.sample(
        fmt::format(
            "ars_sandbox_info{{tier=\"{}\",child_io=\"{}\"}}", api.sandbox_tier, api.child_io
        ),
        1
    );
    text.single("ars_scopes", "gauge", "Sandbox scopes that are alive.", counts.scopes);
    text.family("ars_commands_total", "counter", "Commands of tools that are over, by their end.");
    for (const auto& [status, count] : counts.sandbox.commands) {
        text.sample(fmt::format("ars_commands_total{{status=\"{}\"}}", status), count);
    }
    text.family(
        "ars_denied_calls_total",
        "counter",
        "System calls the sandbox refused, once per command and call."
    );
    for (const auto& [call, count] : counts.sandbox.denied_calls) {
        text.sample(fmt::format("ars_denied_calls_total{{call=\"{}\"}}", call), count);
    }
    text.single(
        "ars_oom_kills_total",
        "counter",
        "Commands killed for their memory.",
        counts.sandbox.oom_kills
    );
    text.single(
        "ars_egress_connections_total",
        "counter",
        "Connections to the proxies of sandboxes with allowed_hosts.",
        counts.sandbox.egress.connections
    );
    text.single(
        "ars_egress_refused_total",
        "counter",
        "Requests that such a proxy refused.",
        counts.sandbox.egress.refused
    );
    text.single(
        "ars_egress_denied_hosts_total",
        "counter",
        "Those of them that named a host that is not allowed.",
        counts.sandbox.egress.denied_hosts
    );
    text.single(
        "ars_store_commits_total",
        "counter",
        "Durable commits; all that waits for one shares it.",
        api.runs.store().commits()
    );
    text.single("ars_http_connections", "gauge", "Open connections.", api.stats.connections);
    text.single(
        "ars_http_connections_refused_total",
        "counter",
        "Connections over the bound.",
        api.stats.refused_connections
    );
    text.single(
        "ars_http_body_bytes",
        "gauge",
        "Bodies of requests that are read or answered.",
        api.stats.body_bytes
    );
    text.single("ars_sse_streams", "gauge", "Readers that follow a run.", api.stats.streams);
    text.family("ars_http_responses_total", "counter", "Responses by class of status.");
    for (std::size_t group = 2; group < api.stats.responses.size(); ++group) {
        text.sample(
            fmt::format("ars_http_responses_total{{class=\"{}xx\"}}", group),
            api.stats.responses[group]
        );
    }
    text.single(
        "process_resident_memory_bytes", "gauge", "Resident memory of the server.", resident_bytes()
    );
    return std::move(text.out_);
}

}  // namespace ars::server
