// Who is calling. With keys: the bearer of a known one. Without: everybody is the local user, which
// is why the server then listens on loopback only and refuses what a web page could make a browser
// send.
#pragma once

#include "base/result.hpp"
#include "runtime/people/directory.hpp"
#include "server/http_message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace ars::server {

class Authenticator {
  public:
    // `listen_host` (an address or a name, without port) is accepted in Host next to loopback
    // names. `people` outlives this.
    Authenticator(people::Directory& people, std::string listen_host);

    [[nodiscard]] bool keyless() const { return people_.keyless(); }
    // `Authorization: Bearer KEY` or `x-api-key: KEY`, and `X-Acting-For: UID` for a key that may.
    // Sets who calls, or says why not: 401 "missing_key", "invalid_key"; 429 "rate_limited"; 403
    // "acting_not_allowed", "unknown_user"; without keys 403 "foreign_host", "foreign_origin".
    [[nodiscard]] std::optional<HttpResponse> admit(HttpRequest& request) const;

  private:
    [[nodiscard]] base::Result<people::Caller> caller_without_key(const HttpRequest& request) const;
    [[nodiscard]] base::Result<const people::ApiKey*> key_of(const HttpRequest& request) const;
    [[nodiscard]] base::Result<people::Caller> caller_of(
        const people::ApiKey& key, const HttpRequest& request
    ) const;
    [[nodiscard]] base::Result<void> refuse_foreign_pages(const HttpRequest& request) const;
    [[nodiscard]] bool is_own_host(std::string_view host) const;

    people::Directory& people_;
    std::string listen_host_;
};

}  // namespace ars::server
