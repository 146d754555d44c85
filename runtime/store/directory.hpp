// The directory of a store: made private, and owned by one process at a time.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <string>

namespace ars::store {

// Makes the directory and its missing parents with mode 0700 and takes it for this process. The
// lock lasts as long as the descriptor. Errors: "store_in_use" (names the owner's pid),
// "disk_full", "store_failed".
[[nodiscard]] base::Result<base::Fd> take_directory(const std::string& directory);

// Gives LMDB's reader table its blocks before it is mapped: a full disk must be an error, not a
// SIGBUS.
[[nodiscard]] base::Result<void> reserve_reader_table(
    const std::string& directory, unsigned readers
);

// Makes the data file at least `bytes` long, so that a page beyond the end of a truncated file
// reads as zeros, which LMDB refuses, and not as a SIGBUS. True when it was shorter.
[[nodiscard]] base::Result<bool> extend_data_file(const std::string& directory, std::size_t bytes);

// LMDB opens its files without FD_CLOEXEC in some versions. For the time before any child is
// started.
void close_on_exec(const std::string& directory);

// A new file survives a power cut only when its directory does.
[[nodiscard]] base::Result<void> sync_directory(const std::string& directory);

}  // namespace ars::store
