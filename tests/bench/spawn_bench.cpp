// Ours beside the peers, rows alternating in one run: what a sandboxed process costs. Ours goes
// through the room's front door in one process that stays, as the server does it: `warm` is a
// command in a scope that is up, `fresh` makes a scope, runs its first command and releases it.
// Prints medians over the rounds and the ratios that are the goals; run it on a quiet machine.
//
//   spawn_bench [--rounds N] [--n N] [--sustained N] [--resident MIB] [--only "ours fresh"]
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "fsmount/layout.hpp"
#include "fsmount/mount_plan.hpp"
#include "fsmount/tree_removal.hpp"
#include "sandbox/privileges.hpp"
#include "sandbox/scope.hpp"
#include "tests/bench/spawn_peers.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/fsuid.h>
#include <unistd.h>

namespace ars::bench {

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
    int rounds = 7;
    int n = 60;
    int sustained = 8000;
    std::size_t resident_mib = 1024;
    std::string only;  // of the sustained rows, for a profiler; empty = everything
};

double micros(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) {
        return 0;
    }
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Sample {
    std::vector<double> latencies;  // microseconds
    double seconds = 0;
    int failed = 0;
};

struct Row {
    std::string name;
    // `n` runs by each of `callers`.
    std::function<Sample(const Argv&, int callers, int n)> measure;
};

Sample measure_peer(const Peer& peer, const Argv& argv, int callers, int n) {
    std::vector<Sample> parts(static_cast<std::size_t>(callers));
    const auto start = Clock::now();
    std::vector<std::jthread> threads;
    for (Sample& part : parts) {
        threads.emplace_back([&part, &peer, &argv, n] {
            for (int i = 0; i < n; ++i) {
                const auto before = Clock::now();
                part.failed += peer.run(argv) ? 0 : 1;
                part.latencies.push_back(micros(Clock::now() - before));
            }
        });
    }
    threads.clear();
    Sample whole;
    whole.seconds = micros(Clock::now() - start) / 1e6;
    for (const Sample& part : parts) {
        whole.failed += part.failed;
        whole.latencies.insert(whole.latencies.end(), part.latencies.begin(), part.latencies.end());
    }
    return whole;
}

// The product's spawn path: one sandbox that stays up for the whole run.
class Ours {
  public:
    Ours(std::shared_ptr<fsmount::Workspace> workspace) : workspace_(std::move(workspace)) {
        auto made = sandbox::make_sandbox(io_.get_executor(), {}, log_);
        if (!made) {
            throw std::runtime_error(made.error().message);
        }
        sandbox_ = std::move(*made);
    }
    ~Ours() { drive(sandbox_->close()); }
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

    Sample measure(const Argv& argv, int callers, int n, bool fresh) {
        Sample sample;
        const auto start = Clock::now();
        drive(all_callers(argv, callers, n, fresh, sample));
        sample.seconds = micros(Clock::now() - start) / 1e6;
        return sample;
    }

  private:
    base::Task<void> all_callers(const Argv& argv, int callers, int n, bool fresh, Sample& sample) {
        base::TaskGroup group(io_.get_executor());
        for (int i = 0; i < callers; ++i) {
            group.spawn(one_caller(argv, i, n, fresh, sample));
        }
        co_await group.join();
    }

    base::Task<void> one_caller(const Argv& argv, int caller, int n, bool fresh, Sample& sample) {
        const sandbox::ScopeKey key{"bench", std::to_string(caller), "default"};
        base::TaskGroup release(io_.get_executor());
        for (int i = 0; i < n; ++i) {
            const auto before = Clock::now();
            const bool ok = co_await run_once(argv, key);
            sample.latencies.push_back(micros(Clock::now() - before));
            sample.failed += ok ? 0 : 1;
            if (fresh) {
                // As in the server, nobody waits for it but the next one; the clock does.
                co_await release.join();
                release.spawn(sandbox_->release(key));
            }
        }
        co_await release.join();
    }

    base::Task<bool> run_once(const Argv& argv, sandbox::ScopeKey key) {
        auto spec = [this]() -> base::Result<sandbox::ScopeSpec> {
            auto mounts = plan_as_gem();
            if (!mounts) {
                return std::unexpected(mounts.error());
            }
            return sandbox::ScopeSpec{{}, std::move(*mounts), "ars"};
        };
        auto scope = co_await sandbox_->acquire(std::move(key), spec);
        if (!scope) {
            std::fprintf(stderr, "%s\n", scope.error().message.c_str());
            co_return false;
        }
        sandbox::Command command;
        command.argv = argv;
        command.environment = environment_;
        command.cwd = "/home/gem/user-data";
        const sandbox::Outcome outcome = co_await (*scope)->run(std::move(command));
        co_return outcome.status == sandbox::OutcomeStatus::exited&& outcome.exit_code == 0;
    }

