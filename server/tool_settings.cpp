#include "server/tool_settings.hpp"

#include "server/config.hpp"
#include "server/options.hpp"

#include <cstdio>

namespace ars::server {

int load_tool_settings(
    const char* who,
    const std::string& config,
    const std::string& policy,
    std::optional<sandbox::IoBackend> io,
    ToolSettings& out
) {
    Policies policies;
    if (!config.empty()) {
        LoadedConfig loaded;
        if (const int code = load_config_or_report(who, config, loaded); code != 0) {
            return code;
        }
        policies = std::move(loaded.policies);
        out.environment = std::move(loaded.environment);
        out.sandbox.backend = loaded.config.sandbox.io;
        out.plan.data_dir = loaded.config.data_dir;
        out.plan.users_dir = loaded.config.mounts.users;
        out.plan.hidden = std::move(loaded.secret_files);
    }
    auto found = policies.find(policy);
    if (!found) {
        std::fprintf(stderr, "%s: %s\n", who, found.error().message.c_str());
        return kExitUsage;
    }
    out.policy = std::move(*found);
    out.sandbox.expected = out.policy.network;
    out.plan.tmp_size = out.policy.tmp_size;
    out.sandbox.backend = io.value_or(out.sandbox.backend);
    return 0;
}

}  // namespace ars::server
