#include "server/auth.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace ars::server {

namespace {

// Longer secrets are nobody's: hashing them would only be work for an attacker to give us.
constexpr std::size_t kKeyBytes = 1024;

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

Authenticator::Authenticator(
    std::vector<ApiKey> keys, agents::User local_user, std::string listen_host
)
    : keys_(std::move(keys)),
      local_user_(std::move(local_user)),
      listen_host_(std::move(listen_host)) {}

base::Result<agents::User> Authenticator::authenticate(const HttpRequest& request) const {
    if (keyless()) {
        if (auto refused = refuse_foreign_pages(request); !refused) {
            return std::unexpected(refused.error());
        }
        return local_user_;
    }
    const std::string_view key = presented_key(request);
    if (key.empty()) {
        return base::fail(
            base::ErrorKind::unauthorized,
            "missing_key",
            "this server needs an API key: send Authorization: Bearer KEY or x-api-key: KEY"
        );
    }
    const ApiKey* found = nullptr;
    if (key.size() <= kKeyBytes) {
        const std::string digest = base::sha256_hex(key);
        // No early exit: the time of a refusal tells nothing about the table.
        for (const ApiKey& candidate : keys_) {
            if (base::equal_constant_time(candidate.sha256, digest)) {
                found = &candidate;
            }
        }
    }
    if (found == nullptr || (found->expires_ms != 0 && found->expires_ms <= base::now_ms())) {
        return base::fail(
            base::ErrorKind::unauthorized, "invalid_key", "the API key is unknown or expired"
        );
    }
    return found->user;
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
