// What contradicts itself in a configuration whose shape is right.
#pragma once

#include "base/fields.hpp"
#include "server/config.hpp"

#include <vector>

namespace ars::server {

// Checks of appliance.yaml alone. `root` is the place of the whole document.
void check_config(const Config& config, const base::FieldPlace& root);

// Checks webhooks and reads their signing keys; one that can't be had is a fault.
void read_webhooks(Config& config, const base::FieldPlace& root);

// Reads the keys behind api_keys as digests; a key that can't be had is a fault.
[[nodiscard]] std::vector<people::DeclaredKey> read_api_keys(
    const Config& config, const base::FieldPlace& root, std::vector<std::string>& notes
);

}  // namespace ars::server
