#include "runtime/agents/agent_file.hpp"

#include <utility>

namespace ars::agents {

namespace {

base::Result<AgentFile> read_agent(base::Result<base::Document> document, const KnownNames& known) {
    if (!document) {
        return std::unexpected(std::move(document.error()));
    }
    AgentFile out{{}, {}, std::move(*document)};
    AgentFields fields;
    out.faults = agent_file_fields().decode(out.document.value, fields);
    const bool lock = fields.lock;
    // A file without share_config is the operator's word for the whole appliance, so everybody may
    // read it.
    const DefinitionRules rules{
        .known = &known, .default_share = {.read_scope = AccessScope{}, .manage_scope = {}}
    };
    out.agent = make_agent(
        std::move(fields), out.document.value, rules, base::FieldPlace{{}, out.faults, {}}
    );
    out.agent.lock = lock;
    out.agent.source = out.document.file;
    return out;
}

}  // namespace

base::Result<AgentFile> load_agent_file(const std::string& path, const KnownNames& known) {
    return read_agent(base::load_yaml(path), known);
}

base::Result<AgentFile> parse_agent_file(
    std::string file, std::string_view text, const KnownNames& known
) {
    return read_agent(base::parse_yaml(std::move(file), text), known);
}

}  // namespace ars::agents
