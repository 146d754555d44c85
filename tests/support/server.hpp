// `ars serve` for a test: the real binary on a free loopback port, with its configuration and data
// in a temporary directory that survives restarts.
#pragma once

#include "tests/support/http.hpp"
#include "tests/support/process.hpp"

#include <map>
#include <memory>
#include <string>

namespace ars::tests {

class Server {
  public:
    // Starts with one main agent "main", one sub-agent "helper" and the provider `demo` (scripted)
    // unless files of those names were written before start().
    Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    // Below the configuration directory: "agents/x.yaml", "scripts/x.yaml", "appliance.yaml".
    void write(const std::string& name, const std::string& text) { dir_.write(name, text); }
    // Added to the default appliance.yaml.
    void add_settings(const std::string& yaml) { extra_ += yaml; }
    // Beside `listen`, like "heartbeat: 1s".
    void add_server_settings(const std::string& keys) { listening_ += ", " + keys; }
    // An OpenAI provider in place of the scripted one, with keys like "idle_timeout: 1s".
    void use_model(const std::string& base_url, const std::string& keys = "retries: 0") {
        provider_ = "{type: openai, base_url: \"" + base_url + "\", " + keys + "}";
    }
    // As in a container whose engine refuses namespaces: `require` is what sandbox.require says.
    void start_without_namespaces(const std::string& require = "landlock");

    // Returns when the server takes runs; throws with the server's log when it does not within ten
    // seconds.
    void start(std::map<std::string, std::string> environment = {});
    // SIGKILL.
    void kill();
    // The next start() is of another program.
    void use_binary(std::string path) { binary_ = std::move(path); }
    [[nodiscard]] bool running() { return process_->running(); }
    // SIGTERM; the exit code.
    int stop();
    // For one that stops by itself.
    Finished wait_for_exit() { return process_->wait(); }

    [[nodiscard]] int port() const { return port_; }
    [[nodiscard]] pid_t pid() const { return process_->pid(); }
    [[nodiscard]] std::string log() const { return process_->err(); }
    [[nodiscard]] std::string config_path() const { return dir_.path() + "/appliance.yaml"; }
    [[nodiscard]] std::string data_dir() const { return dir_.path() + "/data"; }
    [[nodiscard]] std::string workspace(const std::string& uid) const {
        return dir_.path() + "/data/users/" + uid + "/workspace";
    }
    // How often each line stands in any file `effects` of this user's workspace.
    [[nodiscard]] std::map<std::string, int> effects(const std::string& uid) const;
    // Milliseconds from exec to the first health answer of the last start().
    [[nodiscard]] double start_ms() const { return start_ms_; }

    // POST /api/agent/runs; throws unless 202.
    boost::json::object submit(
        const std::string& agent, const std::string& query, Headers headers = {}
    );
    // Polls until the run is terminal; throws after `limit`.
    boost::json::object wait_for_end(
        const std::string& run_id,
        const Headers& headers = {},
        std::chrono::milliseconds limit = std::chrono::seconds(60)
    );

  private:
    TempDir dir_;
    std::string extra_;
    std::string listening_;
    std::string provider_;
    std::string require_ = "namespaces";
    std::string binary_ = ars_binary();
    std::vector<std::string> wrapper_;   // starts the binary
    std::vector<std::string> workdirs_;  // of its threads in the real /home/gem/user-data
    std::unique_ptr<Process> process_;
    int port_ = 0;
    double start_ms_ = 0;
};

}  // namespace ars::tests
