// Whether all that is stored can be read. It reads every page, so it is only for a file that is
// suspect.
#pragma once

#include "runtime/store/tables.hpp"

namespace ars::store {

// False when a page of any table is missing or is none. The data file must be as long as its pages
// need (extend_data_file): lost pages at its end read as zeros.
[[nodiscard]] bool is_sound(const Environment& env, const Tables& tables);

}  // namespace ars::store
