#include "base/digest.hpp"

#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include <sys/random.h>

namespace ars::base {

namespace {

// OpenSSL otherwise reads openssl.cnf from a built-in directory at its first use, and may be told
// by it to load shared objects: never in a static binary.
void init_crypto() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

std::string to_hex(const unsigned char* raw, unsigned int size) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(std::size_t{size} * 2);
    for (unsigned int i = 0; i < size; ++i) {
        out += kHex[raw[i] >> 4U];
        out += kHex[raw[i] & 15U];
    }
    return out;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
    init_crypto();
    // EVP_sha256() would be looked up among all providers each time.
    static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), raw, &size, algorithm, nullptr) != 1) {
        throw std::runtime_error("SHA-256 is missing from libcrypto");
    }
    return to_hex(raw, size);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
    init_crypto();
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    const auto* const text = reinterpret_cast<const unsigned char*>(bytes.data());
    if (HMAC(
            EVP_sha256(), key.data(), static_cast<int>(key.size()), text, bytes.size(), raw, &size
        ) == nullptr) {
        throw std::runtime_error("HMAC is missing from libcrypto");
    }
    return to_hex(raw, size);
}

std::string random_uuid() {
    // One look into the kernel for many: a run takes ten. Up to 256 bytes come whole.
    thread_local std::array<std::uint8_t, 256> pool;
    thread_local std::size_t used = pool.size();
    boost::uuids::uuid id{};
    if (used == pool.size()) {
        if (::getrandom(pool.data(), pool.size(), 0) != static_cast<ssize_t>(pool.size())) {
            throw std::runtime_error("getrandom gave too few bytes");
        }
        used = 0;
    }
    std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(used), sizeof id.data, id.data);
    used += sizeof id.data;
    id.data[6] = static_cast<std::uint8_t>((id.data[6] & 0x0FU) | 0x40U);
    id.data[8] = static_cast<std::uint8_t>((id.data[8] & 0x3FU) | 0x80U);
    return boost::uuids::to_string(id);
}

bool equal_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace ars::base
