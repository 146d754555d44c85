// Host names to addresses through c-ares, because getaddrinfo of a static glibc loads shared
// objects.
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ars::models {

class Resolver {
  public:
    // `name_servers` in c-ares' form ("127.0.0.1:5353,[::1]:53"); empty: those of /etc/resolv.conf.
    explicit Resolver(base::asio::any_io_executor executor, std::string name_servers = {})
        : executor_(std::move(executor)), name_servers_(std::move(name_servers)) {}

    // Addresses to try in order; never empty. Address literals and "localhost" ask nobody.
    // /etc/hosts and the search list of /etc/resolv.conf count. Error codes "dns_failed" (kind
    // not_found when the name does not exist, unavailable otherwise) and "dns_timeout". Throws
    // operation_aborted when cancelled.
    base::Task<base::Result<std::vector<base::asio::ip::tcp::endpoint>>> resolve(
        std::string host, std::uint16_t port, base::Deadline deadline
    );

  private:
    base::asio::any_io_executor executor_;
    std::string name_servers_;
};

}  // namespace ars::models
