#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <signal.h>

namespace ars::tests {

namespace json = boost::json;

namespace {

constexpr const char* kAppliance = R"(data_dir: data
mounts: {users: data/users}
agents: ["agents/*.yaml"]
models:
  default: "demo:scripted"
  providers:
)";
constexpr const char* kScripted = R"({type: scripted, scripts: "scripts/*.yaml"})";

constexpr const char* kMainAgent = R"(slug: main
name: Main
description: Does what the test says.
backend_id: ChatbotAgent
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json:
  context: {system_prompt: "You work for a test.", subagents: [helper]}
)";

constexpr const char* kHelperAgent = R"(slug: helper
name: Helper
description: Helps the test.
backend_id: SubAgentBackend
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json:
  context: {system_prompt: "You help a test."}
)";

}  // namespace

Server::Server() {
    write("agents/main.yaml", kMainAgent);
    write("agents/helper.yaml", kHelperAgent);
}

// Without namespaces the workspace is the machine's: what commands left is their test's to remove.
Server::~Server() {
    process_.reset();
    std::error_code ignored;
    for (const std::string& workdir : workdirs_) {
        std::filesystem::remove(workdir, ignored);
    }
}

void Server::start(std::map<std::string, std::string> environment) {
    const std::filesystem::path config = config_path();
    if (!std::filesystem::exists(config)) {
        write(
            "appliance.yaml",
            kAppliance + ("    demo: " + (provider_.empty() ? kScripted : provider_)) +
                "\nserver: {listen: \"127.0.0.1:0\"" + listening_ +
                "}\nsandbox: {tool_approval_mode: always_trust, require: " + require_ + "}\n" +
                extra_
        );
    }
    std::vector<std::string> argv = wrapper_;
    argv.insert(argv.end(), {binary_, "serve", "--config", config.string()});
    const auto begun = std::chrono::steady_clock::now();
    process_ = std::make_unique<Process>(std::move(argv), std::move(environment));
    const auto until = begun + std::chrono::seconds(10);
    port_ = 0;
    start_ms_ = 0;
    while (std::chrono::steady_clock::now() < until && process_->running()) {
        std::istringstream lines(log());
        for (std::string line; port_ == 0 && std::getline(lines, line);) {
            boost::system::error_code error;
            const json::value entry = json::parse(line, error);
            if (!error && entry.is_object() && entry.as_object().if_contains("port") != nullptr) {
                port_ = static_cast<int>(entry.as_object().at("port").as_int64());
            }
        }
        if (port_ != 0 && start_ms_ == 0 &&
            http(port_, "GET", "/api/system/health").status == 200) {
            start_ms_ =
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
                    .count();
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("the server did not start: " + log());
}

void Server::start_without_namespaces(const std::string& require) {
    require_ = require;
    wrapper_ = without_namespaces({});
    start();
}

void Server::kill() {
    process_->signal(SIGKILL);
    process_->wait();
}

int Server::stop() {
    process_->signal(SIGTERM);
    return process_->wait(std::chrono::seconds(15)).exit_code;
}

json::object Server::submit(const std::string& agent, const std::string& query, Headers headers) {
    const HttpReply reply = http_json(
        port_,
        "POST",
        "/api/agent/runs",
        json::object{{"agent_slug", agent}, {"query", query}},
        headers
    );
    if (reply.status != 202) {
        throw std::runtime_error(
            "submit answered " + std::to_string(reply.status) + " " + reply.body
        );
    }
    json::object submitted = reply.json().as_object();
    if (!wrapper_.empty()) {
        const std::string thread(submitted.at("thread_id").as_string());
        const json::value found =
            http(port_, "GET", "/api/chat/thread/" + thread, {}, headers).json();
        workdirs_.push_back(
            "/home/gem/user-data/" + std::string(found.at("workdir_path").as_string())
        );
    }
    return submitted;
}

json::object Server::wait_for_end(
    const std::string& run_id, const Headers& headers, std::chrono::milliseconds limit
) {
    const auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
        const HttpReply reply =
            http(port_, "GET", "/api/agent/runs/" + run_id + "/result", {}, headers);
        const json::object result = reply.json().as_object();
        const json::string& status = result.at("status").as_string();
        if (status == "completed" || status == "failed" || status == "cancelled") {
            return result;
        }
        if (std::chrono::steady_clock::now() > until) {
            throw std::runtime_error("run did not end: " + reply.body + "\n" + log());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

std::map<std::string, int> Server::effects(const std::string& uid) const {
    std::map<std::string, int> times;
    if (!std::filesystem::exists(workspace(uid))) {
        return times;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(workspace(uid))) {
        if (entry.path().filename() == "effects") {
            std::ifstream file(entry.path());
            for (std::string line; std::getline(file, line);) {
                ++times[line];
            }
        }
    }
    return times;
}

}  // namespace ars::tests