    // The server plans after it has dropped root; here the peers need root until the end.
    base::Result<fsmount::MountPlan> plan_as_gem() {
        ::setfsuid(fsmount::kGemUid);
        auto plan = planner_.plan(*workspace_);
        ::setfsuid(::geteuid());
        return plan;
    }

    void drive(base::Task<void> task) {
        std::exception_ptr failure;
        bool done = false;
        io_.restart();
        boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr error) {
            failure = error;
            done = true;
        });
        // Scopes that stay up keep reads pending, so the context never runs dry by itself.
        while (!done && io_.run_one() > 0) {
        }
        if (failure) {
            std::rethrow_exception(failure);
        }
    }

    std::shared_ptr<fsmount::Workspace> workspace_;
    fsmount::MountPlanner planner_{{}};
    base::Log log_{2, base::LogLevel::off};
    boost::asio::io_context io_{1};
    std::unique_ptr<sandbox::Sandbox> sandbox_;
    std::map<std::string, std::string> environment_ = sandbox::default_environment();
};

struct Figures {
    std::vector<double> p50;  // one of each round
    std::vector<double> p99;
    std::vector<double> rate;
    int failed = 0;
};
using Table = std::map<std::string, Figures>;

Table run_rounds(const std::vector<Row>& rows, const Argv& argv, int callers, int rounds, int n) {
    Table table;
    for (int round = 0; round < rounds; ++round) {
        for (const Row& row : rows) {
            const Sample sample = row.measure(argv, callers, n);
            Figures& figures = table[row.name];
            figures.p50.push_back(quantile(sample.latencies, 0.5));
            figures.p99.push_back(quantile(sample.latencies, 0.99));
            figures.rate.push_back(static_cast<double>(sample.latencies.size()) / sample.seconds);
            figures.failed += sample.failed;
        }
    }
    return table;
}

void print(const std::vector<Row>& rows, const Table& table, const std::string& title) {
    std::printf("\n%s\n%-14s %10s %10s %10s\n", title.c_str(), "", "p50 us", "p99 us", "per s");
    for (const Row& row : rows) {
        const Figures& f = table.at(row.name);
        if (f.failed > 0) {
            std::printf("%-14s %d runs failed\n", row.name.c_str(), f.failed);
            continue;
        }
        std::printf(
            "%-14s %10.0f %10.0f %10.0f\n",
            row.name.c_str(),
            quantile(f.p50, 0.5),
            quantile(f.p99, 0.5),
            quantile(f.rate, 0.5)
        );
    }
}

// The median of the ratios of each round, which drift of the machine does not move.
double ratio(const std::vector<double>& ours, const std::vector<double>& theirs) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
        ratios.push_back(ours[i] / theirs[i]);
    }
    return quantile(ratios, 0.5);
}

void goal(const char* what, double measured, const char* sign, double bound) {
    const bool met = std::strcmp(sign, "<=") == 0 ? measured <= bound : measured >= bound;
    std::printf(
        "%-58s %6.2f  goal %s %.2f  %s\n", what, measured, sign, bound, met ? "met" : "MISSED"
    );
}

void print_goals(const Table& one, const Table& two) {
    if (!one.contains("bubblewrap") || one.at("bubblewrap").failed > 0) {
        std::printf("\nno goals: bubblewrap is not installed or does not work here\n");
        return;
    }
    const Figures& warm = one.at("ours warm");
    const Figures& fresh = one.at("ours fresh");
    const Figures& bwrap = one.at("bubblewrap");
    std::printf("\n");
    goal("warm p50 / vfork + exec p50", ratio(warm.p50, one.at("vfork + exec").p50), "<=", 1.25);
    goal("warm p50 / bubblewrap p50", ratio(warm.p50, bwrap.p50), "<=", 0.25);
    goal("fresh p50 / bubblewrap p50", ratio(fresh.p50, bwrap.p50), "<=", 0.45);
    goal(
        "warm rate / bubblewrap rate, two callers",
        ratio(two.at("ours warm").rate, two.at("bubblewrap").rate),
        ">=",
        6
    );
    goal(
        "fresh rate / bubblewrap rate, two callers",
        ratio(two.at("ours fresh").rate, two.at("bubblewrap").rate),
        ">=",
        3.5
    );
}

