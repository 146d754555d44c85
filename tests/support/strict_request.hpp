// What the strictest provider accepts: the test server answers 400 to anything else, so that a
// history which would brick a conversation somewhere fails a test here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ars::tests {

// The first fault of the body of POST /chat/completions, in words; empty when there is none.
[[nodiscard]] std::optional<std::string> find_request_fault(std::string_view body);

}  // namespace ars::tests
