// What a run costs: the real `ars serve`, driven over HTTP through whole runs of two model calls
// and one call of write_todos, every commit durable. Beside it, in the same minutes: a bare client
// that says the same bytes to the same model, and appends with fdatasync on the same disk. First
// with the data on a disk ($ARS_BENCH_DIR, else /var/tmp), then on a tmpfs. The client, the model
// and the server share the machine's processors; CPU per run is the server's own.
//
//   run_bench [--rounds N] [--seconds S] [--at-once N] [--place disk|tmpfs] [--waiting N]
#include "tests/bench/run_client.hpp"
#include "tests/bench/run_model.hpp"
#include "tests/bench/run_server.hpp"
#include "tests/support/http.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace ars::bench {

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
    int rounds = 3;
    double seconds = 2;
    int at_once = 0;    // 0 = 1, 16, 64 and 256
    std::string place;  // "" = both
    int waiting = 1000;
};

constexpr const char* kCall =
    R"({"agent_slug":"main","messages":[{"role":"user","content":"What is six times seven?"}]})";

// A few runs, so that everything has been used once.
Load warm_up() {
    Load load;
    load.warm_seconds = 0.1;
    load.seconds = 0.2;
    return load;
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) {
        return 0;
    }
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

// Appends of 4 KiB with fdatasync, one after the other: a second.
double raw_appends(const std::string& directory) {
    const std::string path = directory + "/raw";
    const auto file = base::open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const std::string page(4096, 'x');
    const auto start = Clock::now();
    int count = 0;
    double seconds = 0;
    while (seconds < 0.5) {
        if (!file || !base::write_all(file->get(), page) || ::fdatasync(file->get()) != 0) {
            throw std::runtime_error("appends to " + path + " failed");
        }
        ++count;
        seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    ::unlink(path.c_str());
    return count / seconds;
}

// One row: figures of all rounds.
struct Row {
    std::vector<double> per_second, p50, p99, cpu, io_cpu, store_cpu, client_cpu, model_cpu;
    std::vector<double> commits;
};

void must_all_succeed(const LoadResult& result, const char* who) {
    if (result.failed > 0 || result.latencies.empty()) {
        throw std::runtime_error(
            std::string(who) + ": " + std::to_string(result.failed) + " rounds failed; " +
            result.fault
        );
    }
}

void add_common(Row& row, const LoadResult& result, double model_cpu) {
    const auto runs = static_cast<double>(result.latencies.size());
    row.per_second.push_back(runs / result.seconds);
    row.p50.push_back(quantile(result.latencies, 0.5));
    row.p99.push_back(quantile(result.latencies, 0.99));
    row.client_cpu.push_back(result.cpu_seconds * 1e6 / runs);
    row.model_cpu.push_back(model_cpu * 1e6 / runs);
}

void measure_bare(Row& row, const FastModel& model, Load load) {
    const double before = model.cpu_seconds();
    load.port = model.port();
    const Round round{
        {post("/v1/chat/completions", model.first_body()),
         post("/v1/chat/completions", model.second_body())},
        "finish_reason"
    };
    const LoadResult result = drive(load, round);
    must_all_succeed(result, "the bare client");
    add_common(row, result, model.cpu_seconds() - before);
}

void measure_ours(Row& row, const BenchServer& server, const FastModel& model, Load load) {
    Usage before;
    Usage after;
    double model_cpu = 0;
    load.port = server.port();
    load.begins = [&] {
        before = server.usage();
        model_cpu = model.cpu_seconds();
    };
    load.ends = [&] {
        after = server.usage();
        model_cpu = model.cpu_seconds() - model_cpu;
    };
    const Round round{
        {post("/api/agent-invocation/agent-call/runs", kCall)}, R"("status":"completed")"
    };
    const LoadResult result = drive(load, round);
    must_all_succeed(result, "ars");
    const auto runs = static_cast<double>(result.latencies.size());
    add_common(row, result, model_cpu);
    row.io_cpu.push_back((after.io_cpu - before.io_cpu) * 1e6 / runs);
    row.store_cpu.push_back((after.store_cpu - before.store_cpu) * 1e6 / runs);
    row.cpu.push_back((after.cpu - before.cpu) * 1e6 / runs);
    row.commits.push_back(static_cast<double>(after.commits - before.commits) / runs);
}

void print_head() {
    std::printf(
        "%-6s %5s %-5s %9s %8s %8s %9s %9s %7s %7s %7s %7s %7s %8s\n",
        "place",
        "once",
        "who",
        "runs/s",
        "p50 us",
        "p99 us",
        "+p50/step",
        "+p99/step",
        "cpu/run",
        "io",
        "store",
        "client",
        "model",
        "syncs/run"
    );
}

void print_row(
    const std::string& place, int at_once, const char* who, const Row& row, const Row* bare
) {
    std::printf(
        "%-6s %5d %-5s %9.0f %8.0f %8.0f ",
        place.c_str(),
        at_once,
        who,
        median(row.per_second),
        median(row.p50),
        median(row.p99)
    );
    if (bare == nullptr) {
        std::printf("%9s %9s %7s %7s %7s ", "", "", "", "", "");
    } else {
        std::printf(
            "%9.0f %9.0f %7.0f %7.0f %7.0f ",
            (median(row.p50) - median(bare->p50)) / 2,
            (median(row.p99) - median(bare->p99)) / 2,
            median(row.cpu),
            median(row.io_cpu),
            median(row.store_cpu)
        );
    }
    std::printf("%7.1f %7.1f ", median(row.client_cpu), median(row.model_cpu));
    if (bare != nullptr) {
        std::printf("%8.2f", median(row.commits));
    }
    std::printf("\n");
    std::fflush(stdout);
}

// Returns runs per second at 64, and what a step adds to one run alone.
void measure_place(
    const Settings& settings, const std::string& place, const std::string& directory
) {
    FastModel model;
    BenchServer server(directory, model.port());
    server.start();
    const Memory ready = server.memory();
    // Fills what the bare client repeats.
    Row first;
    measure_ours(first, server, model, warm_up());
    std::vector<int> counts{1, 16, 64, 256};
    if (settings.at_once > 0) {
        counts = {settings.at_once};
    }
    std::vector<double> raw;
    std::vector<std::string> verdicts;
    print_head();
    for (const int at_once : counts) {
        Row ours;
        Row bare;
        Load load;
        load.at_once = at_once;
        load.seconds = settings.seconds;
        for (int i = 0; i < settings.rounds; ++i) {
            raw.push_back(raw_appends(directory));
            measure_bare(bare, model, load);
            measure_ours(ours, server, model, load);
        }
        print_row(place, at_once, "bare", bare, nullptr);
        print_row(place, at_once, "ars", ours, &bare);
        char line[200];
        if (at_once == 64 && place == "disk") {
            std::snprintf(
                line,
                sizeof line,
                "runs/s at 64: %.0f (goal 5000 on a quiet disk) = %.2f of the bare client, %.2f "
                "runs an append of the disk",
                median(ours.per_second),
                median(ours.per_second) / median(bare.per_second),
                median(ours.per_second) / median(raw)
            );
            verdicts.emplace_back(line);
        }
        if (at_once == 1) {
            std::snprintf(
                line,
                sizeof line,
                "added per step, one run alone: %.0f us (goal on tmpfs: 150)",
                (median(ours.p50) - median(bare.p50)) / 2
            );
            verdicts.emplace_back(line);
        }
    }
    std::printf("%s: raw append of 4 KiB with fdatasync: %.0f/s\n", place.c_str(), median(raw));
    for (const std::string& verdict : verdicts) {
        std::printf("%s: %s\n", place.c_str(), verdict.c_str());
    }
    std::printf(
        "%s: resident at ready: %.1f MiB (goal 8), of that private %.1f MiB; after the load "
        "%.1f\n\n",
        place.c_str(),
        ready.resident_kib / 1024,
        ready.private_kib / 1024,
        server.memory().resident_kib / 1024
    );
}

// Runs that wait for the model, each in a thread of its own, started by callers that don't wait.
void measure_waiting(const Settings& settings, const std::string& directory) {
    FastModel model;
    BenchServer server(directory, model.port());
    server.start();
    Row ignored;
    measure_ours(ignored, server, model, warm_up());
    const Memory before = server.memory();
    model.hold();
    const auto wanted = static_cast<std::size_t>(settings.waiting);
    for (std::size_t i = 0; i < wanted; ++i) {
        const auto reply = tests::http(
            server.port(),
            "POST",
            "/api/agent/runs",
            R"({"agent_slug":"main","query":"What is six times seven?"})",
            {{"Content-Type", "application/json"}}
        );
        if (reply.status != 202) {
            throw std::runtime_error("a run was not taken: " + reply.body);
        }
    }
    const auto limit = Clock::now() + std::chrono::seconds(60);
    while (model.held() < wanted && Clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const Memory during = server.memory();
    const double count = static_cast<double>(model.held());
    model.release();
    server.wait_until_idle();
    std::printf(
        "%.0f runs waiting for the model: %.1f KiB resident each (goal 20), of that private %.1f; "
        "afterwards %.1f MiB resident\n",
        count,
        (during.resident_kib - before.resident_kib) / count,
        (during.private_kib - before.private_kib) / count,
        server.memory().resident_kib / 1024
    );
}

Settings read_settings(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const char* value = argv[i + 1];
        if (name == "--rounds") {
            settings.rounds = std::atoi(value);
        } else if (name == "--seconds") {
            settings.seconds = std::atof(value);
        } else if (name == "--at-once") {
            settings.at_once = std::atoi(value);
        } else if (name == "--place") {
            settings.place = value;
        } else if (name == "--waiting") {
            settings.waiting = std::atoi(value);
        } else {
            throw std::runtime_error("unknown option " + name);
        }
    }
    return settings;
}

void run_all(const Settings& settings) {
    const char* chosen = std::getenv("ARS_BENCH_DIR");
    const std::string disk = chosen != nullptr ? chosen : "/var/tmp";
    if (settings.place != "tmpfs") {
        measure_place(settings, "disk", disk);
    }
    if (settings.place != "disk") {
        measure_place(settings, "tmpfs", "/dev/shm");
    }
    if (settings.waiting > 0) {
        measure_waiting(settings, disk);
    }
}

}  // namespace

}  // namespace ars::bench

int main(int argc, char** argv) {
    try {
        ars::bench::run_all(ars::bench::read_settings(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "run_bench: %s\n", error.what());
        return 1;
    }
    return 0;
}
