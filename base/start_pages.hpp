// What only the start of a long-lived program needed.
#pragma once

namespace ars::base {

// Unmaps this program's code and constants: what is used again comes back from the page cache by
// itself, and what only its start used no longer counts as its own.
void let_go_of_start_pages();

}  // namespace ars::base
