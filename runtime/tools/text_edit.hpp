// Replacing a piece of text in a file's bytes: exact, literal, and nothing outside the piece
// changes.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ars::tools {

struct TextEdit {
    std::string_view old_text;  // a line feed in it also matches CR LF
    std::string_view new_text;  // literal; its line feeds become CR LF where the file has them
    bool replace_all = false;
};

struct EditedText {
    std::string text;
    std::vector<std::size_t> lines;  // 1-based, where each replaced piece began
};

// Errors: "invalid_argument" (empty or equal texts), "no_match", "not_unique" with the line
// numbers, "decode_error" when the bytes are not UTF-8 and the edit could hit half a character.
[[nodiscard]] base::Result<EditedText> apply_edit(std::string_view file, const TextEdit& edit);

}  // namespace ars::tools
