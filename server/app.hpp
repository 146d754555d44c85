// The composition root: builds every object in dependency order and destroys it in reverse. `ars
// serve` and `ars run` are the same app with and without a listener.
#pragma once

#include "base/log.hpp"
#include "base/offload.hpp"
#include "base/result.hpp"
#include "fsmount/mount_plan.hpp"
#include "fsmount/workspace.hpp"
#include "runtime/agents/agent_catalog.hpp"
#include "runtime/models/model_registry.hpp"
#include "runtime/people/directory.hpp"
#include "runtime/runs/attachment_service.hpp"
#include "runtime/runs/event_retention.hpp"
#include "runtime/runs/run_service.hpp"
#include "runtime/store/store.hpp"
#include "sandbox/scope.hpp"
#include "server/config.hpp"
#include "server/file_transfer.hpp"
#include "server/reloader.hpp"
#include "server/webhooks.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ars::server {

struct AppOptions {
    std::string data_dir;   // store, skills projections
    std::string users_dir;  // workspaces
    // `ars run --workdir`: everybody's files are this directory, and it is the current one.
    std::shared_ptr<fsmount::Workspace> workspace;
    std::optional<sandbox::IoBackend> io;  // instead of the configuration's
    sandbox::Tier tier = sandbox::Tier::namespaces;
    sandbox::MakeCgroup cgroups{};  // of a server that has cgroups for its scopes
    base::LogLevel log_level = base::LogLevel::info;
    bool webhooks = false;  // whether the configured ones are told of ends
};

class App {
  public:
    // Call after privileges are dropped: opens the store, sockets and rings.
    [[nodiscard]] static base::Result<std::unique_ptr<App>> build(
        LoadedConfig config, AppOptions options
    );
    App(const App&) = delete;
    App& operator=(const App&) = delete;
    ~App();

    [[nodiscard]] base::asio::io_context& io() { return io_; }
    [[nodiscard]] runs::RunService& runs() { return *runs_; }
    [[nodiscard]] people::Directory& people() { return *people_; }
    [[nodiscard]] const LoadedConfig& config() const { return config_; }
    [[nodiscard]] const base::Log& log() const { return log_; }
    [[nodiscard]] agents::AgentCatalog& agents() { return *agents_; }
    [[nodiscard]] Reloader& reloader() { return *reloader_; }
    [[nodiscard]] sandbox::Sandbox& sandbox() { return *sandbox_; }

    [[nodiscard]] FileAccess file_access();
    [[nodiscard]] runs::AttachmentService& attachments() { return *attachments_; }
    // On the I/O thread. Shared by all who hold it, and opened anew when another directory is in
    // its place.
    [[nodiscard]] base::Result<std::shared_ptr<fsmount::Workspace>> workspace_of(
        const std::string& uid
    );

    // From here on scopes are of the landlock tier, and the one user's files are the real
    // /home/gem/user-data. Error with the remedy when there are more users, or files elsewhere.
    [[nodiscard]] base::Result<void> enter_landlock_tier();

    // When runs were taken over.
    void start_webhooks();
    void start_retention();
    void start_people();

    // Cuts what runs are at and ends their scopes; what is left on disk is what SIGKILL would
    // leave.
    base::Task<void> shutdown();

  private:
    App(LoadedConfig config, AppOptions options);
    base::Result<void> open_store();
    base::Result<void> load_agents();
    base::Result<void> open_people();
    base::Result<void> open_attachments();
    void make_models();
    void make_runs();
    [[nodiscard]] base::Result<sandbox::ScopeSpec> scope_spec(
        const fsmount::Workspace& workspace, const std::string& policy
    );
    [[nodiscard]] std::optional<agents::User> user_of(const std::string& uid) const;

    LoadedConfig config_;
    AppOptions options_;
    fsmount::MountPlanner planner_;
    base::Redactor secrets_;  // of the configuration
    base::Log log_;
    base::asio::io_context io_;
    base::Offload offload_;
    std::shared_ptr<fsmount::Workspace>
        newest_workspace_;  // so that one run after the other has it
    std::unordered_map<std::string, std::weak_ptr<fsmount::Workspace>>
        workspaces_;  // in use, by uid
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<agents::AgentCatalog> agents_;
    std::unique_ptr<people::Directory> people_;
    models::ModelRegistry models_;
    std::unique_ptr<sandbox::Sandbox> sandbox_;
    std::unique_ptr<runs::AttachmentService> attachments_;
    std::unique_ptr<runs::RunService> runs_;
    std::unique_ptr<Webhooks> webhooks_;
    std::unique_ptr<runs::EventRetention> retention_;
    std::unique_ptr<Reloader> reloader_;
};

}  // namespace ars::server
