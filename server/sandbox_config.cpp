#include "server/sandbox_config.hpp"

#include "server/config.hpp"
#include "server/config_files.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ars::server {

namespace {

using base::FieldPlace;
using base::Fields;

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kDay = 24 * 3600 * kSecond;
constexpr std::int64_t kKiB = base::limits::kKiB;
constexpr std::int64_t kMiB = base::limits::kMiB;
constexpr std::int64_t kVariables = 128;
constexpr std::int64_t kPolicies = 64;
constexpr std::int64_t kAllowedHosts = 1000;

std::string check_policy_name(std::string_view name) {
    const bool fits =
        !name.empty() && name.size() <= 64 &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
    return fits ? "" : "a policy's name is made of lower-case letters, digits, \"_\" and \"-\"";
}

Fields<PolicyConfig> permission_fields() {
    return Fields<PolicyConfig>{}
        .choice(
            "network",
            &PolicyConfig::network,
            {{"none", sandbox::Network::none},
             {"allowlist", sandbox::Network::allowlist},
             {"host", sandbox::Network::host}},
            {.doc = "Loopback only; allowed_hosts through a proxy; or the server's own network."}
        )
        .texts(
            "allowed_hosts",
            &PolicyConfig::allowed_hosts,
            {.max = kAllowedHosts, .doc = "allowlist: names that may be reached; [] allows none."}
        )
        .boolean(
            "ptrace", &PolicyConfig::ptrace, {.doc = "Whether debuggers work, within the scope."}
        );
}

const Fields<PolicyConfig>& policy_fields() {
    static const Fields<PolicyConfig> fields =
        permission_fields()
            .integer(
                "processes",
                &PolicyConfig::processes,
                {.min = 8, .max = 100'000, .doc = "Processes and threads of a scope."}
            )
            .size(
                "memory",
                &PolicyConfig::memory,
                {.min = 16 * kMiB, .doc = "Of a scope's processes together; absent: no limit."}
            )
            .size(
                "file_size",
                &PolicyConfig::file_size,
                {.min = 4 * kKiB, .doc = "The largest file a process may write."}
            )
            .integer(
                "open_files",
                &PolicyConfig::open_files,
                {.min = 32, .max = 1 << 20, .doc = "Open files of a process."}
            )
            .duration(
                "cpu",
                &PolicyConfig::cpu,
                {.min = kSecond, .max = 30 * kDay, .doc = "CPU time of a process; absent: no limit."
                }
            )
            .size(
                "tmp_size",
                &PolicyConfig::tmp_size,
                {.min = kMiB, .doc = "Of /tmp, /dev/shm and /home/gem together."}
            );
    return fields;
}

const Fields<ToolVariables>& variable_fields() {
    static const Fields<ToolVariables> fields =
        Fields<ToolVariables>{}
            .texts(
                "pass",
                &ToolVariables::pass,
                {.max = kVariables,
                 .check = base::check_variable_name,
                 .doc = "Variables of the server that tools see too, by name."}
            )
            .variables(
                "set",
                &ToolVariables::set,
                {.max = kVariables, .doc = "Variables with their values, over `pass`."}
            );
    return fields;
}

// The variables that hold keys of ours, and what of the configuration says so.
std::map<std::string, std::string> secret_variables(const Config& config) {
    std::map<std::string, std::string> used_by{{"OPENAI_API_KEY", "a model provider"}};
    for (const auto& [name, provider] : config.models.providers) {
        used_by[provider.api_key_env] = "models.providers." + name;
    }
    for (const ApiKeyConfig& key : config.api_keys) {
        used_by[key.key_env.value_or("")] = "the API key \"" + key.name + "\"";
    }
    return used_by;
}

void check_passed(const Config& config, const FieldPlace& place) {
    const auto secrets = secret_variables(config);
    const std::vector<std::string>& names = config.sandbox.environment.pass;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto secret = secrets.find(names[i]);
        if (!names[i].empty() && secret != secrets.end()) {
            place.at(i).fault(
                fmt::format("{} holds the key of {}", names[i], secret->second),
                "no tool may see it: remove the name"
            );
        }
    }
}

void check_network(const PolicyConfig& policy, const Config& config, const FieldPlace& place) {
    const bool listed = policy.network == sandbox::Network::allowlist;
    if (listed && !policy.allowed_hosts) {
        place.at("allowed_hosts")
            .fault("is missing", "name the hosts, or write allowed_hosts: [] to allow none");
    }
    if (!listed && policy.allowed_hosts) {
        place.at("allowed_hosts")
            .fault(
                "means nothing without an allow-list", "write network: allowlist, or remove the key"
            );
    }
    const std::vector<std::string> hosts =
        policy.allowed_hosts.value_or(std::vector<std::string>());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        sandbox::Policy alone;
        alone.network = sandbox::Network::allowlist;
        alone.allowed_hosts = {hosts[i]};
        if (const auto sound = sandbox::check_policy(alone); !sound) {
            const std::string& text = sound.error().message;  // "what; remedy"
            const std::size_t cut = std::min(text.find("; "), text.size());
            place.at("allowed_hosts")
                .at(i)
                .fault(text.substr(0, cut), text.substr(std::min(cut + 2, text.size())));
        }
    }
    if (listed && config.sandbox.require == sandbox::Tier::landlock) {
        place.at("network").fault(
            "the landlock tier has no allow-list: tools have no network of their own there",
            "write sandbox.require: namespaces, or network: none or host"
        );
    }
    if (policy.network == sandbox::Network::host && config.api_keys.empty()) {
        fault_open_api(place.at("network"));
    }
}

}  // namespace

