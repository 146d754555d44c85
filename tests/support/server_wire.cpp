#include "tests/support/server_wire.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdexcept>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace ars::tests {

namespace {

constexpr int kReadLimitSeconds = 60;

SSL* ssl(void* session) { return static_cast<SSL*>(session); }

template <class T, void (*Free)(T*)>
struct Deleter {
    void operator()(T* value) const { Free(value); }
};
using Certificate = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO, BIO_free_all>>;

void require(bool holds, const char* what) {
    if (!holds) {
        throw std::runtime_error(std::string("test certificate: ") + what);
    }
}

Bio reader_of(const std::string& pem) {
    return Bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string text_of(const Bio& bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    ::X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    require(extension != nullptr && ::X509_add_ext(certificate, extension, -1) == 1, "extension");
    ::X509_EXTENSION_free(extension);
}

}  // namespace

ServerTls::ServerTls(const std::string& certificate_pem, const std::string& key_pem) {
    SSL_CTX* context = ::SSL_CTX_new(::TLS_server_method());
    context_ = context;
    const Certificate certificate(
        ::PEM_read_bio_X509(reader_of(certificate_pem).get(), nullptr, nullptr, nullptr)
    );
    const Key key(::PEM_read_bio_PrivateKey(reader_of(key_pem).get(), nullptr, nullptr, nullptr));
    require(::SSL_CTX_use_certificate(context, certificate.get()) == 1, "certificate");
    require(::SSL_CTX_use_PrivateKey(context, key.get()) == 1, "key");
}

ServerTls::~ServerTls() { ::SSL_CTX_free(static_cast<SSL_CTX*>(context_)); }

ServerWire::ServerWire(base::Fd socket, const ServerTls* tls) : socket_(std::move(socket)) {
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval limit{kReadLimitSeconds, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (tls != nullptr) {
        session_ = ::SSL_new(static_cast<SSL_CTX*>(tls->context_));
        ::SSL_set_fd(ssl(session_), socket_.get());
        alive_ = ::SSL_accept(ssl(session_)) == 1;
    }
}

ServerWire::~ServerWire() { close(false); }

bool ServerWire::read_into(std::string& buffer) {
    char bytes[16384];
    const ssize_t n = session_ != nullptr ? ::SSL_read(ssl(session_), bytes, sizeof bytes)
                                          : ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (n <= 0) {
        return false;
    }
    buffer.append(bytes, static_cast<std::size_t>(n));
    return true;
}

bool ServerWire::write(std::string_view bytes, std::size_t split) {
    while (!bytes.empty()) {
        const std::string_view piece = bytes.substr(0, split == 0 ? bytes.size() : split);
        const ssize_t n =
            session_ != nullptr
                ? ::SSL_write(ssl(session_), piece.data(), static_cast<int>(piece.size()))
                : ::send(socket_.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

bool ServerWire::pause(std::chrono::milliseconds time) {
    if (time.count() == 0) {
        return true;
    }
    pollfd wait{socket_.get(), POLLRDHUP, 0};
    return ::poll(&wait, 1, static_cast<int>(time.count())) == 0;
}

void ServerWire::close(bool reset) {
    if (reset && socket_) {
        const linger now{1, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    ::SSL_free(ssl(std::exchange(session_, nullptr)));
    socket_.reset();
    alive_ = false;
}

TestCertificate make_certificate(const std::string& name) {
    const Key key(::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
    const Certificate certificate(::X509_new());
    require(key && certificate, "key");
    X509* raw = certificate.get();
    ::X509_set_version(raw, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(raw), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(raw), -3600);
    ::X509_gmtime_adj(::X509_getm_notAfter(raw), 86400);
    ::X509_set_pubkey(raw, key.get());
    X509_NAME* subject = ::X509_get_subject_name(raw);
    const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
    ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
    ::X509_set_issuer_name(raw, subject);
    const bool address = name.find_first_not_of("0123456789.") == std::string::npos;
    add_extension(raw, NID_subject_alt_name, (address ? "IP:" : "DNS:") + name);
    add_extension(raw, NID_basic_constraints, "critical,CA:TRUE");
    require(::X509_sign(raw, key.get(), ::EVP_sha256()) > 0, "signature");
    const Bio certificate_out(::BIO_new(::BIO_s_mem()));
    const Bio key_out(::BIO_new(::BIO_s_mem()));
    require(::PEM_write_bio_X509(certificate_out.get(), raw) == 1, "certificate");
    require(
        ::PEM_write_bio_PrivateKey(
            key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr
        ) == 1,
        "key"
    );
    return {text_of(certificate_out), text_of(key_out)};
}

}  // namespace ars::tests
