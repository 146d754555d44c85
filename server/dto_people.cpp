#include "server/dto_people.hpp"

#include "base/clock.hpp"
#include "runtime/people/people_fields.hpp"
#include "server/config_files.hpp"
#include "server/json_body.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

using people::UserRole;
constexpr std::int64_t kRequestIdLeast = 8;  // shorter ones are counters, which repeat
constexpr std::int64_t kRequestIdMost = 64;
constexpr std::int64_t kActForMost = 1000;

json::value time_or_null(std::int64_t ms) {
    return ms == 0 ? json::value() : json::value(base::iso8601(ms));
}

json::value text_or_null(const std::string& text) {
    return text.empty() ? json::value() : json::value(text);
}

const base::Fields<people::UserChange>& user_change_fields() {
    static const base::Fields<people::UserChange> fields =
        base::Fields<people::UserChange>{}
            .choice(
                "role",
                &people::UserChange::role,
                {{"user", UserRole::user},
                 {"admin", UserRole::admin},
                 {"superadmin", UserRole::superadmin}}
            )
            .text("department", &people::UserChange::department, {.max = people::kDepartmentBytes});
    return fields;
}

struct NewKeyBody {
    std::string name;
    std::optional<std::string> request_id;
    std::optional<std::string> user_id;
    std::optional<std::string> expires_at;
    std::optional<std::vector<std::string>> act_for;
};

const base::Fields<NewKeyBody>& new_key_fields() {
    static const base::Fields<NewKeyBody> fields =
        base::Fields<NewKeyBody>{}
            .text(
                "name",
                &NewKeyBody::name,
                {.required = true, .min = 1, .max = people::kKeyNameBytes}
            )
            .text(
                "request_id",
                &NewKeyBody::request_id,
                {.min = kRequestIdLeast, .max = kRequestIdMost}
            )
            .text("user_id", &NewKeyBody::user_id, {.min = 1, .max = people::kUidBytes})
            .text("expires_at", &NewKeyBody::expires_at, {.min = 1})
            .texts("act_for", &NewKeyBody::act_for, {.max = kActForMost});
    return fields;
}

struct KeyChangeBody {
    std::optional<std::string> name;
    std::optional<bool> enabled;
    std::optional<json::value> expires_at;  // null takes the end away
};

const base::Fields<KeyChangeBody>& key_change_fields() {
    static const base::Fields<KeyChangeBody> fields =
        base::Fields<KeyChangeBody>{}
            .text("name", &KeyChangeBody::name, {.min = 1, .max = people::kKeyNameBytes})
            .boolean("enabled", &KeyChangeBody::enabled)
            .any("expires_at", &KeyChangeBody::expires_at);
    return fields;
}

std::expected<std::int64_t, HttpResponse> read_expiry(const std::string& text) {
    const auto at_ms = parse_date(text);
    if (!at_ms) {
        return std::unexpected(faults_response(
            {{"/expires_at", "is not a date", "write 2027-01-31 or 2027-01-31T12:00:00Z"}}
        ));
    }
    return *at_ms;
}

}  // namespace

json::object new_user_schema() { return people::user_fields().schema(); }
json::object user_change_schema() { return user_change_fields().schema(); }
json::object new_key_schema() { return new_key_fields().schema(); }
json::object key_change_schema() { return key_change_fields().schema(); }

json::object user_to_json(const people::UserEntry& entry) {
    return {
        {"uid", entry.user.uid},
        {"role", people::to_string(entry.user.role)},
        {"department", entry.user.department},
        {"source", entry.declared ? "config" : "api"},
        {"created_by", text_or_null(entry.created_by)},
        {"created_at", time_or_null(entry.created_ms)},
        {"updated_at", time_or_null(entry.updated_ms)},
    };
}

json::object key_to_json(const people::ApiKey& key, std::int64_t last_use_ms) {
    return {
        {"id", key.id},
        {"name", key.name},
        {"prefix", text_or_null(key.prefix)},
        {"user_id", key.uid},
        {"created_by", text_or_null(key.created_by)},
        {"created_at", time_or_null(key.created_ms)},
        {"expires_at", time_or_null(key.expires_ms)},
        {"last_used_at", time_or_null(last_use_ms)},
        {"revoked_at", time_or_null(key.revoked_ms)},
        {"enabled", key.enabled},
        {"act_for", json::array(key.act_for.begin(), key.act_for.end())},
        {"source", key.declared ? "config" : "api"},
    };
}

std::expected<people::User, HttpResponse> read_new_user(const HttpRequest& request) {
    return read_body(request, people::user_fields());
}

std::expected<people::UserChange, HttpResponse> read_user_change(const HttpRequest& request) {
    return read_body(request, user_change_fields());
}

std::expected<people::NewKey, HttpResponse> read_new_key(const HttpRequest& request) {
    auto body = read_body(request, new_key_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    people::NewKey wanted;
    wanted.name = std::move(body->name);
    wanted.request_id = body->request_id.value_or("");
    wanted.uid = body->user_id.value_or("");
    wanted.act_for = body->act_for.value_or(std::vector<std::string>());
    if (body->expires_at) {
        auto expires = read_expiry(*body->expires_at);
        if (!expires) {
            return std::unexpected(std::move(expires.error()));
        }
        wanted.expires_ms = *expires;
    }
    return wanted;
}

std::expected<people::KeyChange, HttpResponse> read_key_change(const HttpRequest& request) {
    auto body = read_body(request, key_change_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    people::KeyChange wanted{std::move(body->name), body->enabled, std::nullopt};
    if (body->expires_at && body->expires_at->is_null()) {
        wanted.expires_ms = 0;
    } else if (body->expires_at) {
        // What is no text is no date either.
        const auto* text = body->expires_at->if_string();
        auto expires = read_expiry(text == nullptr ? "" : std::string(*text));
        if (!expires) {
            return std::unexpected(std::move(expires.error()));
        }
        wanted.expires_ms = *expires;
    }
    return wanted;
}

}  // namespace ars::server
