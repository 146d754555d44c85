#include "runtime/models/tls_context.hpp"

#include "runtime/models/ca_bundle.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace ars::models {

namespace {

namespace ssl = boost::asio::ssl;

}  // namespace

base::Result<ssl::context> make_tls_context(const std::string& ca_file) {
    const auto bundle = find_ca_bundle(ca_file);
    if (!bundle) {
        return std::unexpected(bundle.error());
    }
    ::OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    ssl::context context(ssl::context::tls_client);
    boost::system::error_code error;
    context.load_verify_file(*bundle, error);
    if (error) {
        return base::fail(
            base::ErrorKind::unavailable,
            "no_ca_bundle",
            *bundle + " holds no usable certificates: " + error.message()
        );
    }
    context.set_verify_mode(ssl::verify_peer);
    ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    ::SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
    return context;
}

bool expect_host(SSL* session, const std::string& host) {
    boost::system::error_code no_address;
    boost::asio::ip::make_address(host, no_address);
    if (!no_address) {
        return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(session), host.c_str()) == 1;
    }
    return ::SSL_set_tlsext_host_name(session, host.c_str()) == 1 &&
           ::SSL_set1_host(session, host.c_str()) == 1;
}

std::string certificate_fault(SSL* session) {
    const long verdict = ::SSL_get_verify_result(session);
    return verdict == X509_V_OK ? "" : ::X509_verify_cert_error_string(verdict);
}

}  // namespace ars::models
