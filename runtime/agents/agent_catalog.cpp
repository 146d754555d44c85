#include "runtime/agents/agent_catalog.hpp"

#include "base/clock.hpp"
#include "runtime/agents/agent_definition.hpp"

#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace ars::agents {

namespace {

using base::ErrorKind;
using base::fail;

constexpr std::string_view kAllAgents = "agent/";
// Of a deleted agent: that it is, and what it was.
constexpr std::uint64_t kKeptOfDeleted = 2;

// The number that the next version gets, also when the newest record can't be read.
std::uint64_t next_number(const store::ReadTxn& txn, std::string_view slug) {
    const std::string prefix = version_prefix(slug);
    const auto newest = txn.last_entry(prefix);
    std::uint64_t number = 0;
    if (newest) {
        std::from_chars(
            newest->key.data() + prefix.size(), newest->key.data() + newest->key.size(), number
        );
    }
    return number + 1;
}

// The newest version of every agent that there is or was.
std::vector<AgentVersion> newest_versions(const store::ReadTxn& txn, const base::Log& log) {
    std::vector<AgentVersion> out;
    std::string after;
    for (;;) {
        const auto next = txn.entries(kAllAgents, after, 1);
        if (next.empty()) {
            return out;
        }
        const std::string& key = next.front().key;
        const std::string slug = key.substr(kAllAgents.size(), key.rfind('/') - kAllAgents.size());
        if (auto version = newest_version(txn, slug)) {
            out.push_back(*std::move(version));
        } else {
            log.error("agent_unreadable", {{"slug", slug}});
        }
        after = version_prefix(slug) + '\xff';
    }
}

void put_version(store::WriteTxn& txn, AgentVersion& version) {
    version.number = next_number(txn, version.slug);
    version.at_ms = base::now_ms();
    txn.put_entry(version_key(version.slug, version.number), encode_version(version));
    const std::uint64_t kept = version.alive() ? kKeptVersions : kKeptOfDeleted;
    const std::string prefix = version_prefix(version.slug);
    for (const auto& entry : txn.entries(prefix)) {
        if (entry.key >
            version_key(version.slug, version.number - std::min(kept, version.number))) {
            break;
        }
        txn.erase_entry(entry.key);
    }
}

AgentVersion version_of(const Agent& agent, VersionNote note) {
    AgentVersion out;
    out.slug = agent.slug;
    out.note = std::move(note);
    out.locked = agent.lock;
    out.source = agent.source;
    out.created_by = agent.created_by;
    out.created_ms = agent.created_ms != 0 ? agent.created_ms : base::now_ms();
    out.definition = definition_of(agent);
    out.digest = definition_digest(*out.definition);
    return out;
}

// What stands in files and in this program beside what is stored, and the versions that make them
// agree.
class Sync {
  public:
    Sync(store::WriteTxn& txn, const std::vector<Agent>& files, const base::Log& log) : txn_(txn) {
        for (AgentVersion& version : newest_versions(txn, log)) {
            stored_.emplace(version.slug, std::move(version));
        }
        for (const Agent& file : files) {
            has_file_.insert(file.slug);
            file.lock ? follow(file) : seed(file);
        }
        for (const Agent& built_in : built_in_agents()) {
            keep_built_in(built_in);
        }
        for (const auto& [slug, version] : stored_) {
            if (!version.alive() || has_file_.contains(slug) || is_new_.contains(slug)) {
                continue;
            }
            if (!version.locked && !version.source.empty()) {
                mark(version, false, "");
            } else if (version.locked) {
                AgentVersion gone = version;
                gone.note = {VersionAction::file_gone, {}, 0};
                gone.locked = false;
                gone.definition.reset();
                gone.digest.clear();
                write(std::move(gone));
            }
        }
    }
    [[nodiscard]] FileSync& result() { return result_; }

  private:
    [[nodiscard]] const AgentVersion* alive(const std::string& slug) const {
        const auto found = stored_.find(slug);
        return found != stored_.end() && found->second.alive() ? &found->second : nullptr;
    }

