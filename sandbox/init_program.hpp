// The program ars-scope-init, carried inside this one.
#pragma once

#include <string_view>

namespace ars::sandbox {

[[nodiscard]] std::string_view init_program();

}  // namespace ars::sandbox
