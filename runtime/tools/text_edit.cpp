#include "runtime/tools/text_edit.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ars::tools {

using base::ErrorKind;

namespace {

constexpr std::size_t kNone = std::string_view::npos;

struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
};

// Where a match of `old_text` that begins at `at` ends, or kNone.
std::size_t match_end(std::string_view file, std::size_t at, std::string_view old_text) {
    for (std::size_t i = 0; i < old_text.size(); ++i) {
        const bool lone_feed = old_text[i] == '\n' && (i == 0 || old_text[i - 1] != '\r');
        if (lone_feed && at + 1 < file.size() && file[at] == '\r' && file[at + 1] == '\n') {
            at += 2;
            continue;
        }
        if (at >= file.size() || file[at] != old_text[i]) {
            return kNone;
        }
        ++at;
    }
    return at;
}

// The first match at or after `from`. Only places where the first line of `old_text` stands are
// tried.
Span find_match(std::string_view file, std::size_t from, std::string_view old_text) {
    const std::string_view first_line = old_text.substr(0, old_text.find('\n'));
    const std::string_view key = first_line.empty() ? std::string_view("\n") : first_line;
    for (std::size_t at = file.find(key, from); at != kNone; at = file.find(key, at + 1)) {
        const bool before_feed = first_line.empty() && at > from && file[at - 1] == '\r';
        const std::size_t begin = before_feed ? at - 1 : at;
        const std::size_t end = match_end(file, begin, old_text);
        if (end != kNone) {
            return {begin, end};
        }
    }
    return {kNone, kNone};
}

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; });
}

// Line feeds of the new text as the file has them: those of the piece, else those of the file's
// first line.
std::string with_file_newlines(std::string_view file, Span span, std::string_view new_text) {
    const std::string_view piece = file.substr(span.begin, span.end - span.begin);
    const std::string_view guide = piece.find('\n') == kNone ? file : piece;
    const std::size_t feed = guide.find('\n');
    if (feed == kNone || feed == 0 || guide[feed - 1] != '\r') {
        return std::string(new_text);
    }
    std::string out;
    for (std::size_t i = 0; i < new_text.size(); ++i) {
        if (new_text[i] == '\n' && (i == 0 || new_text[i - 1] != '\r')) {
            out += '\r';
        }
        out += new_text[i];
    }
    return out;
}

std::size_t line_at(std::string_view file, std::size_t at) {
    return static_cast<std::size_t>(std::ranges::count(file.substr(0, at), '\n')) + 1;
}

std::string list_lines(const std::vector<std::size_t>& lines) {
    constexpr std::size_t kShown = 20;
    std::string out;
    for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) {
        out += (i == 0 ? "" : ", ") + std::to_string(lines[i]);
    }
    return lines.size() > kShown ? out + ", ..." : out;
}

// The first line that is not blank, without the white space around it.
std::string_view first_words(std::string_view text) {
    while (!text.empty()) {
        const std::size_t feed = text.find('\n');
        const std::string_view line = base::trim(text.substr(0, feed));
        if (!line.empty()) {
            return line;
        }
        text.remove_prefix(feed == kNone ? text.size() : feed + 1);
    }
    return {};
}

// Most failed edits differ in white space only: say where the text probably is.
std::unexpected<base::Error> no_match(std::string_view file, std::string_view old_text) {
    std::string message = "old_string does not occur in the file";
    const std::string_view first = first_words(old_text);
    const std::size_t near = first.empty() ? kNone : file.find(first);
    if (near != kNone) {
        message += fmt::format(
            "; its first words stand in line {}, so check white space and the lines after it "
            "(read_file's "
            "line numbers are not part of the text)",
            line_at(file, near)
        );
    }
    return base::fail(ErrorKind::not_found, "no_match", message);
}

base::Result<void> check_arguments(const TextEdit& edit) {
    if (edit.old_text.empty()) {
        return base::fail(
            ErrorKind::invalid,
            "invalid_argument",
            "old_string is empty; give the text to replace, or write a new file with write_file"
        );
    }
    if (edit.old_text == edit.new_text) {
        return base::fail(
            ErrorKind::invalid, "invalid_argument", "old_string and new_string are the same"
        );
    }
    return {};
}

// In encodings like GBK the second byte of a character may look like an ASCII letter. An edit of
// such a file must be ASCII, and start behind an ASCII byte: then it can't hit half a character.
base::Result<void> check_encoding(std::string_view file, const TextEdit& edit, Span span) {
    const bool clear = span.begin == 0 || static_cast<unsigned char>(file[span.begin - 1]) < 0x80;
    if (clear && is_ascii(edit.old_text) && is_ascii(edit.new_text)) {
        return {};
    }
    return base::fail(
        ErrorKind::invalid,
        "decode_error",
        "the file is not UTF-8 and this edit could damage a character of it; use execute with a "
        "program that "
        "knows the encoding (iconv, python3)"
    );
}

}  // namespace

base::Result<EditedText> apply_edit(std::string_view file, const TextEdit& edit) {
    if (auto checked = check_arguments(edit); !checked) {
        return std::unexpected(checked.error());
    }
    if (file.find('\0') != kNone) {
        return base::fail(
            ErrorKind::invalid,
            "decode_error",
            "the file has NUL bytes: it is not a text that can be edited"
        );
    }
    std::vector<Span> matches;
    EditedText out;
    const std::size_t kept = edit.replace_all ? kNone : 1;
    for (Span span = find_match(file, 0, edit.old_text); span.begin != kNone;) {
        matches.push_back(span);
        // Overlapping places count as places too when one must be chosen; CR LF is one newline.
        const std::size_t newline = file[span.begin] == '\r' && edit.old_text[0] == '\n' ? 2 : 1;
        span = find_match(file, kept == 1 ? span.begin + newline : span.end, edit.old_text);
    }
    if (matches.empty()) {
        return no_match(file, edit.old_text);
    }
    std::size_t line = 1;
    std::size_t counted = 0;
    for (const Span& span : matches) {
        line += static_cast<std::size_t>(
            std::ranges::count(file.substr(counted, span.begin - counted), '\n')
        );
        counted = span.begin;
        out.lines.push_back(line);
    }
    if (matches.size() > kept) {
        return base::fail(
            ErrorKind::conflict,
            "not_unique",
            fmt::format(
                "old_string occurs {} times, in lines {}; add lines around it to make it unique, "
                "or set "
                "replace_all",
                matches.size(),
                list_lines(out.lines)
            )
        );
    }
    const bool utf8 = base::is_utf8(file);
    std::size_t copied = 0;
    for (const Span& span : matches) {
        if (!utf8) {
            if (auto checked = check_encoding(file, edit, span); !checked) {
                return std::unexpected(checked.error());
            }
        }
        out.text += file.substr(copied, span.begin - copied);
        out.text += with_file_newlines(file, span, edit.new_text);
        copied = span.end;
    }
    out.text += file.substr(copied);
    return out;
}

}  // namespace ars::tools
