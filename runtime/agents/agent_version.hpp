// One version of an agent as it is stored: under "agent/<slug>/<version>", JSON text.
#pragma once

#include "runtime/agents/agent.hpp"
#include "runtime/store/store.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ars::agents {

enum class VersionAction : std::uint8_t {
    created,
    updated,
    rolled_back,
    deleted,
    seeded,     // by a built-in or an unlocked file, because it was missing
    from_file,  // a locked file said something new
    file_gone,  // the locked file that brought it is gone
};
[[nodiscard]] std::string_view to_string(VersionAction action);

struct VersionNote {
    VersionAction action = VersionAction::created;
    std::string uid;                  // who; "" = this program
    std::uint64_t restored_from = 0;  // of rolled_back: the version it repeats
};

struct AgentVersion {
    std::string slug;
    std::uint64_t number = 0;
    VersionNote note;
    bool locked = false;     // by a file
    std::string source;      // that file
    std::string created_by;  // of the agent
    std::int64_t created_ms = 0;
    std::int64_t at_ms = 0;  // of the version
    std::string digest;
    // definition_of() the agent; nothing when it is not there any more.
    std::optional<boost::json::object> definition;

    [[nodiscard]] bool alive() const { return definition.has_value(); }
};

[[nodiscard]] std::string version_key(std::string_view slug, std::uint64_t number);
// Of all versions of the agent.
[[nodiscard]] std::string version_prefix(std::string_view slug);
[[nodiscard]] std::string encode_version(const AgentVersion& version);
// Nothing when the bytes are no version: damaged, or written by a newer program.
[[nodiscard]] std::optional<AgentVersion> decode_version(std::string_view bytes);

[[nodiscard]] std::optional<AgentVersion> newest_version(
    const store::ReadTxn& txn, std::string_view slug
);

// The agent of a version that is alive. Nothing when its definition is not valid here.
[[nodiscard]] std::optional<Agent> agent_of(const AgentVersion& version);

}  // namespace ars::agents
