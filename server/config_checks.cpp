#include "server/config_checks.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "runtime/models/endpoint.hpp"
#include "server/config_files.hpp"
#include "server/listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ars::server {

namespace {

using base::FieldPlace;

// A key shorter than this can be guessed over the network.
constexpr std::size_t kLeastKeyBytes = 16;
constexpr std::size_t kMostKeyBytes = 1024;

bool faulty(const FieldPlace& place) {
    return std::any_of(place.faults.begin(), place.faults.end(), [&](const base::Fault& fault) {
        return fault.path == place.path;
    });
}

std::vector<std::string> provider_names(const Config& config) {
    std::vector<std::string> names;
    for (const auto& [name, provider] : config.models.providers) {
        names.push_back(name);
    }
    return names;
}

void check_default_model(const Config& config, const FieldPlace& models) {
    const FieldPlace place = models.at("default");
    const std::string& spec = config.models.default_spec;
    if (faulty(place) || config.models.providers.empty()) {
        return;
    }
    const std::string known = base::list_names(provider_names(config));
    const std::size_t colon = spec.find(':');
    if (colon == std::string::npos || colon + 1 == spec.size()) {
        place.fault(
            "\"" + spec + "\" is not a model spec", "write <provider>:<model>; providers: " + known
        );
    } else if (!config.models.providers.contains(spec.substr(0, colon))) {
        place.fault(
            "the provider \"" + spec.substr(0, colon) + "\" is not declared",
            "add it to models.providers, or use one of: " + known
        );
    }
}

void refuse_key(bool given, const FieldPlace& place, std::string_view type) {
    if (given) {
        place.fault(fmt::format("means nothing to a provider of type {}", type), "remove the key");
    }
}

void check_provider(const ProviderConfig& provider, const FieldPlace& place) {
    if (faulty(place.at("type"))) {
        return;
    }
    if (provider.type == ProviderType::scripted) {
        refuse_key(!provider.base_url.empty(), place.at("base_url"), "scripted");
        refuse_key(!provider.api_key_env.empty(), place.at("api_key_env"), "scripted");
        refuse_key(!provider.api_key_file.empty(), place.at("api_key_file"), "scripted");
        refuse_key(!provider.ca_file.empty(), place.at("ca_file"), "scripted");
        if (provider.scripts.empty() && !faulty(place.at("scripts"))) {
            place.at("scripts").fault(
                "is missing", "name the scripts: scripts: \"scripts/*.yaml\""
            );
        }
        return;
    }
    refuse_key(!provider.scripts.empty(), place.at("scripts"), "openai");
    if (!provider.api_key_env.empty() && !provider.api_key_file.empty()) {
        place.at("api_key_file").fault("contradicts api_key_env", "keep one of the two");
    }
    if (provider.base_url.empty()) {
        if (!faulty(place.at("base_url"))) {
            place.at("base_url").fault("is missing", "write base_url: \"https://host/v1\"");
        }
    } else if (const auto endpoint = models::parse_endpoint(provider.base_url); !endpoint) {
        place.at("base_url").fault(endpoint.error().message);
    }
}

void check_users(const Config& config, const FieldPlace& users) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < config.users.size(); ++i) {
        const std::string& uid = config.users[i].uid;
        if (!uid.empty() && !seen.insert(uid).second) {
            users.at(i).at("uid").fault(
                "the uid \"" + uid + "\" stands twice", "keep one of the two"
            );
        }
    }
}

void check_act_for(const Config& config, const ApiKeyConfig& key, const FieldPlace& act_for) {
    const auto user_named = [&config](const std::string& uid) {
        return std::ranges::find(config.users, uid, &agents::User::uid);
    };
    const auto owner = user_named(key.uid);
    std::set<std::string> seen;
    for (std::size_t i = 0; i < key.act_for.size(); ++i) {
        const std::string& uid = key.act_for[i];
        const FieldPlace place = act_for.at(i);
        if (uid.empty()) {
            place.fault("is empty", "name a user, or write act_for: [\"*\"] for all");
        } else if (!seen.insert(uid).second) {
            place.fault("\"" + uid + "\" stands twice", "keep one of the two");
        } else if (uid == "*" && key.act_for.size() > 1) {
            place.fault("\"*\" is all users, the others named too", "keep \"*\" or the names");
        }
        // A user who is not declared may be made by API; it is checked again at each request.
        const auto user = user_named(uid);
        if (owner != config.users.end() && user != config.users.end() && user->role > owner->role) {
            place.fault(
                fmt::format(
                    "\"{}\" is {}, which is above \"{}\", whose key this is",
                    uid,
                    people::to_string(user->role),
                    key.uid
                ),
                "give the key a user of at least that role"
            );
        }
    }
}

