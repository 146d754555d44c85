// Text that came from outside made safe to store and send: valid UTF-8, bounded, cut at code
// points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ars::base {

[[nodiscard]] bool is_utf8(std::string_view bytes);

struct CleanText {
    std::string text;    // valid UTF-8
    bool lossy = false;  // a byte was replaced by U+FFFD
};
[[nodiscard]] CleanText to_utf8(std::string_view bytes);

// At most `max_bytes` of `text` from its start or end, never inside a code point.
[[nodiscard]] std::string_view utf8_head(std::string_view text, std::size_t max_bytes);
[[nodiscard]] std::string_view utf8_tail(std::string_view text, std::size_t max_bytes);

// Head and tail of a text over `max_bytes` with a line between them that says how much is missing
// and (when given) where the whole text is. A text within the bound comes back as it is.
[[nodiscard]] std::string head_and_tail(
    std::string_view text, std::size_t max_bytes, std::string_view full_text_path = {}
);

// RFC 4648 with padding.
[[nodiscard]] std::string to_base64(std::string_view bytes);

[[nodiscard]] std::string_view trim(std::string_view text);

}  // namespace ars::base
