// Where the certificates of trusted authorities are.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace ars::models {

// The path of the PEM bundle: `configured` if not empty, else SSL_CERT_FILE, else the first of the
// places where distributions keep it. One that is named but unreadable is an error, never passed
// over. Error code "no_ca_bundle", with what to do.
[[nodiscard]] base::Result<std::string> find_ca_bundle(std::string_view configured);

}  // namespace ars::models
