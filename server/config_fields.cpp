#include "server/config_fields.hpp"

#include "runtime/people/people_fields.hpp"

namespace ars::server {

namespace {

using base::Fields;
constexpr std::int64_t kMillisecond = 1;
constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kDay = 24 * 3600 * kSecond;
constexpr std::int64_t kRunsMax = 100'000;
constexpr std::int64_t kStepsMax = 10'000;

std::string check_provider_name(std::string_view name) {
    const bool fits =
        !name.empty() &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
    return fits ? "" : "a provider's name is made of lower-case letters, digits, \"_\" and \"-\"";
}

// Somebody who writes the key itself here must not read it back in the fault.
std::string check_variable(std::string_view name) {
    return base::check_variable_name(name).empty()
               ? ""
               : "must be the name of an environment variable, not a key";
}

std::string check_sha256(std::string_view text) {
    if (text.empty()) {
        return "is empty, so it would match no key";
    }
    const bool fits =
        text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return fits ? "" : "must be 64 lower-case hex digits";
}

const Fields<ServerConfig>& server_fields() {
    static const Fields<ServerConfig> fields =
        Fields<ServerConfig>{}
            .text(
                "listen",
                &ServerConfig::listen,
                {.min = 1,
                 .remedy = "write ADDRESS:PORT, like 127.0.0.1:5050",
                 .doc = "Address and port of the HTTP server."}
            )
            .duration(
                "heartbeat",
                &ServerConfig::heartbeat,
                {.min = 10 * kMillisecond,
                 .max = kHour,
                 .doc = "A comment on an event stream after this much silence."}
            )
            .duration(
                "read_timeout",
                &ServerConfig::read_timeout,
                {.min = 100 * kMillisecond,
                 .max = kHour,
                 .doc = "How long a request may take to arrive; of an upload, its next piece."}
            )
            .duration(
                "write_timeout",
                &ServerConfig::write_timeout,
                {.min = 100 * kMillisecond,
                 .max = kHour,
                 .doc = "How long a client may take for 64 KiB before it is cut."}
            )
            .object(
                "rate_limit",
                &ServerConfig::rate_limit,
                people::rate_limit_fields(),
                {.doc = "Of each API key that has none of its own; absent: none."}
            );
    return fields;
}

const Fields<MountsConfig>& mounts_fields() {
    static const Fields<MountsConfig> fields = Fields<MountsConfig>{}.text(
        "users",
        &MountsConfig::users,
        {.min = 1, .doc = "Holds <uid>/workspace of each user; default <data_dir>/users."}
    );
    return fields;
}

Fields<ProviderConfig> provider_connection_fields() {
    return Fields<ProviderConfig>{}
        .choice(
            "type",
            &ProviderConfig::type,
            {{"openai", ProviderType::openai}, {"scripted", ProviderType::scripted}},
            {.required = true, .doc = "The wire format, or `scripted` for replayed scripts."}
        )
        .text(
            "base_url",
            &ProviderConfig::base_url,
            {.min = 1, .doc = "openai: address up to and without /chat/completions."}
        )
        .text(
            "api_key_env",
            &ProviderConfig::api_key_env,
            {.check = check_variable, .doc = "openai: the environment variable with the key."}
        )
        .text(
            "api_key_file",
            &ProviderConfig::api_key_file,
            {.min = 1, .doc = "openai: a file with the key."}
        )
        .text(
            "ca_file", &ProviderConfig::ca_file, {.min = 1, .doc = "openai: own CA certificates."}
        )
        .text(
            "scripts",
            &ProviderConfig::scripts,
            {.min = 1, .doc = "scripted: path pattern of the scripts, relative to this file."}
        );
}

const Fields<ProviderConfig>& provider_fields() {
    static const Fields<ProviderConfig> fields =
        provider_connection_fields()
            .duration(
                "connect_timeout",
                &ProviderConfig::connect_timeout,
                {.min = kMillisecond, .max = kDay, .doc = "Until the connection stands."}
            )
            .duration(
                "first_byte_timeout",
                &ProviderConfig::first_byte_timeout,
                {.min = kMillisecond, .max = kDay, .doc = "Until the answer begins."}
            )
            .duration(
                "idle_timeout",
                &ProviderConfig::idle_timeout,
                {.min = kMillisecond, .max = kDay, .doc = "Between two pieces of the answer."}
            )
            .duration(
                "total_timeout",
                &ProviderConfig::total_timeout,
                {.min = kMillisecond, .max = kDay, .doc = "For the whole call with its retries."}
            )
            .integer(
                "retries",
                &ProviderConfig::retries,
                {.max = 10, .doc = "After 429, 5xx and broken connections."}
            )
            .integer(
                "max_output_tokens",
                &ProviderConfig::max_output_tokens,
                {.doc = "Bound sent with every request; 0 sends none."}
            );
    return fields;
}

const Fields<ModelsConfig>& models_fields() {
    static const Fields<ModelsConfig> fields =
        Fields<ModelsConfig>{}
            .text(
                "default",
                &ModelsConfig::default_spec,
                {.required = true, .min = 1, .doc = "<provider>:<model> of agents without one."}
            )
            .map(
                "providers",
                &ModelsConfig::providers,
                provider_fields(),
                {.required = true,
                 .min = 1,
                 .check = check_provider_name,
                 .doc = "Where models are, by name."}
            );
    return fields;
}

const Fields<ApiKeyConfig>& api_key_fields() {
    static const Fields<ApiKeyConfig> fields =
        Fields<ApiKeyConfig>{}
            .text(
                "name",
                &ApiKeyConfig::name,
                {.required = true, .min = 1, .max = 200, .doc = "Shown in the log."}
            )
            .text(
                "uid",
                &ApiKeyConfig::uid,
                {.required = true, .min = 1, .doc = "The user of `users` who calls with it."}
            )
            .text(
                "key_env",
                &ApiKeyConfig::key_env,
                {.check = check_variable, .doc = "The environment variable with the key."}
            )
            .text("key_file", &ApiKeyConfig::key_file, {.min = 1, .doc = "A file with the key."})
            .text(
                "sha256",
                &ApiKeyConfig::sha256,
                {.check = check_sha256,
                 .remedy = "make it with: printf %s \"$KEY\" | sha256sum",
                 .doc = "The key's digest, so that the key itself is nowhere here."}
            )
            .text(
                "expires", &ApiKeyConfig::expires, {.min = 1, .doc = "Refused from then on (UTC)."}
            )
            .texts(
                "act_for",
                &ApiKeyConfig::act_for,
                {.doc = "The uids it may act for with X-Acting-For; [\"*\"]: all users."}
            )
            .object(
                "rate_limit",
                &ApiKeyConfig::rate_limit,
                people::rate_limit_fields(),
                {.doc = "Instead of server.rate_limit."}
            );
    return fields;
}

const Fields<WebhookConfig>& webhook_fields() {
    static const Fields<WebhookConfig> fields =
        Fields<WebhookConfig>{}
            .text(
                "name",
                &WebhookConfig::name,
                {.required = true, .min = 1, .max = 200, .doc = "What is undelivered stays with it."
                }
            )
            .text(
                "url",
                &WebhookConfig::url,
                {.required = true, .min = 1, .doc = "Is sent a POST when a run has ended."}
            )
            .text(
                "secret_env",
                &WebhookConfig::secret_env,
                {.check = check_variable, .doc = "The environment variable with the signing key."}
            )
            .text(
                "secret_file",
                &WebhookConfig::secret_file,
                {.min = 1, .doc = "A file with the signing key."}
            )
            .text("ca_file", &WebhookConfig::ca_file, {.min = 1, .doc = "Own CA certificates."})
            .text("uid", &WebhookConfig::uid, {.min = 1, .doc = "Only runs of this user."})
            .texts(
                "statuses",
                &WebhookConfig::statuses,
                {.doc = "Which ends: completed, failed, cancelled; absent: all."}
            )
            .duration(
                "timeout",
                &WebhookConfig::timeout,
                {.min = kMillisecond, .max = 60 * kSecond, .doc = "For one attempt."}
            );
    return fields;
}

const Fields<RunsConfig>& runs_fields() {
    static const Fields<RunsConfig> fields =
        Fields<RunsConfig>{}
            .integer(
                "max_concurrent",
                &RunsConfig::max_concurrent,
                {.min = 1, .max = kRunsMax, .doc = "Root runs at once."}
            )
            .integer(
                "max_children",
                &RunsConfig::max_children,
                {.min = 1, .max = kRunsMax, .doc = "Sub-agent runs at once."}
            )
            .integer(
                "max_queued",
                &RunsConfig::max_queued,
                {.min = 0, .max = kRunsMax, .doc = "Messages that wait for their thread's run."}
            )
            .boolean(
                "children_outlive_root",
                &RunsConfig::children_outlive_root,
                {.doc = "Whether sub-agents go on when their root run has ended."}
            )
            .integer(
                "max_steps",
                &RunsConfig::max_steps,
                {.min = 1, .max = kStepsMax, .doc = "Model calls of one run, at most."}
            )
            .duration(
                "timeout",
                &RunsConfig::timeout,
                {.min = kSecond, .max = 30 * kDay, .doc = "Wall time of one run."}
            )
            .duration(
                "event_retention",
                &RunsConfig::event_retention,
                {.min = kSecond,
                 .max = 3650 * kDay,
                 .doc = "How long the events of a run are kept when it is over."}
            )
            .duration(
                "attachment_expiry",
                &RunsConfig::attachment_expiry,
                {.min = kSecond,
                 .max = 365 * kDay,
                 .doc = "How long an uploaded file waits for a thread."}
            )
            .duration(
                "stop_grace",
                &RunsConfig::stop_grace,
                {.min = 0,
                 .max = 3600 * kSecond,
                 .doc = "How long a stopping server lets tools at work go on."}
            );
    return fields;
}

const Fields<StoreConfig>& store_fields() {
    constexpr std::int64_t kLeast = 16 * 1024 * 1024;
    static const Fields<StoreConfig> fields = Fields<StoreConfig>{}.size(
        "max_size",
        &StoreConfig::max_size,
        {.min = kLeast, .doc = "Bound of the database; sparse on disk."}
    );
    return fields;
}

}  // namespace

const Fields<Config>& config_fields() {
    static const Fields<Config> fields =
        Fields<Config>{}
            .object("server", &Config::server, server_fields())
            .text(
                "data_dir",
                &Config::data_dir,
                {.min = 1, .doc = "Database, skills projections, command logs."}
            )
            .object("mounts", &Config::mounts, mounts_fields())
            .texts(
                "agents",
                &Config::agents,
                {.doc = "Path patterns of agent files, relative to this file."}
            )
            .object("models", &Config::models, models_fields(), {.required = true})
            .objects("users", &Config::users, people::user_fields(), {.doc = "Who may call."})
            .objects("api_keys", &Config::api_keys, api_key_fields(), {.doc = "With which key."})
            .objects(
                "webhooks", &Config::webhooks, webhook_fields(), {.doc = "Who is told of ends."}
            )
            .object("sandbox", &Config::sandbox, sandbox_fields())
            .object("runs", &Config::runs, runs_fields())
            .object("store", &Config::store, store_fields());
    return fields;
}

}  // namespace ars::server
