#include "sandbox/egress_rules.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <charconv>

namespace ars::sandbox {

namespace {

constexpr std::size_t kLabelBytes = 63;  // RFC 1035
constexpr std::size_t kNameBytes = 253;
constexpr std::size_t kShownBytes = 1024;  // of the list of what is allowed
constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

// Of ASCII only, whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_label_char(char c) {
    return (c >= 'a' && c <= 'z') || is_upper(c) || is_digit(c) || c == '-' || c == '_';
}
char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

// inet_aton reads "127.1", "2130706433" and "0x7f.1" as addresses; in all of them the last label is
// a number. No top-level domain is one.
bool is_number(std::string_view label) {
    if (label.starts_with("0x")) {
        return true;
    }
    return std::ranges::all_of(label, is_digit);
}

std::string_view label_fault(std::string_view label) {
    if (label.empty()) {
        return "it has an empty label (no dot at either end, no two dots in a row)";
    }
    if (label.size() > kLabelBytes) {
        return "a label is longer than 63 characters";
    }
    if (!std::ranges::all_of(label, is_label_char)) {
        return "only ASCII letters, digits, hyphens and dots are accepted (a name in another "
               "script is written as xn--...)";
    }
    if (label.front() == '-' || label.back() == '-') {
        return "a label begins or ends with a hyphen";
    }
    return {};
}

// What an attacker wrote, fit for a message.
std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text.substr(0, kNameBytes)) {
        out += c >= ' ' && c <= '~' ? c : '?';
    }
    return out + "\"";
}

std::optional<std::uint16_t> parse_port(std::string_view digits) {
    std::uint16_t port = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, fault] = std::from_chars(digits.data(), end, port);
    if (fault != std::errc() || stop != end || port == 0 || digits.size() > 5) {
        return std::nullopt;
    }
    return port;
}

}  // namespace

base::Result<HostName> HostName::parse(std::string_view text) {
    const auto refuse = [text](std::string_view why) {
        return base::fail(
            base::ErrorKind::invalid,
            "bad_host",
            "the host " + quoted(text) + " is refused: " + std::string(why)
        );
    };
    if (text.size() > kNameBytes) {
        return refuse("it is longer than 253 characters");
    }
    HostName name;
    name.text_.resize(text.size());
    std::ranges::transform(text, name.text_.begin(), lower);
    std::string_view rest = name.text_;
    for (;;) {
        const std::size_t dot = rest.find('.');
        const std::string_view label = rest.substr(0, dot);
        if (const auto fault = label_fault(label); !fault.empty()) {
            return refuse(fault);
        }
        if (dot == std::string_view::npos) {
            if (is_number(label)) {
                return refuse("addresses are not accepted, only names");
            }
            return name;
        }
        rest.remove_prefix(dot + 1);
    }
}

bool HostName::is_below(const HostName& parent) const {
    return text_.size() > parent.text_.size() && text_.ends_with(parent.text_) &&
           text_[text_.size() - parent.text_.size() - 1] == '.';
}

base::Result<EgressTarget> parse_authority(
    std::string_view text, std::optional<std::uint16_t> default_port
) {
    const std::size_t colon = text.rfind(':');
    auto host = HostName::parse(text.substr(0, colon));
    if (!host) {
        return std::unexpected(host.error());
    }
    auto port = default_port;
    if (colon != std::string_view::npos) {
        port = parse_port(text.substr(colon + 1));
    }
    if (!port) {
        return base::fail(
            base::ErrorKind::invalid,
            "bad_port",
            quoted(text) + " is refused: it needs a port from 1 to 65535, like example.com:443"
        );
    }
    return EgressTarget{std::move(*host), *port};
}

