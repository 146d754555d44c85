// Numbered lines of a text file, in bounded memory: what read_file shows.
#pragma once

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "fsmount/paths.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ars::tools {

inline constexpr std::size_t kPageLineBytes =
    5000;  // a longer line is shown in parts: 12, 12.1, 12.2
inline constexpr std::uint64_t kPageScanBytes = 512ULL * 1024 * 1024;  // read to reach an offset

struct PageRequest {
    std::uint64_t offset = 0;  // lines to skip
    std::uint64_t limit = 2000;
    base::Deadline deadline = base::Deadline::never();
};

struct TextPage {
    std::string text;  // "     1\tfirst line\n"...
    std::uint64_t lines = 0;
    bool more = false;  // the file goes on after the last line shown
    std::string note;   // why it ends early, when a bound was met
};

// Errors: "binary_file" (a NUL), "decode_error" (not UTF-8), "invalid_argument" (offset behind the
// end), "file_too_large" (offset too far in).
[[nodiscard]] base::Result<TextPage> read_page(
    const fsmount::OpenFile& file, const PageRequest& request, const std::string& shown
);

// Whether the first bytes look like something else than text, and what it is ("a PNG image"); ""
// for text.
[[nodiscard]] std::string binary_kind(std::string_view first_bytes);
inline constexpr std::size_t kSniffBytes = 8192;
// "12 bytes", or "214748364800 bytes, sparse: 0 stored".
[[nodiscard]] std::string size_text(const fsmount::OpenFile& file);

}  // namespace ars::tools
