// Removing a directory tree whose content tools chose, so nothing in it is trusted. Linked into a
// scope's init: libc and descriptors only.
#pragma once

#include "base/deadline.hpp"

#include <string>

namespace ars::fsmount {

// Without following links, and no deeper than 512 levels. What is left at the deadline stays.
void remove_tree(const std::string& path, base::Deadline deadline = base::Deadline::never());
// The same for one name in an open directory. False when something of it is left.
bool remove_tree_at(int directory, const char* name, base::Deadline deadline);

}  // namespace ars::fsmount
