// What a policy's `allowed_hosts` means: names in one canonical form, matched and then dialled as
// that same value. No sockets and no resolver here; the proxy asks, and does as it is told.
//
// Of the many ways to write a host only one is accepted: labels of ASCII letters, digits, hyphens
// and underscores. Addresses in any notation, trailing dots, percent escapes, user names and
// Unicode are refused, so no two parsers can read one text as two hosts.
#pragma once

#include "base/result.hpp"
#include "sandbox/egress_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::sandbox {

class HostName {
  public:
    // Error "bad_host" says what is wrong with it.
    [[nodiscard]] static base::Result<HostName> parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }  // lower case
    // a.b.example is below b.example and example, not below itself.
    [[nodiscard]] bool is_below(const HostName& parent) const;
    bool operator==(const HostName&) const = default;

  private:
    std::string text_;
};

struct EgressTarget {
    HostName host;
    std::uint16_t port = 0;
    [[nodiscard]] std::string text() const { return host.text() + ":" + std::to_string(port); }
};

// "host:port", or "host" where there is a default. Errors "bad_host" and "bad_port".
[[nodiscard]] base::Result<EgressTarget> parse_authority(
    std::string_view text, std::optional<std::uint16_t> default_port
);

class EgressRules {
  public:
    // Entries are "example.com" (ports 80 and 443), "*.example.com" (its subdomains only), each
    // with
    // ":port" for that port alone, and with "=10.0.0.0/8,..." when the name is reached at private
    // addresses: then at these only. No entry: nothing is allowed. Error "bad_allowed_host".
    [[nodiscard]] static base::Result<EgressRules> parse(const std::vector<std::string>& entries);

    // Before anything is resolved. Error "host_not_allowed" lists what is.
    [[nodiscard]] base::Result<void> check(const EgressTarget& target) const;
    // One address that the name of a target was resolved to. Error "address_not_allowed".
    [[nodiscard]] base::Result<void> check(
        const EgressTarget& target, const boost::asio::ip::address& address
    ) const;

  private:
    struct Rule {
        HostName host;
        bool subdomains = false;
        std::optional<std::uint16_t> port;  // absent: 80 and 443
        std::vector<AddressRange> addresses;
        [[nodiscard]] bool matches(const EgressTarget& target) const;
    };
    static base::Result<Rule> parse_rule(const std::string& entry);

    std::vector<Rule> rules_;
    std::string shown_;  // the list in a refusal
};

}  // namespace ars::sandbox