    // A locked file.
    void follow(const Agent& file) {
        AgentVersion wanted = version_of(file, {VersionAction::from_file, {}, 0});
        const AgentVersion* now = alive(file.slug);
        if (now == nullptr) {
            write(std::move(wanted));
        } else if (now->digest != wanted.digest) {
            wanted.created_by = now->created_by;
            wanted.created_ms = now->created_ms;
            write(std::move(wanted));
        } else if (!now->locked || now->source != wanted.source) {
            mark(*now, true, wanted.source);
        }
    }

    // An unlocked file: only when there is nothing.
    void seed(const Agent& file) {
        const AgentVersion* now = alive(file.slug);
        if (now == nullptr) {
            write(version_of(file, {VersionAction::seeded, {}, 0}));
        } else if (now->locked || now->source != file.source) {
            mark(*now, false, file.source);
        }
    }

    void keep_built_in(const Agent& built_in) {
        const AgentVersion* now = alive(built_in.slug);
        if (has_file_.contains(built_in.slug)) {
            return;
        }
        if (now == nullptr || now->locked) {
            write(version_of(built_in, {VersionAction::seeded, {}, 0}));
        } else if (auto agent = agent_of(*now); agent && agent->description.empty()) {
            agent->description = built_in.description;
            write(version_of(*agent, {VersionAction::seeded, {}, 0}));
        }
    }

    void write(AgentVersion version) {
        const bool was_there = alive(version.slug) != nullptr;
        (!version.alive() ? result_.removed
         : was_there      ? result_.changed
                          : result_.added)
            .push_back(version.slug);
        is_new_.insert(version.slug);
        put_version(txn_, version);
    }

    // Who decides about an agent is no change of it.
    void mark(AgentVersion version, bool locked, const std::string& source) {
        version.locked = locked;
        version.source = source;
        is_new_.insert(version.slug);
        txn_.put_entry(version_key(version.slug, version.number), encode_version(version));
    }

    store::WriteTxn& txn_;
    std::map<std::string, AgentVersion> stored_;
    std::set<std::string> has_file_;
    std::set<std::string> is_new_;
    FileSync result_;
};

}  // namespace

void AgentCatalog::refresh_all() {
    AgentTable table;
    store_.read([&](const store::ReadTxn& txn) {
        for (const AgentVersion& version : newest_versions(txn, log_)) {
            if (auto agent = agent_of(version)) {
                table.put(*std::move(agent));
            } else if (version.alive()) {
                log_.error("agent_invalid", {{"slug", version.slug}, {"version", version.number}});
            }
        }
        return 0;
    });
    table_ = std::move(table);
}

// What is newest when a commit's caller goes on may be somebody else's by then.
AgentPtr AgentCatalog::refresh(const std::string& slug) {
    const auto newest =
        store_.read([&](const store::ReadTxn& txn) { return newest_version(txn, slug); });
    if (auto agent = newest ? agent_of(*newest) : std::nullopt) {
        table_.put(*std::move(agent));
    } else {
        table_.erase(slug);
    }
    return table_.at(slug);
}

base::Result<FileSync> AgentCatalog::load(std::vector<Agent> files) {
    FileSync out;
    const auto written = store_.write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        out = std::move(Sync(txn, files, log_).result());
        return {};
    });
    if (!written) {
        return std::unexpected(written.error());
    }
    refresh_all();
    return out;
}

base::Task<base::Result<FileSync>> AgentCatalog::reload(
    std::vector<Agent> files, AccompanySync accompany
) {
    std::function<base::Result<FileSync>(store::WriteTxn&)> change =
        [files = std::move(files),
         accompany = std::move(accompany),
         log = &log_](store::WriteTxn& txn) -> base::Result<FileSync> {
        Sync sync(txn, files, *log);
        accompany(txn, sync.result());
        return std::move(sync.result());
    };
    auto done = co_await store_.write<FileSync>(std::move(change));
    if (done) {
        refresh_all();
    }
    co_return done;
}

