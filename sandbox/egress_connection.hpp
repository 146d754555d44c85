// One connection of a sandboxed program to its proxy: reads the request, asks the rules, dials, and
// passes bytes on until both sides are done. What it holds is bounded: one head and one buffer for
// each direction.
#pragma once

#include "base/async.hpp"
#include "base/limits.hpp"
#include "base/resolver.hpp"
#include "sandbox/egress_request.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

namespace ars::sandbox {

struct EgressLimits {
    std::uint32_t connections = base::limits::kEgressConnectionsPerScope;
    base::milliseconds head = base::limits::kEgressHeadTimeout;
    base::milliseconds connect = base::limits::kEgressConnectTimeout;
    base::milliseconds idle = base::limits::kEgressIdleTimeout;
    base::milliseconds linger = base::limits::kEgressLinger;
};

// What the connections of one proxy share; outlives them.
struct EgressContext {
    EgressRules rules;
    EgressLimits limits;
    base::Resolver resolver;
    std::function<void(const EgressFault&)> on_refused;  // of a 4xx
};

class EgressConnection {
  public:
    EgressConnection(boost::asio::ip::tcp::socket client, EgressContext& context);
    EgressConnection(const EgressConnection&) = delete;
    EgressConnection& operator=(const EgressConnection&) = delete;

    // Serves it to its end. Once.
    base::Task<void> run();
    // Cuts what is late. Called by the proxy's ticker.
    void expire(std::chrono::steady_clock::time_point now);
    // Both sockets are closed; run() ends soon.
    void close();

  private:
    using tcp = boost::asio::ip::tcp;
    template <class T>
    using Answer = std::expected<T, EgressFault>;

    base::Task<Answer<EgressRequest>> read_request();
    base::Task<Answer<void>> connect(EgressTarget target);
    base::Task<bool> dial(tcp::endpoint address, base::milliseconds share);
    base::Task<void> relay(EgressRequest request);
    base::Task<void> refuse(EgressFault fault);

    base::Task<void> tunnel_up();
    base::Task<void> tunnel_down();
    base::Task<void> pass_request(EgressRequest request);
    base::Task<void> pass_answer();
    base::Task<bool> send_body(std::uint64_t left);
    base::Task<bool> send_chunks();
    base::Task<bool> copy(tcp::socket& from, tcp::socket& to);
    base::Task<bool> write(tcp::socket& to, std::string_view bytes);
    base::Task<bool> read_more();  // into in_, which is empty; false at the end
    base::Task<void> discard_rest();

    void due_in(base::milliseconds budget);
    void touch();

    EgressContext& context_;
    tcp::socket client_;
    tcp::socket server_;
    std::string in_;  // came from the client and is not used yet
    std::chrono::steady_clock::time_point due_;
    bool client_ended_ = false;  // sends no more; reading again would wait for ever
    bool dialling_ = false;      // being late costs the attempt, not the connection
    bool ending_ = false;        // no activity moves due_ any more
    bool closed_ = false;
};

}  // namespace ars::sandbox