void check_api_keys(const Config& config, const FieldPlace& keys) {
    std::set<std::string> names;
    std::vector<std::string> uids;
    for (const agents::User& user : config.users) {
        uids.push_back(user.uid);
    }
    for (std::size_t i = 0; i < config.api_keys.size(); ++i) {
        const ApiKeyConfig& key = config.api_keys[i];
        const FieldPlace place = keys.at(i);
        if (!key.name.empty() && !names.insert(key.name).second) {
            place.at("name").fault("the name \"" + key.name + "\" stands twice", "rename one");
        }
        if (!key.uid.empty() && std::find(uids.begin(), uids.end(), key.uid) == uids.end()) {
            place.at("uid").fault(
                "there is no user \"" + key.uid + "\"",
                "add it to users; known: " + base::list_names(uids)
            );
        }
        const bool faulty_source = faulty(place.at("key_env")) || faulty(place.at("key_file")) ||
                                   faulty(place.at("sha256"));
        const int sources = int{key.key_env.has_value()} + int{key.key_file.has_value()} +
                            int{key.sha256.has_value()};
        if (sources != 1 && !faulty_source) {
            place.fault(
                sources == 0 ? "says nowhere what the key is"
                             : "has more than one source of the key",
                "give exactly one of key_env, key_file and sha256"
            );
        }
        check_act_for(config, key, place.at("act_for"));
        if (key.expires && !parse_date(*key.expires)) {
            place.at("expires").fault(
                "\"" + *key.expires + "\" is not a date", "write 2027-01-31 or 2027-01-31T12:00:00Z"
            );
        }
    }
}

bool lies_within(std::string_view path, std::string_view folder) {
    return path == folder ||
           (path.starts_with(folder) && path.substr(folder.size()).starts_with('/'));
}

void check_directories(const Config& config, const FieldPlace& root) {
    if (lies_within(config.data_dir, config.mounts.users)) {
        root.at("mounts").at("users").fault(
            "holds data_dir (" + config.data_dir +
                "), so the database would lie among users' files",
            "choose two directories of which mounts.users is not the outer one"
        );
    }
}

// The secret behind a variable or a file, "" after a fault.
std::string secret_of(
    const std::optional<std::string>& variable,
    const std::optional<std::string>& file,
    const FieldPlace& at,
    std::string_view otherwise
) {
    std::string secret;
    if (variable) {
        const auto value = environment_variable(*variable);
        if (!value) {
            at.fault(
                "the environment variable " + *variable + " is not set",
                "export it before the start, or use " + std::string(otherwise)
            );
            return {};
        }
        secret = base::trim(*value);
    } else {
        auto text = read_secret(*file);
        if (!text) {
            at.fault(text.error().message);
            return {};
        }
        secret = std::move(*text);
    }
    if (secret.size() < kLeastKeyBytes || secret.size() > kMostKeyBytes) {
        at.fault(
            fmt::format(
                "the key has {} characters; it needs {} to {}",
                secret.size(),
                kLeastKeyBytes,
                kMostKeyBytes
            ),
            "make one with: openssl rand -hex 24"
        );
        return {};
    }
    return secret;
}

// The key's digest, "" after a fault.
std::string key_digest(const ApiKeyConfig& key, const FieldPlace& place) {
    if (key.sha256) {
        return *key.sha256;
    }
    if (!key.key_env && !key.key_file) {
        return {};  // reported by check_api_keys
    }
    const FieldPlace at = place.at(key.key_env ? "key_env" : "key_file");
    const std::string secret = secret_of(key.key_env, key.key_file, at, "key_file or sha256");
    return secret.empty() ? "" : base::sha256_hex(secret);
}

