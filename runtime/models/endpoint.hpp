// The base URL of a provider, taken apart once, so that nobody below handles URLs as text.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ars::models {

struct Endpoint {
    bool tls = false;
    std::string host;  // name or address, without the brackets of an IPv6 literal
    std::uint16_t port = 0;
    std::string path;  // "/v1": what request paths are appended to, no slash at its end

    // What belongs into the Host header: the port only when it is not the scheme's own.
    [[nodiscard]] std::string authority() const;
    // For people: "http://host:port/v1".
    [[nodiscard]] std::string text() const;
};

// "http[s]://host[:port][/path]". Error code "bad_url": user info, queries and fragments are
// refused, because a key must not hide in a URL that is logged.
[[nodiscard]] base::Result<Endpoint> parse_endpoint(std::string_view base_url);

}  // namespace ars::models
