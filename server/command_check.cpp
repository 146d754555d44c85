// `ars check`: the whole configuration is read as at start, and everything wrong with it is shown
// at once.
#include "server/config.hpp"
#include "server/options.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace ars::server {

int command_check(const CheckOptions& options) {
    LoadedConfig loaded;
    if (const int code = load_config_or_report("ars check", options.config, loaded); code != 0) {
        return code;
    }
    fmt::print(
        "ok: {} agents from files, {} providers, {} API keys\n",
        loaded.agents.size(),
        loaded.config.models.providers.size(),
        loaded.keys.size()
    );
    return 0;
}

}  // namespace ars::server
