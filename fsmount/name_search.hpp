// Finding names in a tree, level by level, so that what is near is found first. Every bound counts
// what is read, so that no tree a tool can build makes a search long. Links are found, not entered.
#pragma once

#include "base/fd.hpp"
#include "fsmount/paths.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ars::fsmount {

struct SearchBounds {
    std::size_t results = 500;
    std::size_t directories = 600;
    std::size_t depth = 15;        // of directories that are read; the start has 0
    std::size_t width = 500;       // names read of one directory
    std::size_t entries = 10'000;  // names read of all
};

// Both are asked with the path relative to the start.
struct SearchFilter {
    std::function<bool(const std::string& relative)> matches;
    // Of a directory: neither found nor entered.
    std::function<bool(const std::string& relative)> passes_over;
};

struct FoundName {
    std::string relative;
    FileInfo info;
};

struct NameSearch {
    std::vector<FoundName> found;
    bool complete = true;  // false: a bound was met, or a directory may not be read
};

[[nodiscard]] NameSearch search_names(
    const base::Fd& start, const SearchBounds& bounds, const SearchFilter& filter
);

}  // namespace ars::fsmount
