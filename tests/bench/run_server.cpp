#include "tests/bench/run_server.hpp"

#include "tests/support/http.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <sys/stat.h>

namespace ars::bench {

namespace {

constexpr const char* kAgent = R"(slug: main
name: Main
description: Answers questions.
backend_id: ChatbotAgent
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json:
  context: {system_prompt: "You answer questions.", tools: [write_todos]}
)";

// The value of one sample of the metrics page.
double sample(const std::string& page, const std::string& name) {
    const std::size_t at = page.find("\n" + name + " ");
    if (at == std::string::npos) {
        throw std::runtime_error("no metric " + name);
    }
    return std::stod(page.substr(at + name.size() + 2));
}

std::string metrics(int port) { return tests::http(port, "GET", "/metrics").body; }

}  // namespace

BenchServer::BenchServer(const std::string& place, int model_port) : data_(place) {
    server_.write("agents/main.yaml", kAgent);
    server_.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\n"
        "data_dir: " +
            data_.path() +
            "/data\n"
            "agents: [\"agents/main.yaml\"]\n"
            "models:\n"
            "  default: \"fast:model\"\n"
            "  providers:\n"
            "    fast: {type: openai, base_url: \"http://127.0.0.1:" +
            std::to_string(model_port) +
            "/v1\"}\n"
            "runs: {max_concurrent: 2000}\n"
            "sandbox: {tool_approval_mode: always_trust}\n"
    );
}

double BenchServer::start() {
    const auto begun = std::chrono::steady_clock::now();
    server_.start();
    while (sample(metrics(port()), "ars_accepting") == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
        .count();
}

double BenchServer::written_bytes() const {
    double bytes = 0;
    std::ifstream io("/proc/" + std::to_string(server_.pid()) + "/io");
    for (std::string line; std::getline(io, line);) {
        std::sscanf(line.c_str(), "wchar: %lf", &bytes);
    }
    return bytes;
}

double BenchServer::store_bytes() const {
    struct stat status{};
    ::stat((data_dir() + "/store/data.mdb").c_str(), &status);
    return static_cast<double>(status.st_blocks) * 512;
}

Usage BenchServer::usage() const {
    Usage out;
    const std::string tasks = "/proc/" + std::to_string(server_.pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        double nanoseconds = 0;
        std::ifstream(task.path() / "schedstat") >> nanoseconds;
        const double seconds = nanoseconds / 1e9;
        const std::string name = tests::read_text(task.path() / "comm");
        out.cpu += seconds;
        if (task.path().filename() == std::to_string(server_.pid())) {
            out.io_cpu += seconds;
        } else if (name.starts_with("ars-store")) {
            out.store_cpu += seconds;
        }
    }
    out.commits = static_cast<std::uint64_t>(sample(metrics(port()), "ars_store_commits_total"));
    return out;
}

Memory BenchServer::memory() const {
    Memory out;
    std::ifstream status("/proc/" + std::to_string(server_.pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
        std::sscanf(line.c_str(), "VmRSS: %lf kB", &out.resident_kib);
        std::sscanf(line.c_str(), "RssAnon: %lf kB", &out.private_kib);
    }
    return out;
}

void BenchServer::wait_until_idle() const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (sample(metrics(port()), "ars_runs_running{kind=\"root\"}") > 0) {
        if (std::chrono::steady_clock::now() > limit) {
            throw std::runtime_error("the runs did not end");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace ars::bench
