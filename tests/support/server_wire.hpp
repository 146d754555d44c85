// One accepted connection of a test server, plain or TLS, with blocking calls. The only part of the
// test support that knows OpenSSL's sockets.
#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace ars::tests {

class ServerTls {
  public:
    // Throws std::runtime_error when the PEM texts can't be used.
    ServerTls(const std::string& certificate_pem, const std::string& key_pem);
    ~ServerTls();
    ServerTls(const ServerTls&) = delete;
    ServerTls& operator=(const ServerTls&) = delete;

  private:
    friend class ServerWire;
    void* context_ = nullptr;
};

class ServerWire {
  public:
    // With `tls` the handshake is made here; see alive().
    ServerWire(base::Fd socket, const ServerTls* tls);
    ~ServerWire();
    ServerWire(const ServerWire&) = delete;
    ServerWire& operator=(const ServerWire&) = delete;

    [[nodiscard]] bool alive() const { return alive_; }
    // Appends what comes next; false when the client is gone.
    bool read_into(std::string& buffer);
    // In pieces of `split` bytes when that is not 0; false when the client is gone.
    bool write(std::string_view bytes, std::size_t split);
    // Sleeps; false as soon as the client hangs up.
    bool pause(std::chrono::milliseconds time);
    void close(bool reset);

  private:
    base::Fd socket_;
    void* session_ = nullptr;
    bool alive_ = true;
};

// A key and a certificate signed by itself for `name` (a host name or an address), as PEM.
struct TestCertificate {
    std::string certificate_pem;
    std::string key_pem;
};
[[nodiscard]] TestCertificate make_certificate(const std::string& name);

}  // namespace ars::tests
