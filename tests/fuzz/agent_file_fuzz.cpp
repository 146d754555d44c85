// Any text as an agent file: an agent, or faults that name their line. What is accepted must
// survive being stored, with a run and as a version, and read again.
#include "runtime/agents/agent_file.hpp"
#include "runtime/agents/agent_version.hpp"
#include "runtime/agents/slug.hpp"
#include "tests/fuzz/scratch.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace ars;

// YAML has more ways to nest than JSON has: what came of them must fit where JSON is read.
int depth_of(const boost::json::value& value) {
    int below = 0;
    if (const auto* list = value.if_array()) {
        for (const auto& item : *list) {
            below = std::max(below, depth_of(item));
        }
    } else if (const auto* object = value.if_object()) {
        for (const auto& entry : *object) {
            below = std::max(below, depth_of(entry.value()));
        }
    } else {
        return 0;
    }
    return below + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const agents::KnownNames known{
        .tools = {"execute", "read_file", "write_file"},
        .providers = {"demo", "main"},
        .policies = {"default", "open"},
    };
    const auto file =
        agents::parse_agent_file("a.yaml", {reinterpret_cast<const char*>(data), size}, known);
    if (!file) {
        require(file.error().code == "bad_yaml" && file.error().message.starts_with("a.yaml:"));
        return 0;
    }
    require(depth_of(file->document.value) <= base::limits::kJsonDepth);
    for (const base::Fault& fault : file->faults) {
        require(file->document.describe(fault).starts_with("a.yaml:"));
    }
    if (!file->faults.empty()) {
        return 0;
    }
    require(agents::check_slug(file->agent.slug).empty());
    const boost::json::object stored = agents::context_to_json(file->agent.context);
    const auto read = agents::parse_context(stored);
    require(read.has_value() && agents::context_to_json(*read) == stored);
    agents::AgentVersion version;
    version.slug = file->agent.slug;
    version.number = 1;
    version.definition = agents::definition_of(file->agent);
    version.digest = agents::definition_digest(*version.definition);
    const auto again = agents::decode_version(agents::encode_version(version));
    const auto agent = again ? agents::agent_of(*again) : std::nullopt;
    require(agent.has_value());
    require(agents::definition_digest(agents::definition_of(*agent)) == version.digest);
    return 0;
}
