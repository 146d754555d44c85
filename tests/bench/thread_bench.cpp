// What the real server does with much history: one thread of 2,000 turns, a run with 10,000 events
// read from its start, and 1,000 runs in flight when it is killed. Each figure stands beside its
// goal; the data is in $ARS_BENCH_DIR, else /var/tmp.
//
//   thread_bench [turns [runs]]
#include "base/limits.hpp"
#include "runtime/store/store.hpp"
#include "tests/bench/run_model.hpp"
#include "tests/bench/run_server.hpp"
#include "tests/support/http.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace ars::bench {

namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kTextBytes = 800;  // of each question and each answer
constexpr int kEvents = 10'000;
constexpr int kRunsBefore = 300;

double ms_since(Clock::time_point begun) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

json::object post_json(int port, const std::string& path, const json::object& body) {
    const auto reply = tests::http_json(port, "POST", path, body);
    if (reply.status < 200 || reply.status > 299) {
        throw std::runtime_error(path + " answered " + reply.body);
    }
    return reply.json().as_object();
}

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

struct Turn {
    double ms = 0;
    double written = 0;  // bytes
    double request = 0;  // bytes of the second model call
};

// The middle one of five turns that end with `last`, by each figure.
Turn around(const std::vector<Turn>& turns, std::size_t last) {
    const auto middle = [&](double Turn::* figure) {
        std::vector<double> values;
        for (std::size_t i = last - 5; i < last; ++i) {
            values.push_back(turns[i].*figure);
        }
        std::ranges::sort(values);
        return values[2];
    };
    return {middle(&Turn::ms), middle(&Turn::written), middle(&Turn::request)};
}

void measure_growth(const std::string& place, std::size_t turns) {
    FastModel model(kTextBytes);
    BenchServer server(place, model.port());
    server.start();
    // Of others' threads: in an empty store every tree would still grow a level.
    for (int i = 0; i < kRunsBefore; ++i) {
        post_json(
            server.port(),
            "/api/agent-invocation/agent-call/runs",
            {{"agent_slug", "main"}, {"messages", {{{"role", "user"}, {"content", "Go on."}}}}}
        );
    }
    const double empty = server.store_bytes();
    const std::string thread =
        text(post_json(server.port(), "/api/chat/thread", {{"agent_id", "main"}}), "id");
    const std::string question = "What is six times seven? " + std::string(kTextBytes, 'q');
    const json::object call{
        {"agent_slug", "main"},
        {"thread_id", thread},
        {"messages", {{{"role", "user"}, {"content", question}}}}
    };
    std::vector<Turn> all;
    double stored = 0;
    double content = 0;
    while (all.size() < turns) {
        Turn turn;
        const double before = server.written_bytes();
        const auto begun = Clock::now();
        const json::object answer =
            post_json(server.port(), "/api/agent-invocation/agent-call/runs", call);
        turn.ms = ms_since(begun);
        if (answer.at("status") != "completed") {
            throw std::runtime_error(json::serialize(answer));
        }
        turn.written = server.written_bytes() - before;
        turn.request = static_cast<double>(model.last_request_bytes());
        all.push_back(turn);
        if (all.size() == 200) {
            stored = server.store_bytes() - empty;
            content = static_cast<double>(
                tests::http(server.port(), "GET", "/api/chat/thread/" + thread + "/history")
                    .body.size()
            );
        }
    }
    const Turn early = around(all, 20);
    const Turn later = around(all, 200);
    const Turn last = around(all, turns);
    std::printf(
        "growth: turn 20 writes %.0f bytes, turn 200 %.0f: %.2f times (goal 1.1)\n",
        early.written,
        later.written,
        later.written / early.written
    );
    std::printf(
        "growth: after 200 turns the store has %.0f KiB more, the history as JSON is %.0f KiB: "
        "%.2f times (goal 3)\n",
        stored / 1024,
        content / 1024,
        stored / content
    );
    std::printf(
        "growth: turn 200 takes %.2f ms, turn %zu %.2f ms: %.2f times, its request %.2f times "
        "(goal: no more)\n",
        later.ms,
        turns,
        last.ms,
        last.ms / later.ms,
        last.request / later.request
    );
    std::fflush(stdout);
}

