// Copies of a store as a whole. The files of users are no part of it.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>

namespace ars::store {

// Writes the newest commit of the store in directory `from` to `to`/data.mdb, without its free
// pages, while a server may go on. `to` exists. Returns the bytes written. Errors: "no_store",
// "backup_exists", "disk_full", "store_damaged", "store_failed"; none of them leaves a file behind.
[[nodiscard]] base::Result<std::size_t> back_up(const std::string& from, const std::string& to);

// Makes the store in directory `to` from the backup in `from`, after it was read from end to end.
// Errors: "no_backup", "store_exists" (a store is never replaced), "store_in_use", "store_newer",
// "store_damaged", "disk_full", "store_failed".
[[nodiscard]] base::Result<std::size_t> restore(
    const std::string& from, const std::string& to, std::size_t max_size
);

}  // namespace ars::store
