// appliance.yaml and all it refers to: agents, scripts, keys. Read once at start; `ars check`, `ars
// serve` and `ars run` call the same function, so a configuration that checks is one that starts.
#pragma once

#include "base/limits.hpp"
#include "runtime/agents/agent_definition.hpp"
#include "runtime/models/scripted_script.hpp"
#include "runtime/people/directory.hpp"
#include "runtime/runs/attachments.hpp"
#include "runtime/runs/request_queue.hpp"
#include "server/policies.hpp"
#include "server/sandbox_config.hpp"

#include <chrono>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ars::server {

enum class ProviderType : std::uint8_t { openai, scripted };

struct ProviderConfig {
    ProviderType type = ProviderType::openai;
    // openai; "" = not given
    std::string base_url;
    std::string api_key_env;
    std::string api_key_file;
    std::string ca_file;
    std::chrono::milliseconds connect_timeout = base::limits::kModelConnectTimeout;
    std::chrono::milliseconds first_byte_timeout = base::limits::kModelFirstByteTimeout;
    std::chrono::milliseconds idle_timeout = base::limits::kModelIdleTimeout;
    std::chrono::milliseconds total_timeout = base::limits::kModelTotalTimeout;
    std::uint32_t retries = base::limits::kModelRetries;
    std::uint32_t max_output_tokens = 0;  // 0 = not sent
    // scripted
    std::string scripts;  // a path pattern

    // Made of the above when the configuration is loaded, because after privileges are dropped the
    // files may be out of reach. The key is "" when its variable is unset.
    std::string api_key;
    std::shared_ptr<const models::ScriptBook> script_book;
};

struct ServerConfig {
    std::string listen = "127.0.0.1:5050";
    std::chrono::milliseconds heartbeat = base::limits::kSseHeartbeat;
    std::chrono::milliseconds read_timeout = base::limits::kHttpReadTimeout;
    std::chrono::milliseconds write_timeout = base::limits::kHttpWriteTimeout;
    std::optional<people::RateLimit> rate_limit;  // of each key that has none of its own
};
struct MountsConfig {
    std::string users;  // default <data_dir>/users
};
struct ModelsConfig {
    std::string default_spec;
    std::map<std::string, ProviderConfig> providers;
};
struct ApiKeyConfig {
    std::string name;
    std::string uid;
    std::optional<std::string> key_env;
    std::optional<std::string> key_file;
    std::optional<std::string> sha256;
    std::optional<std::string> expires;  // "2027-01-31" or "2027-01-31T12:00:00Z"
    std::vector<std::string> act_for;    // uids, or "*"
    std::optional<people::RateLimit> rate_limit;
};
struct WebhookConfig {
    std::string name;
    std::string url;
    std::optional<std::string> secret_env;
    std::optional<std::string> secret_file;
    std::string ca_file;
    std::string uid;
    std::vector<std::string> statuses;
    std::chrono::milliseconds timeout{10'000};
    std::string secret;  // read when the configuration is loaded
};
struct RunsConfig {
    std::uint32_t max_concurrent = base::limits::kMaxConcurrentRuns;
    std::uint32_t max_children = base::limits::kMaxChildRuns;
    std::uint32_t max_queued = runs::kMaxQueuedRequests;
    bool children_outlive_root = false;
    std::uint32_t max_steps = base::limits::kMaxSteps;
    std::chrono::milliseconds timeout = base::limits::kRunTimeLimit;
    std::chrono::milliseconds event_retention = base::limits::kEventRetention;
    std::chrono::milliseconds attachment_expiry = runs::kAttachmentExpiry;
    // Of tools at work when the server is told to stop, so that the next boot knows what they did.
    std::chrono::milliseconds stop_grace = std::chrono::seconds(5);
};
struct StoreConfig {
    std::uint64_t max_size = base::limits::kStoreMaxSize;
};

// The file as it stands, paths made absolute.
struct Config {
    ServerConfig server;
    std::string data_dir = "/var/lib/ars";
    MountsConfig mounts;
    std::optional<std::vector<std::string>> agents;  // path patterns; absent = agents/*.yaml
    ModelsConfig models;
    std::vector<agents::User> users;
    std::vector<ApiKeyConfig> api_keys;
    std::vector<WebhookConfig> webhooks;
    SandboxConfig sandbox;
    RunsConfig runs;
    StoreConfig store;
};

struct LoadedConfig {
    std::string file;
    Config config;
    std::vector<agents::Agent> agents;  // of the agent files
    Policies policies;
    // Of every command, agents' own variables apart.
    std::map<std::string, std::string> environment;
    std::vector<people::DeclaredKey> keys;  // as sha256; the keys themselves are forgotten
    // What no tool may see: this file and the files with keys.
    std::vector<std::string> secret_files;
    std::vector<std::string> notes;  // not wrong, but worth a line on the screen

    // Who calls when there are no keys: the first of `users`, else "local", who may do everything.
    [[nodiscard]] agents::User local_user() const;
    // Users, keys and limits, as the directory of people takes them in.
    [[nodiscard]] people::Declaration declared_people() const;
};

// Every fault of appliance.yaml, of each agent file and of each script as "file:line: key: what;
// remedy".
using ConfigFaults = std::vector<std::string>;
[[nodiscard]] std::expected<LoadedConfig, ConfigFaults> load_config(const std::string& path);

// The same for a command: faults go to stderr one a line, then how many; notes go there too. 0, or
// the exit code. `who` is "ars serve".
[[nodiscard]] int load_config_or_report(
    const char* who, const std::string& path, LoadedConfig& out
);

// What --listen must fulfil too: without keys only loopback.
[[nodiscard]] base::Result<void> check_listen(std::string_view listen, bool has_keys);

// Names that agents may hold: built-in tools and those for sub-agents, providers, policies.
// Sub-agents are not among them.
[[nodiscard]] agents::KnownNames known_names(const LoadedConfig& config);

}  // namespace ars::server
