#include "server/config.hpp"

#include "runtime/agents/agent_file.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/tools/builtin.hpp"
#include "server/config_checks.hpp"
#include "server/config_fields.hpp"
#include "server/config_files.hpp"
#include "server/options.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ars::server {

namespace {

using base::FieldPlace;
constexpr const char* kDefaultAgentFiles = "agents/*.yaml";

struct LoadedAgent {
    agents::Agent agent;
    base::Document document;
};

class Loader {
  public:
    explicit Loader(const std::string& path) { out_.file = path; }

    std::expected<LoadedConfig, ConfigFaults> load() {
        auto document = base::load_yaml(out_.file);
        if (!document) {
            return std::unexpected(ConfigFaults{document.error().message});
        }
        document_ = std::move(*document);
        read_appliance();
        read_scripts();
        read_agents();
        check_subagents();
        note_missing_provider_keys();
        collect_secret_files();
        if (!lines_.empty()) {
            return std::unexpected(std::move(lines_));
        }
        return std::move(out_);
    }

  private:
    void read_appliance() {
        std::vector<base::Fault> faults;
        expand_variables(document_, faults);
        Config& config = out_.config;
        const auto shape = config_fields().decode(document_.value, config);
        faults.insert(faults.end(), shape.begin(), shape.end());
        make_paths_absolute(config);
        const FieldPlace root{{}, faults, {}};
        check_config(config, root);
        read_provider_keys(config, root);
        read_webhooks(config, root);
        out_.keys = read_api_keys(config, root, out_.notes);
        out_.policies = Policies(config.sandbox.policies);
        out_.environment = tool_environment(config.sandbox.environment);
        report(document_, faults);
    }

    void make_paths_absolute(Config& config) const {
        const auto own = [this](const std::string& path) {
            return absolute_path(beside(out_.file, path));
        };
        config.data_dir = own(config.data_dir);
        config.mounts.users =
            config.mounts.users.empty() ? config.data_dir + "/users" : own(config.mounts.users);
        for (auto& [name, provider] : config.models.providers) {
            for (std::string* path : {&provider.api_key_file, &provider.ca_file}) {
                *path = path->empty() ? "" : own(*path);
            }
        }
        for (ApiKeyConfig& key : config.api_keys) {
            if (key.key_file) {
                key.key_file = own(*key.key_file);
            }
        }
        for (WebhookConfig& hook : config.webhooks) {
            if (hook.secret_file) {
                hook.secret_file = own(*hook.secret_file);
            }
            hook.ca_file = hook.ca_file.empty() ? "" : own(hook.ca_file);
        }
    }

    // A key file must be there; an unset variable is no fault before the provider is used.
    void read_provider_keys(Config& config, const FieldPlace& root) {
        for (auto& [name, provider] : config.models.providers) {
            if (!provider.api_key_file.empty()) {
                auto key = read_secret(provider.api_key_file);
                if (key) {
                    provider.api_key = std::move(*key);
                } else {
                    root.at("models")
                        .at("providers")
                        .at(name)
                        .at("api_key_file")
                        .fault(key.error().message);
                }
            } else if (!provider.api_key_env.empty()) {
                provider.api_key = environment_variable(provider.api_key_env).value_or("");
            }
        }
    }

    void collect_secret_files() {
        out_.secret_files.push_back(absolute_path(out_.file));
        for (const auto& [name, provider] : out_.config.models.providers) {
            if (!provider.api_key_file.empty()) {
                out_.secret_files.push_back(provider.api_key_file);
            }
        }
        for (const ApiKeyConfig& key : out_.config.api_keys) {
            if (key.key_file) {
                out_.secret_files.push_back(*key.key_file);
            }
        }
        for (const WebhookConfig& hook : out_.config.webhooks) {
            if (hook.secret_file) {
                out_.secret_files.push_back(*hook.secret_file);
            }
        }
    }

    void read_scripts() {
        std::vector<base::Fault> faults;
        const FieldPlace providers = FieldPlace{{}, faults, {}}.at("models").at("providers");
        std::vector<std::string> script_lines;
        for (auto& [name, provider] : out_.config.models.providers) {
            if (provider.type != ProviderType::scripted || provider.scripts.empty()) {
                continue;
            }
            const auto files = matching_files(beside(out_.file, provider.scripts));
            if (files.empty()) {
                providers.at(name).at("scripts").fault(
                    "matches no file", "patterns are relative to the directory of this file"
                );
                continue;
            }
            if (auto book = models::load_scripts(files)) {
                provider.script_book = std::move(*book);
            } else {
                script_lines.insert(script_lines.end(), book.error().begin(), book.error().end());
            }
        }
        report(document_, faults);
        lines_.insert(lines_.end(), script_lines.begin(), script_lines.end());
    }

    // The agent files of all patterns, each once, in order.
    std::vector<std::string> agent_files() {
        const auto& patterns = out_.config.agents;
        if (!patterns) {
            return matching_files(beside(out_.file, kDefaultAgentFiles));
        }
        std::vector<base::Fault> faults;
        const FieldPlace place = FieldPlace{{}, faults, {}}.at("agents");
        std::vector<std::string> files;
        for (std::size_t i = 0; i < patterns->size(); ++i) {
            const auto found = matching_files(beside(out_.file, (*patterns)[i]));
            if (found.empty() && !(*patterns)[i].empty()) {
                place.at(i).fault(
                    "\"" + (*patterns)[i] + "\" matches no file",
                    "patterns are relative to the directory of this file; agents: [] means none"
                );
            }
            for (const std::string& file : found) {
                if (std::find(files.begin(), files.end(), file) == files.end()) {
                    files.push_back(file);
                }
            }
        }
        report(document_, faults);
        return files;
    }

