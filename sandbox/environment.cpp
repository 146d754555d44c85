// What every tool finds in its environment: nothing of ours, nothing secret, nothing that waits for
// a person.
#include "sandbox/environment.hpp"

#include "fsmount/layout.hpp"
#include "sandbox/scope.hpp"

#include <cstdlib>

namespace ars::sandbox {

std::map<std::string, std::string> default_environment() {
    std::map<std::string, std::string> environment{
        {"HOME", "/home/gem"},
        {"USER", "gem"},
        {"LOGNAME", "gem"},
        {"SHELL", "/bin/bash"},
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"LANG", "C.UTF-8"},
        {"LC_ALL", "C.UTF-8"},
        {"TERM", "dumb"},
        // zsh writes here-documents below TMPPREFIX
        {"TMPDIR", "/tmp"},
        {"TMP", "/tmp"},
        {"TEMP", "/tmp"},
        {"TMPPREFIX", "/tmp/zsh"},
        {"XDG_CACHE_HOME", "/tmp/.cache"},
        {"XDG_RUNTIME_DIR", "/tmp"},
        {"PIP_CACHE_DIR", "/tmp/.cache/pip"},
        {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
        {"NPM_CONFIG_CACHE", "/tmp/.cache/npm"},
        {"PYTHONUNBUFFERED", "1"},
        {"PYTHONDONTWRITEBYTECODE", "1"},
        // no pagers, no prompts: nobody is there to answer
        {"PAGER", "cat"},
        {"GIT_PAGER", "cat"},
        {"GIT_TERMINAL_PROMPT", "0"},
        {"DEBIAN_FRONTEND", "noninteractive"},
        {"NO_COLOR", "1"},
    };
    if (const char* zone = std::getenv("TZ"); zone != nullptr && *zone != '\0') {
        environment["TZ"] = zone;
    }
    return environment;
}

std::map<std::string, std::string> placed(
    std::map<std::string, std::string> environment, const std::string& private_tmp
) {
    if (private_tmp.empty()) {
        return environment;
    }
    constexpr std::string_view kTmp = "/tmp";
    for (const auto& [name, value] : default_environment()) {
        const auto given = environment.find(name);
        if (given == environment.end() || given->second != value) {
            continue;
        }
        if (value == fsmount::kHome) {
            given->second = private_tmp + "/home";
        } else if (value.starts_with(kTmp)) {
            given->second = private_tmp + value.substr(kTmp.size());
        }
    }
    return environment;
}

}  // namespace ars::sandbox
