#include "sandbox/egress_address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace ars::sandbox {

namespace {

using boost::asio::ip::address;
using boost::asio::ip::address_v4;
using boost::asio::ip::address_v6;

using Bytes = std::array<unsigned char, 16>;  // an IPv4 address uses the first four

Bytes bytes_of(const address& value) {
    Bytes bytes{};
    if (value.is_v4()) {
        std::ranges::copy(value.to_v4().to_bytes(), bytes.begin());
    } else {
        bytes = value.to_v6().to_bytes();
    }
    return bytes;
}

unsigned width(const address& value) { return value.is_v4() ? 32 : 128; }

bool same_prefix(const address& a, const address& b, unsigned bits) {
    const Bytes left = bytes_of(a);
    const Bytes right = bytes_of(b);
    for (unsigned bit = 0; bit < bits; ++bit) {
        if (((left[bit / 8] ^ right[bit / 8]) & (0x80U >> (bit % 8))) != 0) {
            return false;
        }
    }
    return true;
}

struct Special {
    const char* range;
    std::string_view what;
};

constexpr std::string_view kLinkLocal = "link-local (metadata services are there)";

// IANA's special-purpose registries, in the words of a refusal.
constexpr Special kSpecialV4[] = {
    {"127.0.0.0/8", "loopback"},
    {"169.254.0.0/16", kLinkLocal},
    {"10.0.0.0/8", "a private network"},
    {"172.16.0.0/12", "a private network"},
    {"192.168.0.0/16", "a private network"},
    {"100.64.0.0/10", "a carrier's private network"},
    {"168.63.129.16", "a metadata service"},
    {"0.0.0.0/8", "unspecified"},
    {"192.0.0.0/24", "reserved"},
    {"192.0.2.0/24", "reserved for documentation"},
    {"192.88.99.0/24", "reserved"},
    {"198.18.0.0/15", "reserved for benchmarks"},
    {"198.51.100.0/24", "reserved for documentation"},
    {"203.0.113.0/24", "reserved for documentation"},
    {"224.0.0.0/4", "multicast"},
    {"240.0.0.0/4", "reserved"},
};

constexpr Special kSpecialV6[] = {
    {"::1", "loopback"},
    {"::", "unspecified"},
    {"::ffff:0:0/96", "an IPv4 address in an IPv6 one"},
    {"fe80::/10", kLinkLocal},
    {"fc00::/7", "a private network"},
    {"ff00::/8", "multicast"},
    {"2001::/23", "reserved (Teredo and others)"},
    {"2001:db8::/32", "reserved for documentation"},
    {"2002::/16", "an IPv4 address in an IPv6 one"},
    {"3fff::/20", "reserved for documentation"},
};

constexpr const char* kGlobalV6 = "2000::/3";   // all that was ever given out
constexpr const char* kNat64 = "64:ff9b::/96";  // an IPv4 address in the last four bytes

constexpr const char* kMayBeNamed[] = {
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "::1",
    "fc00::/7",
};

constexpr const char* kMetadata[] = {"100.100.100.200", "fd00:ec2::254", "fd20:ce::254"};

struct Known {
    AddressRange range;
    std::string_view what;
};

std::vector<Known> parsed(std::span<const Special> table) {
    std::vector<Known> out;
    for (const Special& entry : table) {
        out.push_back({AddressRange::parse(entry.range).value(), entry.what});
    }
    return out;
}

std::vector<AddressRange> parsed(std::span<const char* const> table) {
    std::vector<AddressRange> out;
    for (const char* text : table) {
        out.push_back(AddressRange::parse(text).value());
    }
    return out;
}

// The IPv4 address that a NAT64 gateway makes of it.
address inner_address(const address& value) {
    static const AddressRange nat64 = AddressRange::parse(kNat64).value();
    if (!nat64.contains(value)) {
        return value;
    }
    const auto bytes = value.to_v6().to_bytes();
    return address_v4({bytes[12], bytes[13], bytes[14], bytes[15]});
}

}  // namespace

base::Result<AddressRange> AddressRange::parse(std::string_view text) {
    const auto refuse = [text](const char* why) {
        return base::fail(
            base::ErrorKind::invalid,
            "bad_range",
            "\"" + std::string(text) + "\": " + why + "; write it like 10.0.0.0/8 or fd00::/8"
        );
    };
    const std::size_t slash = text.find('/');
    const std::string host(text.substr(0, slash));
    boost::system::error_code error;
    AddressRange range;
    range.first_ = boost::asio::ip::make_address(host, error);
    if (error || host.find('%') != std::string::npos) {
        return refuse("this is no IP address");
    }
    range.prefix_ = width(range.first_);
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        const char* const end = digits.data() + digits.size();
        const auto [stop, fault] = std::from_chars(digits.data(), end, range.prefix_);
        if (fault != std::errc() || stop != end || range.prefix_ > width(range.first_)) {
            return refuse("the prefix length is wrong");
        }
    }
    return range;
}

bool AddressRange::contains(const address& value) const {
    return value.is_v4() == first_.is_v4() && same_prefix(first_, value, prefix_);
}

bool AddressRange::contains(const AddressRange& other) const {
    return other.prefix_ >= prefix_ && contains(other.first_);
}

std::string AddressRange::text() const {
    return first_.to_string() + "/" + std::to_string(prefix_);
}

std::string_view special_address(const address& value) {
    static const std::vector<Known> special_v4 = parsed(kSpecialV4);
    static const std::vector<Known> special_v6 = parsed(kSpecialV6);
    static const AddressRange global_v6 = AddressRange::parse(kGlobalV6).value();
    const address inner = inner_address(value);
    for (const Known& known : inner.is_v4() ? special_v4 : special_v6) {
        if (known.range.contains(inner)) {
            return known.what;
        }
    }
    return inner.is_v4() || global_v6.contains(inner) ? std::string_view{} : "reserved";
}

bool may_be_named(const AddressRange& range) {
    static const std::vector<AddressRange> allowed = parsed(kMayBeNamed);
    return std::ranges::any_of(allowed, [&](const AddressRange& a) { return a.contains(range); });
}

bool is_metadata(const address& value) {
    static const std::vector<AddressRange> metadata = parsed(kMetadata);
    return std::ranges::any_of(metadata, [&](const AddressRange& m) { return m.contains(value); });
}

}  // namespace ars::sandbox
