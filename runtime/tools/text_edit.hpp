// Replacing a piece of text in a file's bytes: exact, literal, and nothing outside the piece
// changes.
#pragma once

#include "base/deadline.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace ars::tools {

struct TextEdit {
    std::string_view old_text;  // a line feed in it also matches CR LF
    std::string_view new_text;  // literal; its line feeds become CR LF where the file has them
    bool replace_all = false;
};

struct EditedText {
    std::string text;
    std::size_t places = 0;
    std::size_t first_line = 0;  // 1-based, where the first and the last replaced piece began
    std::size_t last_line = 0;
};

// Errors: "invalid_argument" (empty or equal texts), "no_match", "not_unique" with the line
// numbers, "decode_error" when the bytes are not UTF-8 and the edit could hit half a character,
// "file_too_large" when the result would be, "timed_out" at the deadline (a text that almost
// matches everywhere takes long).
[[nodiscard]] base::Result<EditedText> apply_edit(
    std::string_view file,
    const TextEdit& edit,
    std::size_t max_bytes,
    base::Deadline deadline = base::Deadline::never()
);

}  // namespace ars::tools
