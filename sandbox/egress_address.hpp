// Which addresses a name may lead to. A name that is allowed says nothing about the address behind
// it: whoever answers for the name could point it at this machine, at a cloud's metadata service or
// into a private network. Pure functions of the address.
#pragma once

#include "base/result.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::sandbox {

class AddressRange {
  public:
    // "10.0.0.0/8", "fd00::/8", or one address. Error "bad_range".
    [[nodiscard]] static base::Result<AddressRange> parse(std::string_view text);

    // Only addresses of the same family: ::ffff:10.0.0.1 is not in 10.0.0.0/8.
    [[nodiscard]] bool contains(const boost::asio::ip::address& address) const;
    [[nodiscard]] bool contains(const AddressRange& other) const;
    [[nodiscard]] std::string text() const;

  private:
    boost::asio::ip::address first_;
    unsigned prefix_ = 0;
};

// Empty for an address of the public Internet; else what it is: "loopback", "a private network".
// An IPv6 address that carries an IPv4 one (NAT64) is what the inner one is.
[[nodiscard]] std::string_view special_address(const boost::asio::ip::address& address);

// True when an operator may name this range as reachable: loopback, private, carrier or
// unique-local, and nothing else. Metadata and link-local addresses never are.
[[nodiscard]] bool may_be_named(const AddressRange& range);
// True for the well-known metadata addresses that lie inside ranges which may be named.
[[nodiscard]] bool is_metadata(const boost::asio::ip::address& address);

}  // namespace ars::sandbox
