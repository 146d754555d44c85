// The one way out of a scope whose policy has `allowed_hosts`: an HTTP proxy that runs in the
// server and listens inside the scope's own network. The listener is the scope's identity; nothing
// that a program says can make it another's.
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "sandbox/egress_connection.hpp"
#include "sandbox/scope.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <string>

namespace ars::sandbox {

class EgressProxy {
  public:
    // `listener` is a listening TCP socket. `name_servers` as in base::Resolver. `log` must outlive
    // the proxy; `generation` is the scope's, for the log. `counts` is shared by all proxies.
    EgressProxy(
        boost::asio::any_io_executor executor,
        base::Fd listener,
        EgressRules rules,
        std::string name_servers,
        std::uint64_t generation,
        const base::Log& log,
        std::shared_ptr<EgressCounts> counts,
        EgressLimits limits = {}
    );

    // Told of each host that was asked for and is not allowed. Before start().
    void on_denied_host(std::function<void(const std::string&)> call) {
        on_denied_host_ = std::move(call);
    }
    // Begins to accept. Once; close() must be awaited before destruction.
    void start();
    // Cuts every connection and waits until nothing of the proxy runs.
    base::Task<void> close();

  private:
    using tcp = boost::asio::ip::tcp;
    base::Task<void> accept_all();
    void admit(tcp::socket socket);
    base::Task<void> host(std::list<EgressConnection>::iterator connection);
    base::Task<void> tick();
    void on_refused(const EgressFault& fault);

    tcp::acceptor acceptor_;
    std::uint64_t generation_;
    const base::Log& log_;
    std::shared_ptr<EgressCounts> counts_;
    EgressContext context_;
    std::function<void(const std::string&)> on_denied_host_;
    std::list<EgressConnection> connections_;
    base::TaskGroup tasks_;  // accepting, ticking, one for each connection
    bool ticking_ = false;
    bool closed_ = false;
    std::chrono::steady_clock::time_point minute_;  // of the log lines counted below
    std::uint32_t lines_ = 0;
};

}  // namespace ars::sandbox
