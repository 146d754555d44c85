#include "server/auth.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "server/http_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace ars::server {

namespace {

// Longer secrets are nobody's: hashing them would only be work for an attacker to give us.
constexpr std::size_t kKeyBytes = 1024;
constexpr std::string_view kActingFor = "x-acting-for";

std::unexpected<base::Error> acting_not_allowed(std::string why) {
    return base::fail(base::ErrorKind::forbidden, "acting_not_allowed", std::move(why));
}

HttpResponse rate_limited(const people::ApiKey& key, std::chrono::milliseconds wait) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    return too_many_requests(
        "rate_limited",
        "the key \"" + key.name + "\" has sent more requests than its rate_limit allows",
        std::max<std::int64_t>(seconds, 1)
    );
}

std::string_view presented_key(const HttpRequest& request) {
    static constexpr std::string_view kScheme = "Bearer ";
    if (const auto header = request.header("authorization")) {
        if (header->size() > kScheme.size() &&
            equal_ignoring_case(header->substr(0, kScheme.size()), kScheme)) {
            return base::trim(header->substr(kScheme.size()));
        }
        return {};
    }
    return base::trim(request.header("x-api-key").value_or(std::string_view()));
}

// "localhost:5050" -> "localhost", "[::1]:5050" -> "::1".
std::string_view without_port(std::string_view authority) {
    if (authority.starts_with('[')) {
        const std::size_t end = authority.find(']');
        return end == std::string_view::npos ? std::string_view() : authority.substr(1, end - 1);
    }
    return authority.substr(0, authority.find(':'));
}

// Four decimal groups that begin with 127: "127.0.0.1.evil.example" is a name, not an address.
bool is_loopback_v4(std::string_view host) {
    if (!host.starts_with("127.")) {
        return false;
    }
    int dots = 0;
    for (std::size_t i = 0; i < host.size(); ++i) {
        if (host[i] == '.') {
            ++dots;
            if (i + 1 == host.size() || host[i + 1] == '.') {
                return false;
            }
        } else if (host[i] < '0' || host[i] > '9') {
            return false;
        }
    }
    return dots == 3;
}

}  // namespace

Authenticator::Authenticator(people::Directory& people, std::string listen_host)
    : people_(people), listen_host_(std::move(listen_host)) {}

std::optional<HttpResponse> Authenticator::admit(HttpRequest& request) const {
    base::Result<people::Caller> caller;
    if (keyless()) {
        caller = caller_without_key(request);
    } else {
        const auto key = key_of(request);
        if (!key) {
            return error_response(key.error());
        }
        if (const auto wait = people_.take_request(**key, std::chrono::steady_clock::now())) {
            return rate_limited(**key, *wait);
        }
        caller = caller_of(**key, request);
    }
    if (!caller) {
        return error_response(caller.error());
    }
    request.user = std::move(caller->user);
    request.key_name = std::move(caller->key_name);
    request.key_uid = std::move(caller->key_uid);
    return std::nullopt;
}

base::Result<people::Caller> Authenticator::caller_without_key(const HttpRequest& request) const {
    if (auto refused = refuse_foreign_pages(request); !refused) {
        return std::unexpected(refused.error());
    }
    if (request.header(kActingFor)) {
        return acting_not_allowed(
            "without API keys everybody is the local user: configure api_keys, one of them with "
            "act_for"
        );
    }
    people::Caller caller{.user = people_.local_user(), .key_name = {}, .key_uid = {}};
    caller.key_uid = caller.user.uid;
    return caller;
}

base::Result<const people::ApiKey*> Authenticator::key_of(const HttpRequest& request) const {
    const std::string_view secret = presented_key(request);
    if (secret.empty()) {
        return base::fail(
            base::ErrorKind::unauthorized,
            "missing_key",
            "this server needs an API key: send Authorization: Bearer KEY or x-api-key: KEY"
        );
    }
    const people::ApiKey* key = nullptr;
    if (secret.size() <= kKeyBytes) {
        key = people_.use_key(base::sha256_hex(secret), base::now_ms());
    }
    if (key == nullptr) {
        return base::fail(
            base::ErrorKind::unauthorized,
            "invalid_key",
            "the API key is unknown, expired, revoked or disabled"
        );
    }
    return key;
}

base::Result<people::Caller> Authenticator::caller_of(
    const people::ApiKey& key, const HttpRequest& request
) const {
    // The key's user is there: a key without one is not usable.
    people::Caller caller{
        .user = *people_.find_user(key.uid), .key_name = key.name, .key_uid = key.uid
    };
    const auto header = request.header(kActingFor);
    if (!header) {
        return caller;
    }
    if (request.count_headers(kActingFor) > 1) {
        return acting_not_allowed("X-Acting-For stands twice: send it once");
    }
    const std::string uid(base::trim(*header));
    // Before anybody learns whether there is such a user.
    if (!key.may_act_for(uid)) {
        return acting_not_allowed(
            "the key \"" + key.name + "\" may not act for this user: its act_for must name him"
        );
    }
    auto user = people_.find_user(uid);
    if (!user) {
        return base::fail(
            base::ErrorKind::forbidden,
            "unknown_user",
            fmt::format(
                "X-Acting-For: there is no user \"{}\": add him to users, or POST "
                "/api/system/users",
                base::utf8_head(base::to_utf8(uid).text, 100)
            )
        );
    }
    if (user->role > caller.user.role) {
        return acting_not_allowed(
            "\"" + uid + "\" has a higher role than \"" + key.uid + "\", whose key this is"
        );
    }
    caller.user = std::move(*user);
    return caller;
}

bool Authenticator::is_own_host(std::string_view host) const {
    return equal_ignoring_case(host, "localhost") || host == "::1" || is_loopback_v4(host) ||
           equal_ignoring_case(host, listen_host_);
}

base::Result<void> Authenticator::refuse_foreign_pages(const HttpRequest& request) const {
    // A page whose name was rebound to 127.0.0.1 still sends its own name.
    const auto host = request.header("host");
    if (host && !is_own_host(without_port(*host))) {
        return base::fail(
            base::ErrorKind::forbidden,
            "foreign_host",
            fmt::format(
                "the Host header \"{}\" is not this server's; without API keys it answers only to "
                "localhost and loopback addresses",
                base::utf8_head(base::to_utf8(*host).text, 100)
            )
        );
    }
    const auto origin = request.header("origin");
    if (origin && (!host || *origin != fmt::format("http://{}", *host))) {
        return base::fail(
            base::ErrorKind::forbidden,
            "foreign_origin",
            fmt::format(
                "a page of \"{}\" may not call this server; configure API keys to use it from "
                "another origin",
                base::utf8_head(base::to_utf8(*origin).text, 100)
            )
        );
    }
    return {};
}

}  // namespace ars::server
