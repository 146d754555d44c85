#include "sandbox/proxy_environment.hpp"

#include "sandbox/protocol.hpp"

#include <algorithm>
#include <utility>

namespace ars::sandbox {

void add_proxy_environment(std::vector<std::string>& environment) {
    const std::string port = std::to_string(kProxyPort);
    const std::string url = "http://127.0.0.1:" + port;
    const std::string direct = "localhost,127.0.0.1,::1";
    const std::pair<std::string, std::string> variables[] = {
        // curl, git, wget, Python, Go: some read the upper, some the lower case
        {"HTTP_PROXY", url},
        {"http_proxy", url},
        {"HTTPS_PROXY", url},
        {"https_proxy", url},
        {"ALL_PROXY", url},
        {"all_proxy", url},
        {"NO_PROXY", direct},
        {"no_proxy", direct},
        {"PIP_PROXY", url},
        {"CARGO_HTTP_PROXY", url},
        {"NODE_USE_ENV_PROXY", "1"},
        {"npm_config_proxy", url},
        {"npm_config_https_proxy", url},
        {"npm_config_noproxy", direct},
        {"JAVA_TOOL_OPTIONS",
         "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=" + port +
             " -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=" + port +
             " -Dhttp.nonProxyHosts=localhost|127.*|[::1]"},
    };
    for (const auto& [name, value] : variables) {
        const std::string start = name + "=";
        const auto is_set = [&start](const std::string& entry) { return entry.starts_with(start); };
        if (std::ranges::none_of(environment, is_set)) {
            environment.push_back(start + value);
        }
    }
}

}  // namespace ars::sandbox