void check_webhook(const Config& config, const WebhookConfig& hook, const FieldPlace& place) {
    if (!hook.url.empty()) {
        if (const auto endpoint = models::parse_endpoint(hook.url); !endpoint) {
            place.at("url").fault(endpoint.error().message);
        }
    }
    const auto is_user = [&hook](const agents::User& user) { return user.uid == hook.uid; };
    if (!hook.uid.empty() && std::ranges::none_of(config.users, is_user)) {
        place.at("uid").fault("there is no user \"" + hook.uid + "\"", "add it to users");
    }
    for (std::size_t i = 0; i < hook.statuses.size(); ++i) {
        const std::string& status = hook.statuses[i];
        if (status != "completed" && status != "failed" && status != "cancelled") {
            place.at("statuses")
                .at(i)
                .fault(
                    "\"" + status + "\" is no end of a run", "use completed, failed or cancelled"
                );
        }
    }
}

}  // namespace

base::Result<void> check_listen(std::string_view listen, bool has_keys) {
    const auto address = parse_listen_address(listen);
    if (!address) {
        return std::unexpected(address.error());
    }
    if (!address->loopback && !has_keys) {
        return base::fail(
            base::ErrorKind::invalid,
            "open_without_keys",
            "\"" + std::string(listen) +
                "\" is not a loopback address, and without api_keys everybody who reaches it could "
                "run commands; add api_keys, or listen on 127.0.0.1"
        );
    }
    return {};
}

void check_config(const Config& config, const FieldPlace& root) {
    if (const FieldPlace place = root.at("server").at("listen"); !faulty(place)) {
        if (const auto fine = check_listen(config.server.listen, !config.api_keys.empty()); !fine) {
            place.fault(fine.error().message);
        }
    }
    check_default_model(config, root.at("models"));
    for (const auto& [name, provider] : config.models.providers) {
        check_provider(provider, root.at("models").at("providers").at(name));
    }
    check_users(config, root.at("users"));
    check_api_keys(config, root.at("api_keys"));
    check_directories(config, root);
    check_sandbox(config, root.at("sandbox"));
}

void read_webhooks(Config& config, const FieldPlace& root) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < config.webhooks.size(); ++i) {
        WebhookConfig& hook = config.webhooks[i];
        const FieldPlace place = root.at("webhooks").at(i);
        if (!hook.name.empty() && !names.insert(hook.name).second) {
            place.at("name").fault("the name \"" + hook.name + "\" stands twice", "rename one");
        }
        check_webhook(config, hook, place);
        if (faulty(place.at("secret_env")) || faulty(place.at("secret_file"))) {
            continue;
        }
        if (hook.secret_env.has_value() == hook.secret_file.has_value()) {
            place.fault(
                "needs one signing key, so that its receiver can tell who calls",
                "give exactly one of secret_env and secret_file"
            );
            continue;
        }
        const FieldPlace at = place.at(hook.secret_env ? "secret_env" : "secret_file");
        hook.secret = secret_of(hook.secret_env, hook.secret_file, at, "secret_file");
    }
}

std::vector<people::DeclaredKey> read_api_keys(
    const Config& config, const FieldPlace& root, std::vector<std::string>& notes
) {
    std::vector<people::DeclaredKey> out;
    for (std::size_t i = 0; i < config.api_keys.size(); ++i) {
        const ApiKeyConfig& key = config.api_keys[i];
        const FieldPlace place = root.at("api_keys").at(i);
        people::DeclaredKey made;
        made.name = key.name;
        made.sha256 = key_digest(key, place);
        made.uid = key.uid;
        made.act_for = key.act_for;
        made.rate_limit = key.rate_limit;
        if (key.expires) {
            made.expires_ms = parse_date(*key.expires).value_or(0);
            if (made.expires_ms != 0 && made.expires_ms <= base::now_ms()) {
                notes.push_back("api key \"" + key.name + "\" has expired: it is refused");
            }
        }
        for (const people::DeclaredKey& other : out) {
            if (!made.sha256.empty() && other.sha256 == made.sha256) {
                place.fault(
                    "is the same key as \"" + other.name + "\"", "give each name a key of its own"
                );
            }
        }
        out.push_back(std::move(made));
    }
    return out;
}

}  // namespace ars::server
