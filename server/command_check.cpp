// `ars check`: the whole configuration is read as at start, and everything wrong with it is shown
// at once.
#include "runtime/agents/agent_definition.hpp"
#include "server/config.hpp"
#include "server/options.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <cstdio>

namespace ars::server {

int command_check(const CheckOptions& options) {
    if (options.agent_schema) {
        boost::json::object schema = agents::agent_file_fields().schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
        schema["title"] = "An agent of ars";
        fmt::print("{}\n", boost::json::serialize(schema));
        return 0;
    }
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
