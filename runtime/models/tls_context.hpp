// What makes a TLS connection to a provider trustworthy: the authorities, the least version, the
// name that the certificate must carry. Included by http_client.cpp only: OpenSSL's headers end
// there.
#pragma once

#include "base/result.hpp"

#include <boost/asio/ssl/context.hpp>

#include <string>

namespace ars::models {

// A client context that verifies against the bundle of `ca_file` (see find_ca_bundle). OpenSSL
// loads no configuration file. Error code "no_ca_bundle".
[[nodiscard]] base::Result<boost::asio::ssl::context> make_tls_context(const std::string& ca_file);

// The session will ask for `host` (SNI, unless it is an address) and accept only its certificate.
// False when OpenSSL takes no such name.
[[nodiscard]] bool expect_host(SSL* session, const std::string& host);

// Why the certificate of a failed handshake was refused; empty when that was not the reason.
[[nodiscard]] std::string certificate_fault(SSL* session);

}  // namespace ars::models