base::Task<base::Result<AgentPtr>> AgentCatalog::create(
    Agent agent, std::string uid, Accompany accompany
) {
    if (table_.all().size() >= kMostAgents) {
        co_return fail(
            ErrorKind::exhausted,
            "too_many_agents",
            "there are " + std::to_string(kMostAgents) + " agents already; delete some"
        );
    }
    const std::string slug = agent.slug;
    agent.created_by = uid;
    AgentVersion version = version_of(agent, {VersionAction::created, std::move(uid), 0});
    std::function<base::Result<int>(store::WriteTxn&)> change =
        [version = std::move(version),
         accompany = std::move(accompany)](store::WriteTxn& txn) mutable -> base::Result<int> {
        const auto newest = newest_version(txn, version.slug);
        if (newest && newest->alive()) {
            return fail(
                ErrorKind::conflict,
                "slug_taken",
                "there is an agent \"" + version.slug + "\" already; choose another slug"
            );
        }
        put_version(txn, version);
        accompany(txn, version);
        return 0;
    };
    co_return (co_await commit(slug, std::move(change)));
}

base::Task<base::Result<AgentPtr>> AgentCatalog::change(
    AgentPtr from, Agent next, VersionNote note, Accompany accompany
) {
    const std::string slug = from->slug;
    next.lock = from->lock;
    next.source = from->source;
    next.created_by = from->created_by;
    next.created_ms = from->created_ms;
    co_return (
        co_await commit_version(*from, version_of(next, std::move(note)), std::move(accompany))
    );
}

base::Task<base::Result<void>> AgentCatalog::remove(
    AgentPtr from, std::string uid, Accompany accompany
) {
    AgentVersion gone = version_of(*from, {VersionAction::deleted, std::move(uid), 0});
    gone.definition.reset();
    gone.digest.clear();
    const auto done = co_await commit_version(*from, std::move(gone), std::move(accompany));
    if (!done) {
        co_return std::unexpected(done.error());
    }
    co_return base::Result<void>{};
}

base::Task<base::Result<AgentPtr>> AgentCatalog::commit_version(
    const Agent& from, AgentVersion version, Accompany accompany
) {
    const std::string slug = version.slug;
    std::function<base::Result<int>(store::WriteTxn&)> change =
        [version = std::move(version),
         accompany = std::move(accompany),
         expected = from.version](store::WriteTxn& txn) mutable -> base::Result<int> {
        const auto newest = newest_version(txn, version.slug);
        if (!newest || !newest->alive() || newest->number != expected) {
            return fail(
                ErrorKind::conflict,
                "agent_changed",
                "somebody changed the agent \"" + version.slug +
                    "\" meanwhile; read it again and repeat the change"
            );
        }
        put_version(txn, version);
        accompany(txn, version);
        return 0;
    };
    co_return (co_await commit(slug, std::move(change)));
}

base::Task<base::Result<AgentPtr>> AgentCatalog::commit(
    std::string slug, std::function<base::Result<int>(store::WriteTxn&)> change
) {
    const auto done = co_await store_.write<int>(std::move(change));
    if (!done) {
        co_return std::unexpected(done.error());
    }
    co_return refresh(slug);
}

std::vector<AgentVersion> AgentCatalog::versions(const std::string& slug) const {
    return store_.read([&](const store::ReadTxn& txn) {
        std::vector<AgentVersion> out;
        for (const auto& entry : txn.entries(version_prefix(slug))) {
            if (auto version = decode_version(entry.value)) {
                out.push_back(*std::move(version));
            }
        }
        return out;
    });
}

std::optional<AgentVersion> AgentCatalog::version(const std::string& slug, std::uint64_t number)
    const {
    const auto bytes = store_.read([&](const store::ReadTxn& txn) {
        return txn.entry(version_key(slug, number));
    });
    return bytes ? decode_version(*bytes) : std::nullopt;
}

}  // namespace ars::agents