    void read_agents() {
        const agents::KnownNames known = known_names(out_);
        for (const std::string& path : agent_files()) {
            auto file = agents::load_agent_file(path, known);
            if (!file) {
                lines_.push_back(file.error().message);
                continue;
            }
            check_agent_policy(file->agent, file->faults);
            report(file->document, file->faults);
            if (!file->faults.empty()) {
                broken_slugs_.push_back(file->agent.slug);
                continue;
            }
            check_slug_is_free(*file);
            agents_.push_back({file->agent, std::move(file->document)});
            out_.agents.push_back(std::move(file->agent));
        }
    }

    void check_slug_is_free(const agents::AgentFile& file) {
        const auto other = std::ranges::find(out_.agents, file.agent.slug, &agents::Agent::slug);
        if (other != out_.agents.end()) {
            report(
                file.document,
                {{"/slug",
                  "the slug \"" + file.agent.slug + "\" is already used by " + other->source,
                  "give one of the two agents another slug"}}
            );
        }
    }

    void check_agent_policy(const agents::Agent& agent, std::vector<base::Fault>& faults) const {
        const auto policy = out_.policies.find(agent.context.policy);
        if (policy && policy->network == sandbox::Network::host && out_.config.api_keys.empty()) {
            fault_open_api(FieldPlace{"/config_json/context/policy", faults, {}});
        }
    }

    // A list that names a missing or unfit agent is dropped silently at run time; in a file it is a
    // mistake. What was made through the API is not known here: files stand on their own.
    void check_subagents() {
        std::vector<std::string> main_agents;
        std::vector<std::string> subagents;
        for (const auto& list : {agents::built_in_agents(), out_.agents}) {
            for (const agents::Agent& agent : list) {
                (agent.is_subagent ? subagents : main_agents).push_back(agent.slug);
            }
        }
        std::ranges::sort(subagents);
        subagents.erase(std::ranges::unique(subagents).begin(), subagents.end());
        for (const LoadedAgent& loaded : agents_) {
            std::vector<base::Fault> faults;
            const auto& listed = loaded.agent.context.subagents;
            for (std::size_t i = 0; listed && i < listed->size(); ++i) {
                const std::string& slug = (*listed)[i];
                if (!holds(subagents, slug) && !holds(broken_slugs_, slug)) {
                    FieldPlace{"/config_json/context/subagents", faults, {}}.at(i).fault(
                        "\"" + slug + "\" " +
                            (holds(main_agents, slug) ? "is a main agent" : "is no agent"),
                        "sub-agents: " + base::list_names(subagents)
                    );
                }
            }
            report(loaded.document, faults);
        }
    }

    static bool holds(const std::vector<std::string>& list, const std::string& item) {
        return std::ranges::find(list, item) != list.end();
    }

    void note_missing_provider_keys() {
        for (const auto& [name, provider] : out_.config.models.providers) {
            const auto uses = [&name](const std::string& spec) {
                return spec.starts_with(name + ":");
            };
            const bool used =
                uses(out_.config.models.default_spec) ||
                std::any_of(agents_.begin(), agents_.end(), [&](const LoadedAgent& a) {
                    return uses(a.agent.context.model);
                });
            if (used && !provider.api_key_env.empty() && provider.api_key.empty()) {
                out_.notes.push_back(
                    "models.providers." + name + ": the environment variable " +
                    provider.api_key_env + " is not set, so its calls go without a key"
                );
            }
        }
    }

    void report(const base::Document& document, const std::vector<base::Fault>& faults) {
        for (const base::Fault& fault : faults) {
            lines_.push_back(document.describe(fault));
        }
    }

    LoadedConfig out_;
    base::Document document_;
    std::vector<LoadedAgent> agents_;
    std::vector<std::string> broken_slugs_;  // of files with faults: they exist all the same
    ConfigFaults lines_;
};

}  // namespace

std::expected<LoadedConfig, ConfigFaults> load_config(const std::string& path) {
    return Loader(path).load();
}

agents::User LoadedConfig::local_user() const { return people::local_user(config.users); }

people::Declaration LoadedConfig::declared_people() const {
    return {
        .file = file, .users = config.users, .keys = keys, .rate_limit = config.server.rate_limit
    };
}

int load_config_or_report(const char* who, const std::string& path, LoadedConfig& out) {
    auto loaded = load_config(path);
    if (!loaded) {
        for (const std::string& line : loaded.error()) {
            std::fprintf(stderr, "%s\n", line.c_str());
        }
        std::fprintf(
            stderr,
            "%s: %s has %zu fault%s\n",
            who,
            path.c_str(),
            loaded.error().size(),
            loaded.error().size() == 1 ? "" : "s"
        );
        return kExitUsage;
    }
    out = std::move(*loaded);
    for (const std::string& note : out.notes) {
        std::fprintf(stderr, "%s: note: %s\n", who, note.c_str());
    }
    return 0;
}

agents::KnownNames known_names(const LoadedConfig& config) {
    agents::KnownNames names;
    for (const auto& tool : tools::make_file_tools()) {
        names.tools.push_back(tool->spec().name);
    }
    for (const char* name :
         {"task", "subagent_start", "subagent_status", "subagent_await", "subagent_cancel"}) {
        names.tools.emplace_back(name);
    }
    for (const auto& [name, provider] : config.config.models.providers) {
        names.providers.push_back(name);
    }
    names.policies = config.policies.names();
    return names;
}

}  // namespace ars::server
