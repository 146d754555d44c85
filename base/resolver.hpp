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

namespace ars::base {

// Whether /etc/resolv.conf may complete a name ("web" to "web.corp.example"). Where a name was
// checked before it is resolved, it must not.
enum class SearchList : std::uint8_t { used, ignored };

class Resolver {
  public:
    // `name_servers` in c-ares' form ("127.0.0.1:5353,[::1]:53"); empty: those of /etc/resolv.conf.
    explicit Resolver(
        asio::any_io_executor executor,
        std::string name_servers = {},
        SearchList search = SearchList::used
    )
        : executor_(std::move(executor)), name_servers_(std::move(name_servers)), search_(search) {}

    // Addresses to try in order; never empty. Address literals and "localhost" ask nobody.
    // /etc/hosts counts, and the search list of /etc/resolv.conf unless ignored. Error codes
    // "dns_failed" (kind not_found when the name does not exist, unavailable otherwise) and
    // "dns_timeout". Throws operation_aborted when cancelled.
    Task<Result<std::vector<asio::ip::tcp::endpoint>>> resolve(
        std::string host, std::uint16_t port, Deadline deadline
    );

  private:
    asio::any_io_executor executor_;
    std::string name_servers_;
    SearchList search_;
};

}  // namespace ars::base
