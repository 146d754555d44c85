#include "runtime/agents/agent_version.hpp"

#include "base/fields.hpp"
#include "runtime/agents/agent_definition.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <utility>

namespace ars::agents {

namespace {

namespace json = boost::json;

constexpr std::int64_t kFormat = 1;  // rises when an older program must not read the record

constexpr std::pair<std::string_view, VersionAction> kActions[] = {
    {"created", VersionAction::created},
    {"updated", VersionAction::updated},
    {"rolled_back", VersionAction::rolled_back},
    {"deleted", VersionAction::deleted},
    {"seeded", VersionAction::seeded},
    {"from_file", VersionAction::from_file},
    {"file_gone", VersionAction::file_gone},
};

struct Stored {
    std::int64_t format = 0;
    std::string slug;
    std::uint64_t version = 0;
    VersionAction action = VersionAction::created;
    std::string uid;
    std::uint64_t restored_from = 0;
    bool locked = false;
    std::string source;
    std::string created_by;
    std::int64_t created_ms = 0;
    std::int64_t at_ms = 0;
    std::string digest;
    std::optional<json::object> definition;
};

const base::Fields<Stored>& stored_fields() {
    static const auto fields =
        base::Fields<Stored>{}
            .integer("format", &Stored::format, {.required = true, .min = kFormat, .max = kFormat})
            .text("slug", &Stored::slug, {.required = true})
            .integer("version", &Stored::version, {.required = true, .min = 1})
            .choice(
                "action",
                &Stored::action,
                {kActions[0],
                 kActions[1],
                 kActions[2],
                 kActions[3],
                 kActions[4],
                 kActions[5],
                 kActions[6]},
                {.required = true}
            )
            .text("uid", &Stored::uid)
            .integer("restored_from", &Stored::restored_from)
            .boolean("locked", &Stored::locked)
            .text("source", &Stored::source)
            .text("created_by", &Stored::created_by)
            .integer("created_ms", &Stored::created_ms)
            .integer("at_ms", &Stored::at_ms)
            .text("digest", &Stored::digest)
            .raw("definition", &Stored::definition);
    return fields;
}

}  // namespace

std::string_view to_string(VersionAction action) {
    for (const auto& [name, value] : kActions) {
        if (value == action) {
            return name;
        }
    }
    return "";
}

std::string version_prefix(std::string_view slug) { return fmt::format("agent/{}/", slug); }

std::string version_key(std::string_view slug, std::uint64_t number) {
    return fmt::format("agent/{}/{:020}", slug, number);  // keys sort as text
}

std::string encode_version(const AgentVersion& version) {
    return json::serialize(stored_fields().encode(
        {kFormat,
         version.slug,
         version.number,
         version.note.action,
         version.note.uid,
         version.note.restored_from,
         version.locked,
         version.source,
         version.created_by,
         version.created_ms,
         version.at_ms,
         version.digest,
         version.definition}
    ));
}

std::optional<AgentVersion> decode_version(std::string_view bytes) {
    boost::system::error_code failed;
    const json::value value = json::parse(bytes, failed);
    Stored stored;
    if (failed || !stored_fields().decode(value, stored).empty()) {
        return std::nullopt;
    }
    return AgentVersion{
        std::move(stored.slug),
        stored.version,
        {stored.action, std::move(stored.uid), stored.restored_from},
        stored.locked,
        std::move(stored.source),
        std::move(stored.created_by),
        stored.created_ms,
        stored.at_ms,
        std::move(stored.digest),
        std::move(stored.definition)
    };
}

std::optional<AgentVersion> newest_version(const store::ReadTxn& txn, std::string_view slug) {
    const auto entry = txn.last_entry(version_prefix(slug));
    return entry ? decode_version(entry->value) : std::nullopt;
}

std::optional<Agent> agent_of(const AgentVersion& version) {
    if (!version.alive()) {
        return std::nullopt;
    }
    auto parsed = parse_definition(*version.definition, {});
    if (!parsed) {
        return std::nullopt;
    }
    Agent agent = std::move(*parsed);
    agent.lock = version.locked;
    agent.source = version.source;
    agent.version = version.number;
    agent.digest = version.digest;
    agent.created_by = version.created_by;
    agent.updated_by = version.note.uid;
    agent.created_ms = version.created_ms;
    agent.updated_ms = version.at_ms;
    return agent;
}

}  // namespace ars::agents
