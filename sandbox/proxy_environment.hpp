// How programs are told of the proxy. One that ignores all of this simply has no network.
#pragma once

#include <string>
#include <vector>

namespace ars::sandbox {

// Adds what a command of a scope with `allowed_hosts` needs to `environment` ("NAME=value"). What
// is set there already stays.
void add_proxy_environment(std::vector<std::string>& environment);

}  // namespace ars::sandbox
