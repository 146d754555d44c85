#include "runtime/models/endpoint.hpp"

#include <algorithm>
#include <charconv>

namespace ars::models {

namespace {

std::unexpected<base::Error> bad_url(std::string_view url, std::string_view why) {
    return base::fail(
        base::ErrorKind::invalid,
        "bad_url",
        "\"" + std::string(url) + "\" is not a usable base URL: " + std::string(why) +
            "; write http://host:port/v1 or https://host/v1"
    );
}

bool is_plain(char c) { return c > 0x20 && c < 0x7F; }

}  // namespace

std::string Endpoint::authority() const {
    std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
    if (port != (tls ? 443 : 80)) {
        out += ":" + std::to_string(port);
    }
    return out;
}

std::string Endpoint::text() const { return (tls ? "https://" : "http://") + authority() + path; }

base::Result<Endpoint> parse_endpoint(std::string_view base_url) {
    Endpoint out;
    std::string_view rest = base_url;
    if (rest.starts_with("https://")) {
        out.tls = true;
        rest.remove_prefix(8);
    } else if (rest.starts_with("http://")) {
        rest.remove_prefix(7);
    } else {
        return bad_url(base_url, "it starts with neither http:// nor https://");
    }
    if (!std::ranges::all_of(rest, is_plain)) {
        return bad_url(base_url, "it has spaces, control or non-ASCII characters");
    }
    if (rest.find_first_of("?#@") != std::string_view::npos) {
        return bad_url("(hidden)", "it has user info, a query or a fragment");
    }
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    std::string_view host = rest.substr(0, slash);
    std::string_view path = rest.substr(slash);
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    std::string_view port;
    if (host.starts_with('[')) {
        const std::size_t close = host.find(']');
        if (close == std::string_view::npos) {
            return bad_url(base_url, "the bracket of the IPv6 address is not closed");
        }
        port = host.substr(close + 1);
        host = host.substr(1, close - 1);
    } else if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
        port = host.substr(colon);
        host = host.substr(0, colon);
    }
    if (host.empty()) {
        return bad_url(base_url, "it names no host");
    }
    out.port = out.tls ? 443 : 80;
    if (!port.empty()) {
        const char* end = port.data() + port.size();
        const auto [stop, error] = std::from_chars(port.data() + 1, end, out.port);
        if (port.front() != ':' || error != std::errc{} || stop != end || out.port == 0) {
            return bad_url(base_url, "the port is not a number from 1 to 65535");
        }
    }
    out.host = host;
    out.path = path;
    return out;
}

}  // namespace ars::models
