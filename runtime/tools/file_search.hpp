// Searching one file for a literal text, in bounded memory.
#pragma once

#include "base/deadline.hpp"
#include "base/fd.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ars::tools {

struct FoundLine {
    std::uint64_t number = 0;
    std::string_view text;  // the line, or the piece of a long one that holds the text
};

struct FileSearch {
    bool binary = false;      // a NUL in the first bytes: not searched
    bool complete = true;     // false: the deadline passed, or the file could not be read
    std::uint64_t lines = 0;  // lines that hold the text
};

// Calls `found` once for each line that holds `pattern`, until it returns false.
[[nodiscard]] FileSearch search_file(
    const base::Fd& file,
    std::string_view pattern,
    base::Deadline deadline,
    const std::function<bool(const FoundLine&)>& found
);

}  // namespace ars::tools
