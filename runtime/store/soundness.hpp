// Whether what is stored can be read. LMDB has no checksums: it follows what a damaged page says,
// asserts, or reads outside its map. Here that ends in a verdict and not in the process.
//
// At start only, while the process has one thread: the signals of a bad access are caught
// meanwhile.
#pragma once

#include "runtime/store/tables.hpp"

namespace ars::store {

// False when the table of tables or the root of one of them is no page. Reads a few pages.
[[nodiscard]] bool has_sound_roots(const Environment& env);

// False when a page of any table is missing or is none. Reads every page, so it is only for a file
// that is suspect. The data file must be as long as its pages need (extend_data_file): lost pages
// at its end read as zeros.
[[nodiscard]] bool is_sound(const Environment& env, const Tables& tables);

}  // namespace ars::store
