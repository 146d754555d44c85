#include "runtime/models/ca_bundle.hpp"

#include <cstdlib>

#include <unistd.h>

namespace ars::models {

namespace {

constexpr const char* kKnownPlaces[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"
};

bool readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

std::unexpected<base::Error> refused(const std::string& why) {
    return base::fail(
        base::ErrorKind::unavailable,
        "no_ca_bundle",
        why +
            "; https providers can't be verified: install ca-certificates, or name a PEM file in "
            "ca_file or "
            "in the environment variable SSL_CERT_FILE"
    );
}

}  // namespace

base::Result<std::string> find_ca_bundle(std::string_view configured) {
    if (!configured.empty()) {
        std::string path(configured);
        return readable(path) ? base::Result<std::string>(path)
                              : refused("the configured ca_file " + path + " can't be read");
    }
    if (const char* named = std::getenv("SSL_CERT_FILE"); named != nullptr && *named != '\0') {
        std::string path(named);
        return readable(path) ? base::Result<std::string>(path)
                              : refused("SSL_CERT_FILE names " + path + ", which can't be read");
    }
    for (const char* place : kKnownPlaces) {
        if (readable(place)) {
            return std::string(place);
        }
    }
    return refused("no bundle of certificate authorities was found in its usual places");
}

}  // namespace ars::models
