#include "server/policies.hpp"

namespace ars::server {

namespace {

sandbox::Policy make_policy(const std::string& name, const PolicyConfig& config) {
    sandbox::Policy policy;
    policy.name = name;
    policy.network = config.network;
    if (config.network == sandbox::Network::host) {
        policy.shared_network = sandbox::SharedNetwork();
    }
    if (config.ptrace) {
        policy.debug = sandbox::DebugOwnProcesses();
    }
    policy.allowed_hosts = config.allowed_hosts.value_or(std::vector<std::string>{});
    policy.processes = config.processes;
    policy.memory = config.memory.value_or(0);
    policy.file_size = config.file_size;
    policy.open_files = config.open_files;
    if (config.cpu) {
        policy.cpu_seconds =
            static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(*config.cpu).count()
            );
    }
    policy.tmp_size = config.tmp_size;
    return policy;
}

}  // namespace

Policies::Policies(const std::map<std::string, PolicyConfig>& own) {
    PolicyConfig debug;
    debug.ptrace = true;
    PolicyConfig build;
    build.network = sandbox::Network::host;
    std::map<std::string, PolicyConfig> all = own;
    all.insert({{"default", {}}, {"debug", debug}, {"build", build}, {"host", build}});
    for (const auto& [name, config] : all) {
        policies_[name] = make_policy(name, config);
    }
}

base::Result<sandbox::Policy> Policies::find(const std::string& name) const {
    if (const auto found = policies_.find(name); found != policies_.end()) {
        return found->second;
    }
    const std::string meant = base::closest_name(name, names());
    return base::fail(
        base::ErrorKind::invalid,
        "unknown_policy",
        "unknown policy \"" + name + "\"; " +
            (meant.empty() ? "" : "did you mean \"" + meant + "\"? ") +
            "there are: " + base::list_names(names())
    );
}

std::vector<std::string> Policies::names() const {
    std::vector<std::string> names;
    for (const auto& [name, policy] : policies_) {
        names.push_back(name);
    }
    return names;
}

}  // namespace ars::server
