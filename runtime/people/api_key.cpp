#include "runtime/people/api_key.hpp"

#include "base/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include <sys/random.h>

namespace ars::people {

namespace {

constexpr std::string_view kSecretMark = "ars_";  // what scanners for leaked keys look for
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kShownCharacters = 12;
constexpr std::size_t kIdDigits = 16;

}  // namespace

bool ApiKey::may_act_for(std::string_view other) const {
    return std::ranges::any_of(act_for, [&](const std::string& allowed) {
        return allowed == "*" || allowed == other;
    });
}

std::string make_secret() {
    std::array<unsigned char, kSecretBytes> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
        throw std::runtime_error("getrandom gave too few bytes");
    }
    std::string secret(kSecretMark);
    for (const unsigned char byte : random) {
        secret += fmt::format("{:02x}", byte);
    }
    return secret;
}

std::string_view shown_prefix(std::string_view secret) {
    return secret.substr(0, kShownCharacters);
}

std::string declared_key_id(std::string_view name) {
    return "config-" + base::sha256_hex(name).substr(0, kIdDigits);
}

}  // namespace ars::people