void print_sustained(const std::vector<Row>& rows, const Argv& argv, int n) {
    std::printf("\nsustained, %d of /bin/true, two callers\n", n);
    for (const Row& row : rows) {
        if (row.name != "ours warm" && row.name != "ours fresh" && row.name != "bubblewrap") {
            continue;
        }
        const Sample sample = row.measure(argv, 2, n / 2);
        std::printf(
            "%-14s %8.0f per s   p99 %8.0f us   worst %8.0f us   failed %d\n",
            row.name.c_str(),
            static_cast<double>(sample.latencies.size()) / sample.seconds,
            quantile(sample.latencies, 0.99),
            quantile(sample.latencies, 1),
            sample.failed
        );
    }
}

void print_resident(const std::vector<Row>& rows, const Argv& argv, const Settings& settings) {
    // In turn, so that drift of the machine does not look like a cost.
    Table empty;
    Table full;
    for (int round = 0; round < settings.rounds; ++round) {
        const Table before = run_rounds(rows, argv, 1, 1, settings.n);
        const std::vector<char> resident(settings.resident_mib * 1024 * 1024, 1);
        const Table after = run_rounds(rows, argv, 1, 1, settings.n);
        for (const Row& row : rows) {
            empty[row.name].p50.push_back(before.at(row.name).p50.front());
            full[row.name].p50.push_back(after.at(row.name).p50.front());
        }
    }
    std::printf("\nwith %zu MiB resident in the server\n", settings.resident_mib);
    for (const char* name : {"ours warm", "ours fresh"}) {
        const std::string what = std::string(name) + " p50, resident / empty";
        goal(what.c_str(), ratio(full.at(name).p50, empty.at(name).p50), "<=", 1.05);
    }
}

Settings parse(int argc, char** argv) {
    Settings settings;
    const std::map<std::string, int*> options{
        {"--rounds", &settings.rounds}, {"--n", &settings.n}, {"--sustained", &settings.sustained}
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (const auto found = options.find(argv[i]); found != options.end()) {
            *found->second = std::atoi(argv[i + 1]);
        } else if (std::string(argv[i]) == "--only") {
            settings.only = argv[i + 1];
        } else if (std::string(argv[i]) == "--resident") {
            settings.resident_mib = static_cast<std::size_t>(std::atoi(argv[i + 1]));
        }
    }
    return settings;
}

int run(const Settings& settings) {
    const std::string folder = "/tmp/ars-spawn-bench-" + std::to_string(::getpid());
    const struct Removed {
        const std::string& path;
        ~Removed() { fsmount::remove_tree(path); }
    } removed{folder};
    auto workspace = fsmount::open_user_workspace(folder + "/users", folder + "/skills", "bench");
    if (!workspace) {
        std::fprintf(stderr, "%s\n", workspace.error().message.c_str());
        return 1;
    }
    Ours ours(*workspace);
    std::vector<Row> rows;
    const std::vector<Peer> peers = find_peers();
    for (const Peer& peer : peers) {
        rows.push_back({peer.name, [&peer](const Argv& argv, int callers, int n) {
                            return measure_peer(peer, argv, callers, n);
                        }});
    }
    for (const bool fresh : {false, true}) {
        rows.push_back(
            {fresh ? "ours fresh" : "ours warm",
             [&ours, fresh](const Argv& argv, int callers, int n) {
                 return ours.measure(argv, callers, n, fresh);
             }}
        );
    }
    const Argv true_argv{"/bin/true"};
    const Argv bash_argv{"/bin/bash", "-c", "echo hi"};
    if (!settings.only.empty()) {
        std::erase_if(rows, [&](const Row& row) { return row.name != settings.only; });
        print_sustained(rows, true_argv, settings.sustained);
        return 0;
    }
    const Table one = run_rounds(rows, true_argv, 1, settings.rounds, settings.n);
    print(rows, one, "/bin/true, one caller");
    const Table two = run_rounds(rows, true_argv, 2, settings.rounds, settings.n);
    print(rows, two, "/bin/true, two callers");
    print(
        rows,
        run_rounds(rows, bash_argv, 1, settings.rounds, settings.n),
        "bash -c 'echo hi', one caller"
    );
    print_goals(one, two);
    if (settings.sustained > 0) {
        print_sustained(rows, true_argv, settings.sustained);
    }
    if (settings.resident_mib > 0) {
        print_resident({rows[rows.size() - 2], rows.back()}, true_argv, settings);
    }
    return 0;
}

}  // namespace

}  // namespace ars::bench

int main(int argc, char** argv) { return ars::bench::run(ars::bench::parse(argc, argv)); }
