// An API key as it is kept: its digest and what it may do, never the secret itself.
#pragma once

#include "runtime/people/rate_limit.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::people {

struct ApiKey {
    std::string id;
    std::string name;    // for people, lists and the log
    std::string sha256;  // of the secret, 64 lower-case hex digits
    std::string prefix;  // first characters of the secret, to tell keys apart; "" of declared ones
    std::string uid;     // whose it is
    std::string created_by;
    std::string request_id;            // of its creation, unique to who created it; "" = none
    std::string intent;                // digest of what was asked for with that id
    std::vector<std::string> act_for;  // uids, or "*"
    std::int64_t created_ms = 0;
    std::int64_t expires_ms = 0;  // 0 = never
    std::int64_t revoked_ms = 0;  // 0 = not revoked
    bool enabled = true;
    bool declared = false;                // stands in the configuration file
    std::optional<RateLimit> rate_limit;  // of a declared one; absent = the server's

    [[nodiscard]] bool may_act_for(std::string_view other) const;
    // Apart from whether its user exists.
    [[nodiscard]] bool is_usable(std::int64_t now_ms) const {
        return enabled && revoked_ms == 0 && (expires_ms == 0 || expires_ms > now_ms);
    }
};

// "ars_" and 32 random bytes in hex.
[[nodiscard]] std::string make_secret();
// What of a secret is shown later: enough to tell keys apart, too little to guess the rest.
[[nodiscard]] std::string_view shown_prefix(std::string_view secret);
// A declared key has the same id at every boot, whatever its secret is.
[[nodiscard]] std::string declared_key_id(std::string_view name);

}  // namespace ars::people
