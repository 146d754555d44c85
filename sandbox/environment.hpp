// Where a command's environment points in the tier that has no /tmp and no /home/gem of its own.
#pragma once

#include <map>
#include <string>

namespace ars::sandbox {

// What default_environment() puts below /tmp goes below `private_tmp`, HOME into it; values that
// the caller chose stay. Unchanged when `private_tmp` is empty.
[[nodiscard]] std::map<std::string, std::string> placed(
    std::map<std::string, std::string> environment, const std::string& private_tmp
);

}  // namespace ars::sandbox
