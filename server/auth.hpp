// Who is calling. With keys: the bearer of a known one. Without: everybody is the local user, which
// is why the server then listens on loopback only and refuses what a web page could make a browser
// send.
#pragma once

#include "base/result.hpp"
#include "runtime/agents/agent.hpp"
#include "server/http_message.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

struct ApiKey {
    std::string name;    // for the log
    std::string sha256;  // of the key, 64 lower-case hex digits
    agents::User user;
    std::int64_t expires_ms = 0;  // 0 = never
};

class Authenticator {
  public:
    // `local_user` is who calls when `keys` is empty. `listen_host` (an address or a name, without
    // port) is accepted in Host next to loopback names.
    Authenticator(std::vector<ApiKey> keys, agents::User local_user, std::string listen_host);

    [[nodiscard]] bool keyless() const { return keys_.empty(); }
    // `Authorization: Bearer KEY` or `x-api-key: KEY`. Errors: unauthorized "missing_key",
    // "invalid_key"; without keys forbidden "foreign_host", "foreign_origin".
    [[nodiscard]] base::Result<agents::User> authenticate(const HttpRequest& request) const;

  private:
    [[nodiscard]] base::Result<void> refuse_foreign_pages(const HttpRequest& request) const;
    [[nodiscard]] bool is_own_host(std::string_view host) const;

    std::vector<ApiKey> keys_;
    agents::User local_user_;
    std::string listen_host_;
};

}  // namespace ars::server
