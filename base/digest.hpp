// Hashes and random identifiers.
#pragma once

#include <string>
#include <string_view>

namespace ars::base {

// 64 lower-case hex digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
// The same of a keyed hash (RFC 2104).
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);
// A version 4 UUID from the kernel's random source: "0b8f6a1e-....".
[[nodiscard]] std::string random_uuid();
// Compares without telling by its time where the first difference is. For secrets.
[[nodiscard]] bool equal_constant_time(std::string_view a, std::string_view b);

}  // namespace ars::base
