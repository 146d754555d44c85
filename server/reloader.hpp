// Reads the configuration again while the server runs: agent files, users and keys take effect at
// once, everything else is compared and named when it takes a restart. All or nothing: a fault
// anywhere leaves what is running as it is. Runs keep the agents that they started with.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/offload.hpp"
#include "base/result.hpp"
#include "runtime/agents/agent_catalog.hpp"
#include "runtime/people/caller.hpp"
#include "server/config.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ars::server {

struct ReloadReport {
    std::int64_t at_ms = 0;
    std::vector<std::string> faults;  // with one, nothing was changed
    agents::FileSync agents;
    std::vector<std::string> needs_restart;  // sections of appliance.yaml that differ
};

class Reloader {
  public:
    // `running` is what the server was started with; all parts outlive the reloader. `take_people`
    // puts users and keys in force, or changes nothing.
    Reloader(
        base::asio::any_io_executor executor,
        const LoadedConfig& running,
        agents::AgentCatalog& catalog,
        base::Offload& offload,
        const base::Log& log,
        std::function<base::Result<void>(people::Declaration)> take_people
    );

    // One at a time; who comes meanwhile waits. `caller` is for the audit log, without a uid for a
    // signal. Errors are the store's; faults stand in the report.
    base::Task<base::Result<ReloadReport>> reload(people::Caller caller);
    // The latest, whoever asked for it; nothing before the first.
    [[nodiscard]] const std::optional<ReloadReport>& last() const { return last_; }

  private:
    base::Task<base::Result<ReloadReport>> read_and_apply(people::Caller caller);
    void check_names(const LoadedConfig& loaded, std::vector<std::string>& faults) const;
    [[nodiscard]] std::vector<std::string> changed_sections(const LoadedConfig& loaded) const;

    const LoadedConfig& running_;
    agents::AgentCatalog& catalog_;
    base::Offload& offload_;
    const base::Log& log_;
    std::function<base::Result<void>(people::Declaration)> take_people_;
    bool busy_ = false;
    base::Notifier idle_;
    people::Declaration people_;  // in force
    std::optional<ReloadReport> last_;
};

}  // namespace ars::server
