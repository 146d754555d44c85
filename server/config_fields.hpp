// The field tables of appliance.yaml.
#pragma once

#include "base/fields.hpp"
#include "server/config.hpp"

namespace ars::server {

[[nodiscard]] const base::Fields<Config>& config_fields();

}  // namespace ars::server
