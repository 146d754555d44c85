// What the server counts, in Prometheus' text format.
#pragma once

#include "server/api.hpp"

#include <string>

namespace ars::server {

[[nodiscard]] std::string metrics_text(const Api& api);

}  // namespace ars::server