// A finished run with many events, put there before the server starts.
std::string write_long_run(const std::string& data_dir) {
    const base::Log log(STDERR_FILENO, base::LogLevel::off);
    const std::string directory = data_dir + "/store";
    std::filesystem::create_directories(directory);
    auto opened = store::Store::open(
        {.directory = directory, .max_size = 1 * base::limits::kGiB, .sync = true}, log
    );
    if (!opened) {
        throw std::runtime_error(opened.error().message);
    }
    std::string id;
    const auto written =
        (*opened)->write_blocking([&id](store::WriteTxn& txn) -> base::Result<void> {
            store::ThreadRecord thread;
            thread.uid = "local";
            thread.agent_slug = "main";
            txn.put_thread(thread);
            store::RunRecord run;
            run.uid = thread.uid;
            run.thread = thread.no;
            run.thread_id = thread.id;
            run.agent_slug = thread.agent_slug;
            run.status = store::RunStatus::completed;
            txn.put_run(run);
            id = run.id;
            for (int i = 1; i <= kEvents; ++i) {
                store::EventRecord event;
                event.run = run.no;
                event.type = i == kEvents ? "end" : "messages";
                event.payload = json::serialize(json::object{{"text", std::string(200, 'e')}});
                txn.add_event(event);
            }
            return {};
        });
    if (!written) {
        throw std::runtime_error(written.error().message);
    }
    return id;
}

void give_away(const std::string& directory) {
    if (::geteuid() != 0) {
        return;
    }
    constexpr uid_t kGem = 1000;
    static_cast<void>(::chown(directory.c_str(), kGem, kGem));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        static_cast<void>(::chown(entry.path().c_str(), kGem, kGem));
    }
}

void measure_replay(const std::string& place) {
    const FastModel model;
    BenchServer server(place, model.port());
    const std::string run = write_long_run(server.data_dir());
    give_away(server.data_dir());
    server.start();
    std::vector<double> took;
    std::size_t bytes = 0;
    for (int i = 0; i < 5; ++i) {
        const auto begun = Clock::now();
        const auto reply = tests::http(server.port(), "GET", "/api/agent/runs/" + run + "/events");
        took.push_back(ms_since(begun));
        bytes = reply.body.size();
    }
    std::ranges::sort(took);
    std::printf(
        "replay: %d events over HTTP in %.0f ms: %.0f events/s, %.0f MiB/s\n",
        kEvents,
        took[2],
        kEvents * 1000 / took[2],
        static_cast<double>(bytes) / took[2] / 1048.576
    );
    std::fflush(stdout);
}

void wait_until_held(const FastModel& model, std::size_t wanted) {
    const auto limit = Clock::now() + std::chrono::minutes(2);
    while (model.held() < wanted && Clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (model.held() < wanted) {
        throw std::runtime_error("only " + std::to_string(model.held()) + " runs asked the model");
    }
}

void measure_boot(const std::string& place, std::size_t runs) {
    FastModel model;
    BenchServer server(place, model.port());
    const double first = server.start();
    model.hold();
    for (std::size_t i = 0; i < runs; ++i) {
        post_json(server.port(), "/api/agent/runs", {{"agent_slug", "main"}, {"query", "Go on."}});
    }
    wait_until_held(model, runs);
    server.kill();
    while (model.held() > 0) {  // the model sees the connections close
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const auto begun = Clock::now();
    const double ready = server.start();
    wait_until_held(model, runs);
    const double resumed = ms_since(begun);
    model.release();
    server.wait_until_idle();
    std::printf(
        "boot: an empty store takes runs after %.0f ms; after kill -9 with %zu runs in flight "
        "after %.0f ms (goal 300), all of them ask the model again after %.0f ms, all end after "
        "%.0f ms\n",
        first,
        runs,
        ready,
        resumed,
        ms_since(begun)
    );
}

}  // namespace

}  // namespace ars::bench

int main(int argc, char** argv) {
    try {
        const char* chosen = std::getenv("ARS_BENCH_DIR");
        const std::string place = chosen != nullptr ? chosen : "/var/tmp";
        const std::size_t turns = argc > 1 ? std::stoul(argv[1]) : 2000;
        ars::bench::measure_boot(place, argc > 2 ? std::stoul(argv[2]) : 1000);
        ars::bench::measure_replay(place);
        ars::bench::measure_growth(place, std::max<std::size_t>(turns, 200));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "thread_bench: %s\n", error.what());
        return 1;
    }
    return 0;
}