const Fields<SandboxConfig>& sandbox_fields() {
    static const Fields<SandboxConfig> fields =
        Fields<SandboxConfig>{}
            .choice(
                "require",
                &SandboxConfig::require,
                {{"namespaces", sandbox::Tier::namespaces}, {"landlock", sandbox::Tier::landlock}},
                {.doc = "The least tier with which the server starts."}
            )
            .boolean(
                "require_fresh_proc",
                &SandboxConfig::require_fresh_proc,
                {.doc = "Refuse to start where a scope can't have its own /proc."}
            )
            .duration(
                "idle_release",
                &SandboxConfig::idle_release,
                {.min = kSecond, .max = 30 * kDay, .doc = "An unused scope is released after this."}
            )
            .choice(
                "tool_approval_mode",
                &SandboxConfig::tool_approval_mode,
                {{"default", agents::ApprovalMode::ask},
                 {"always_trust", agents::ApprovalMode::always_trust}},
                {.doc = "For agents that don't say: a person approves, or nobody needs to."}
            )
            .choice(
                "io",
                &SandboxConfig::io,
                {{"auto", sandbox::IoBackend::automatic},
                 {"io_uring", sandbox::IoBackend::io_uring},
                 {"epoll", sandbox::IoBackend::epoll}},
                {.doc = "How tools' pipes are read; auto takes io_uring where it works."}
            )
            .map(
                "policies",
                &SandboxConfig::policies,
                policy_fields(),
                {.max = kPolicies,
                 .check = check_policy_name,
                 .doc = "What tools may do, by name; a built-in name takes its place."}
            )
            .object("environment", &SandboxConfig::environment, variable_fields());
    return fields;
}

void fault_open_api(const FieldPlace& place) {
    place.fault(
        "tools with the server's network could call this API, which demands no key",
        "add api_keys, or choose a policy with network: none or allowlist"
    );
}

void check_sandbox(const Config& config, const FieldPlace& place) {
    for (const auto& [name, policy] : config.sandbox.policies) {
        check_network(policy, config, place.at("policies").at(name));
    }
    check_passed(config, place.at("environment").at("pass"));
}

std::map<std::string, std::string> tool_environment(const ToolVariables& variables) {
    auto environment = sandbox::default_environment();
    for (const std::string& name : variables.pass) {
        if (auto value = environment_variable(name)) {
            environment[name] = std::move(*value);
        }
    }
    for (const auto& [name, value] : variables.set) {
        environment[name] = value;
    }
    return environment;
}

}  // namespace ars::server
