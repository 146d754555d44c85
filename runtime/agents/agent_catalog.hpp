// The agents of the appliance and their history. Each change of an agent is a new version in the
// store, whoever made it: a person through the API, a file at a start or reload, or this program,
// which brings the built-in ones. The newest version of each, kept in memory, is what runs are
// started with.
//
// On the I/O thread, except where a comment says otherwise.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/agents/agent_version.hpp"
#include "runtime/store/store.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ars::agents {

// Versions that are kept of one agent; the oldest go first.
inline constexpr std::uint64_t kKeptVersions = 200;
// Agents in all: they are held in memory and listed in one answer.
inline constexpr std::size_t kMostAgents = 2000;

// What a start or reload changed, by slug.
struct FileSync {
    std::vector<std::string> added;
    std::vector<std::string> changed;
    std::vector<std::string> removed;
};

// Written in the same commit as the change it accompanies.
using Accompany = std::function<void(store::WriteTxn&, const AgentVersion&)>;
using AccompanySync = std::function<void(store::WriteTxn&, const FileSync&)>;

class AgentCatalog {
  public:
    AgentCatalog(store::Store& store, const base::Log& log) : store_(store), log_(log) {}

    [[nodiscard]] const AgentTable& table() const { return table_; }

    // Reads what is stored, and makes it agree with the files and the built-ins: a locked file
    // wins, an unlocked one and a built-in only seed what is missing, and an agent that a locked
    // file brought goes with its file. One commit, or none. At a start, before there is an I/O
    // thread.
    [[nodiscard]] base::Result<FileSync> load(std::vector<Agent> files);
    // The same while serving.
    base::Task<base::Result<FileSync>> reload(std::vector<Agent> files, AccompanySync accompany);

    // Errors: conflict "slug_taken", exhausted "too_many_agents", and those of the store.
    base::Task<base::Result<AgentPtr>> create(Agent agent, std::string uid, Accompany accompany);
    // `next` was made of `from`. Errors: conflict "agent_changed" when that is
    // not the newest any more, and those of the store.
    base::Task<base::Result<AgentPtr>> change(
        AgentPtr from, Agent next, VersionNote note, Accompany accompany
    );
    base::Task<base::Result<void>> remove(AgentPtr from, std::string uid, Accompany accompany);

    // Oldest first.
    [[nodiscard]] std::vector<AgentVersion> versions(const std::string& slug) const;
    [[nodiscard]] std::optional<AgentVersion> version(const std::string& slug, std::uint64_t number)
        const;

  private:
    void refresh_all();
    AgentPtr refresh(const std::string& slug);
    base::Task<base::Result<AgentPtr>> commit_version(
        const Agent& from, AgentVersion version, Accompany accompany
    );
    base::Task<base::Result<AgentPtr>> commit(
        std::string slug, std::function<base::Result<int>(store::WriteTxn&)> change
    );

    store::Store& store_;
    const base::Log& log_;
    AgentTable table_;
};

}  // namespace ars::agents
