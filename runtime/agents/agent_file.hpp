// Agent files: YAML, one agent each.
#pragma once

#include "base/document.hpp"
#include "base/result.hpp"
#include "runtime/agents/agent_definition.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace ars::agents {

struct AgentFile {
    Agent agent;
    std::vector<base::Fault> faults;  // agent is usable only when empty
    base::Document document;
};
// Reads one: every fault of it at once, with file, line, key and remedy. Errors: it can't be read,
// or is no YAML.
[[nodiscard]] base::Result<AgentFile> load_agent_file(
    const std::string& path, const KnownNames& known
);
// The same of a text; `file` is its name in messages.
[[nodiscard]] base::Result<AgentFile> parse_agent_file(
    std::string file, std::string_view text, const KnownNames& known
);

}  // namespace ars::agents