base::Result<EgressRules::Rule> EgressRules::parse_rule(const std::string& entry) {
    const auto refuse = [&entry](const std::string& why) {
        return base::fail(
            base::ErrorKind::invalid,
            "bad_allowed_host",
            quoted(entry) + ": " + why +
                R"(; write "example.com", "*.example.com", "example.com:8443" or, )"
                R"(for a private address, "registry.internal=10.0.0.0/8")"
        );
    };
    Rule rule;
    std::string_view text = entry;
    const std::size_t equals = text.find('=');
    std::string_view ranges = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    text = text.substr(0, equals);
    rule.subdomains = text.starts_with("*.");
    text.remove_prefix(rule.subdomains ? 2 : 0);
    const bool has_port = text.find(':') != std::string_view::npos;
    auto target = parse_authority(text, kHttpPort);
    if (!target) {
        return refuse(target.error().message);
    }
    rule.host = std::move(target->host);
    if (has_port) {
        rule.port = target->port;
    }
    while (equals != std::string_view::npos) {
        const std::size_t comma = ranges.find(',');
        auto range = AddressRange::parse(ranges.substr(0, comma));
        if (!range) {
            return refuse(range.error().message);
        }
        if (!may_be_named(*range)) {
            return refuse(
                range->text() +
                " is not within loopback or one private network, which is all that "
                "may be named here"
            );
        }
        rule.addresses.push_back(std::move(*range));
        if (comma == std::string_view::npos) {
            break;
        }
        ranges.remove_prefix(comma + 1);
    }
    return rule;
}

base::Result<EgressRules> EgressRules::parse(const std::vector<std::string>& entries) {
    EgressRules rules;
    if (entries.size() > base::limits::kAllowedHosts) {
        return base::fail(
            base::ErrorKind::invalid, "bad_allowed_host", "allowed_hosts has too many entries"
        );
    }
    for (const std::string& entry : entries) {
        auto rule = parse_rule(entry);
        if (!rule) {
            return std::unexpected(rule.error());
        }
        rules.rules_.push_back(std::move(*rule));
        if (rules.shown_.size() < kShownBytes) {
            rules.shown_ += (rules.shown_.empty() ? "" : ", ") + entry.substr(0, entry.find('='));
        } else if (!rules.shown_.ends_with("...")) {
            rules.shown_ += ", ...";
        }
    }
    return rules;
}

bool EgressRules::Rule::matches(const EgressTarget& target) const {
    const bool name_matches = subdomains ? target.host.is_below(host) : target.host == host;
    const bool port_matches =
        port ? target.port == *port : target.port == kHttpPort || target.port == kHttpsPort;
    return name_matches && port_matches;
}

base::Result<void> EgressRules::check(const EgressTarget& target) const {
    if (std::ranges::any_of(rules_, [&](const Rule& rule) { return rule.matches(target); })) {
        return {};
    }
    return base::fail(
        base::ErrorKind::forbidden,
        "host_not_allowed",
        target.text() + " is not in this policy's allowed_hosts (" +
            (shown_.empty() ? "which is empty: nothing can be reached" : "allowed: " + shown_) +
            "). Whoever runs this appliance can add it there"
    );
}

base::Result<void> EgressRules::check(
    const EgressTarget& target, const boost::asio::ip::address& address
) const {
    const std::string_view special = special_address(address);
    for (const Rule& rule : rules_) {
        if (!rule.matches(target)) {
            continue;
        }
        const bool reachable =
            rule.addresses.empty()
                ? special.empty()
                : !is_metadata(address) &&
                      std::ranges::any_of(rule.addresses, [&](const AddressRange& range) {
                          return range.contains(address);
                      });
        if (reachable) {
            return {};
        }
    }
    return base::fail(
        base::ErrorKind::forbidden,
        "address_not_allowed",
        target.host.text() + " leads to " + address.to_string() +
            (special.empty() ? std::string(", which is outside the addresses named for it")
                             : ", which is " + std::string(special)) +
            ": refused. An entry of allowed_hosts may name private addresses, like " + "\"" +
            target.host.text() + "=10.0.0.0/8\""
    );
}

}  // namespace ars::sandbox
