#include "server/app.hpp"

#include "runtime/models/openai_client.hpp"
#include "runtime/models/scripted_client.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/subagent_tools.hpp"
#include "server/tier_choice.hpp"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

namespace ars::server {

namespace {

constexpr std::size_t kFileThreads = 2;  // file work is short; more threads only queue on the disk

}  // namespace

namespace {

// False when it was removed, or another one put in its place.
bool is_still_at(int directory, const std::string& path) {
    struct stat open{};
    struct stat there{};
    return ::fstat(directory, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
           open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

fsmount::PlanOptions plan_options(const LoadedConfig& config, const AppOptions& options) {
    fsmount::PlanOptions plan;
    plan.data_dir = options.data_dir;
    plan.users_dir = options.users_dir;
    plan.hidden = config.secret_files;
    return plan;
}

// Under the names by which an operator finds them again.
base::Redactor secrets_of(const Config& config) {
    base::Redactor secrets;
    for (const auto& [name, provider] : config.models.providers) {
        secrets.add("models.providers." + name, provider.api_key);
    }
    for (const WebhookConfig& hook : config.webhooks) {
        secrets.add("webhooks." + hook.name, hook.secret);
    }
    return secrets;
}

}  // namespace

App::App(LoadedConfig config, AppOptions options)
    : config_(std::move(config)),
      options_(std::move(options)),
      planner_(plan_options(config_, options_)),
      secrets_(secrets_of(config_.config)),
      log_(STDERR_FILENO, options_.log_level, &secrets_),
      io_(1),
      offload_(kFileThreads) {}

App::~App() = default;

base::Result<std::unique_ptr<App>> App::build(LoadedConfig config, AppOptions options) {
    std::unique_ptr<App> app(new App(std::move(config), std::move(options)));
    if (auto opened = app->open_store(); !opened) {
        return std::unexpected(opened.error());
    }
    if (auto opened = app->open_people(); !opened) {
        return std::unexpected(opened.error());
    }
    if (auto loaded = app->load_agents(); !loaded) {
        return std::unexpected(loaded.error());
    }
    if (auto opened = app->open_attachments(); !opened) {
        return std::unexpected(opened.error());
    }
    app->make_models();
    sandbox::SandboxOptions tools;
    tools.expected_tier = app->options_.tier;
    tools.idle_release = app->config_.config.sandbox.idle_release;
    tools.backend = app->options_.io.value_or(app->config_.config.sandbox.io);
    tools.cgroups = app->options_.cgroups;
    auto sandbox = sandbox::make_sandbox(app->io_.get_executor(), tools, app->log_);
    if (!sandbox) {
        return std::unexpected(sandbox.error());
    }
    app->sandbox_ = std::move(*sandbox);
    app->make_runs();
    return app;
}

base::Result<void> App::open_store() {
    auto opened = store::Store::open(
        store::StoreOptions{
            .directory = options_.data_dir + "/store",
            .max_size = config_.config.store.max_size,
            .outbox = options_.webhooks && !config_.config.webhooks.empty()
        },
        log_
    );
    if (!opened) {
        return std::unexpected(opened.error());
    }
    store_ = std::move(*opened);
    return {};
}

base::Result<void> App::open_people() {
    auto opened =
        people::Directory::open(io_.get_executor(), *store_, log_, config_.declared_people());
    if (!opened) {
        return std::unexpected(opened.error());
    }
    people_ = std::move(*opened);
    return {};
}

base::Result<void> App::load_agents() {
    agents_ = std::make_unique<agents::AgentCatalog>(*store_, log_);
    auto loaded = agents_->load(config_.agents);
    if (!loaded) {
        return std::unexpected(loaded.error());
    }
    reloader_ = std::make_unique<Reloader>(
        io_.get_executor(),
        config_,
        *agents_,
        offload_,
        log_,
        [this](people::Declaration now) { return people_->declare(std::move(now)); }
    );
    return {};
}

base::Result<void> App::open_attachments() {
    auto opened = runs::AttachmentService::open(
        {io_.get_executor(),
         *store_,
         offload_,
         log_,
         [this](const std::string& uid) { return workspace_of(uid); },
         config_.config.runs.attachment_expiry},
        options_.data_dir + "/attachments"
    );
    if (!opened) {
        return std::unexpected(opened.error());
    }
    attachments_ = std::move(*opened);
    return {};
}

void App::make_models() {
    for (const auto& [name, provider] : config_.config.models.providers) {
        if (provider.type == ProviderType::scripted) {
            models_.add(name, std::make_unique<models::ScriptedClient>(provider.script_book));
        } else {
            models::OpenAiClient::Settings settings;
            settings.base_url = provider.base_url;
            settings.api_key = provider.api_key;
            settings.secrets = secrets_;
            settings.ca_file = provider.ca_file;
            settings.connect_timeout = provider.connect_timeout;
            settings.first_byte_timeout = provider.first_byte_timeout;
            settings.idle_timeout = provider.idle_timeout;
            settings.total_timeout = provider.total_timeout;
            settings.retries = provider.retries;
            settings.chat.max_output_tokens = provider.max_output_tokens;
            models_.add(
                name,
                std::make_unique<models::OpenAiClient>(
                    io_.get_executor(), std::move(settings), log_
                )
            );
        }
    }
}

void App::make_runs() {
    const Config& config = config_.config;
    runs::RunSettings settings;
    settings.default_model = config.models.default_spec;
    settings.approval_mode = config.sandbox.tool_approval_mode;
    settings.max_concurrent = config.runs.max_concurrent;
    settings.max_children = config.runs.max_children;
    settings.max_queued = config.runs.max_queued;
    settings.max_steps = config.runs.max_steps;
    settings.timeout = config.runs.timeout;
    settings.environment = config_.environment;
    settings.secrets = secrets_;
    settings.policies = config_.policies.names();
    settings.children_outlive_root = config.runs.children_outlive_root;
    runs_ = std::make_unique<runs::RunService>(runs::RunParts{
        io_.get_executor(),
        *store_,
        agents_->table(),
        models_,
        *sandbox_,
        offload_,
        log_,
        std::move(settings),
        [this](const std::string& uid) { return workspace_of(uid); },
        [this](const fsmount::Workspace& workspace, const std::string& policy) {
            return scope_spec(workspace, policy);
        },
        [this](const std::string& uid) { return user_of(uid); },
        attachments_.get(),
    });
    runs::ToolSet tools = tools::make_file_tools();
    for (auto& tool : tools::make_subagent_tools(runs_->child_runs())) {
        tools.push_back(std::move(tool));
    }
    runs_->set_tools(std::move(tools));
}

FileAccess App::file_access() {
    return {[this](const std::string& uid) { return workspace_of(uid); }, &offload_};
}

base::Result<std::shared_ptr<fsmount::Workspace>> App::workspace_of(const std::string& uid) {
    if (options_.workspace) {
        return options_.workspace;
    }
    if (const auto known = workspaces_.find(uid); known != workspaces_.end()) {
        auto open = known->second.lock();
        if (open && is_still_at(open->user_data(), open->user_data_source()) &&
            is_still_at(open->skills(), open->skills_source())) {
            return open;
        }
    }
    auto opened =
        fsmount::open_user_workspace(options_.users_dir, options_.data_dir + "/skills", uid);
    if (opened) {
        std::erase_if(workspaces_, [](const auto& entry) { return entry.second.expired(); });
        newest_workspace_ = *opened;
        workspaces_[uid] = *opened;
    }
    return opened;
}

base::Result<sandbox::ScopeSpec> App::scope_spec(
    const fsmount::Workspace& workspace, const std::string& policy
) {
    auto wanted = config_.policies.find(policy);
    if (!wanted) {
        return std::unexpected(wanted.error());
    }
    // A run from before a restart may name what this configuration would refuse.
    if (wanted->network == sandbox::Network::host && config_.keys.empty()) {
        return base::fail(
            base::ErrorKind::invalid,
            "open_api",
            "the policy \"" + policy +
                "\" shares the server's network, and this API demands no key: add api_keys"
        );
    }
    return make_scope_spec(std::move(*wanted), options_.tier, workspace, planner_);
}

base::Result<void> App::enter_landlock_tier() {
    const auto refuse = [](std::string what) {
        return base::fail(
            base::ErrorKind::invalid,
            "one_user_only",
            "the landlock tier can mount nothing: its only workspace is the real "
            "/home/gem/user-data, for one user; " +
                std::move(what) + ", or give the container what the namespaces tier needs"
        );
    };
    if (!people_->restrict_to_one_user()) {
        return refuse("leave one user in the configuration and in GET /api/system/users");
    }
    if (options_.users_dir != options_.data_dir + "/users") {
        return refuse(
            "mount the volume of mounts.users (" + options_.users_dir + ") there and remove the key"
        );
    }
    if (!options_.workspace) {
        auto real = open_real_workspace();
        if (!real) {
            return std::unexpected(real.error());
        }
        options_.workspace = std::move(*real);
    }
    options_.tier = sandbox::Tier::landlock;
    return {};
}

std::optional<agents::User> App::user_of(const std::string& uid) const {
    if (auto known = people_->find_user(uid)) {
        return known;
    }
    const agents::User local = people_->local_user();
    return uid == local.uid ? std::optional(local) : std::nullopt;
}

void App::start_webhooks() {
    std::vector<Webhook> hooks;
    for (const WebhookConfig& wanted : config_.config.webhooks) {
        Webhook hook;
        hook.name = wanted.name;
        hook.endpoint = *models::parse_endpoint(wanted.url);  // checked when it was loaded
        hook.secret = wanted.secret;
        hook.ca_file = wanted.ca_file;
        hook.uid = wanted.uid;
        hook.timeout = wanted.timeout;
        for (const auto status :
             {store::RunStatus::completed, store::RunStatus::failed, store::RunStatus::cancelled}) {
            if (std::ranges::find(wanted.statuses, store::to_string(status)) !=
                wanted.statuses.end()) {
                hook.statuses.push_back(status);
            }
        }
        hooks.push_back(std::move(hook));
    }
    if (!hooks.empty()) {
        webhooks_ =
            std::make_unique<Webhooks>(io_.get_executor(), std::move(hooks), *store_, *runs_, log_);
        webhooks_->start();
    }
}

void App::start_retention() {
    retention_ = std::make_unique<runs::EventRetention>(
        io_.get_executor(), *store_, config_.config.runs.event_retention, log_
    );
    retention_->start();
}

void App::start_people() { people_->start(); }

base::Task<void> App::shutdown() {
    if (webhooks_) {
        co_await webhooks_->stop();
    }
    if (retention_) {
        co_await retention_->stop();
    }
    co_await attachments_->stop();
    co_await runs_->shutdown();
    co_await people_->stop();
    co_await sandbox_->close();
}

}  // namespace ars::server
