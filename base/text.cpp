#include "base/text.hpp"

#include <cstdint>
#include <cstring>

namespace ars::base {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the valid UTF-8 sequence at the start of `s`, 0 when there is none (RFC 3629, table 3-7
// of Unicode).
std::size_t sequence_length(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
    const auto follows = [&](std::size_t i) { return i < s.size() && (byte(i) & 0xC0U) == 0x80U; };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return follows(1) ? 2 : 0;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (!follows(1) || !follows(2) || (lead == 0xE0 && byte(1) < 0xA0) ||
            (lead == 0xED && byte(1) > 0x9F)) {
            return 0;
        }
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (!follows(1) || !follows(2) || !follows(3) || (lead == 0xF0 && byte(1) < 0x90) ||
            (lead == 0xF4 && byte(1) > 0x8F)) {
            return 0;
        }
        return 4;
    }
    return 0;
}

// How many bytes at the start of `s` are ASCII: eight at a time, since most output is nothing else.
std::size_t ascii_length(std::string_view s) {
    std::size_t n = 0;
    while (n + 8 <= s.size()) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, s.data() + n, 8);
        if ((eight & 0x8080808080808080U) != 0) {
            break;
        }
        n += 8;
    }
    while (n < s.size() && static_cast<std::uint8_t>(s[n]) < 0x80) {
        ++n;
    }
    return n;
}

bool is_continuation(char c) { return (static_cast<std::uint8_t>(c) & 0xC0U) == 0x80U; }

}  // namespace

bool is_utf8(std::string_view bytes) {
    bytes.remove_prefix(ascii_length(bytes));
    while (!bytes.empty()) {
        const std::size_t n = sequence_length(bytes);
        if (n == 0) {
            return false;
        }
        bytes.remove_prefix(n);
        bytes.remove_prefix(ascii_length(bytes));
    }
    return true;
}

CleanText to_utf8(std::string_view bytes) {
    CleanText out;
    out.text.reserve(bytes.size());
    while (!bytes.empty()) {
        const std::size_t ascii = ascii_length(bytes);
        out.text += bytes.substr(0, ascii);
        bytes.remove_prefix(ascii);
        if (bytes.empty()) {
            break;
        }
        const std::size_t n = sequence_length(bytes);
        if (n == 0) {
            out.text += kReplacement;
            out.lossy = true;
            bytes.remove_prefix(1);
        } else {
            out.text += bytes.substr(0, n);
            bytes.remove_prefix(n);
        }
    }
    return out;
}

std::string_view utf8_head(std::string_view text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) {
        return text;
    }
    std::size_t end = max_bytes;
    while (end > 0 && is_continuation(text[end])) {
        --end;
    }
    return text.substr(0, end);
}

std::string_view utf8_tail(std::string_view text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) {
        return text;
    }
    std::size_t start = text.size() - max_bytes;
    while (start < text.size() && is_continuation(text[start])) {
        ++start;
    }
    return text.substr(start);
}

std::string head_and_tail(
    std::string_view text, std::size_t max_bytes, std::string_view full_text_path
) {
    if (text.size() <= max_bytes) {
        return std::string(text);
    }
    const std::string_view head = utf8_head(text, max_bytes / 2);
    const std::string_view tail = utf8_tail(text, max_bytes - max_bytes / 2);
    std::string out(head);
    out += "\n[... " + std::to_string(text.size() - head.size() - tail.size()) + " bytes omitted";
    if (!full_text_path.empty()) {
        out += "; full text: ";
        out += full_text_path;
    }
    out += " ...]\n";
    out += tail;
    return out;
}

std::string to_base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::string_view group = bytes.substr(i, 3);
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            bits = bits << 8 | (k < group.size() ? static_cast<std::uint8_t>(group[k]) : 0U);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            out += k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
        }
    }
    return out;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n\f\v";
    const std::size_t first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace ars::base
