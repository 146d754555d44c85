#include "runtime/tools/text_edit.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ars::tools {

using base::ErrorKind;

namespace {

constexpr std::size_t kNone = std::string_view::npos;

struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
};

// Finds the places of a text. Linear but for texts whose first line stands everywhere and whose
// rest fits nowhere: those end at the deadline.
class Finder {
  public:
    Finder(std::string_view file, std::string_view old_text, base::Deadline deadline)
        : file_(file), old_(old_text), deadline_(deadline) {
        const std::string_view first_line = old_.substr(0, old_.find('\n'));
        feed_first_ = first_line.empty();
        key_ = feed_first_ ? std::string_view("\n") : first_line;
    }

    // The first match at or after `from`; begin == kNone when there is none, or late().
    Span next(std::size_t from) {
        for (std::size_t at = find_key(from); at != kNone && !late_; at = find_key(at + 1)) {
            const bool behind_return = feed_first_ && at > from && file_[at - 1] == '\r';
            const std::size_t begin = behind_return ? at - 1 : at;
            const std::size_t end = match_end(begin);
            if (end != kNone) {
                return {begin, end};
            }
        }
        return {kNone, kNone};
    }

    [[nodiscard]] bool late() const { return late_; }

  private:
    [[nodiscard]] std::size_t find_key(std::size_t from) const {
        const void* found =
            from >= file_.size()
                ? nullptr
                : ::memmem(file_.data() + from, file_.size() - from, key_.data(), key_.size());
        return found == nullptr
                   ? kNone
                   : static_cast<std::size_t>(static_cast<const char*>(found) - file_.data());
    }

    // Where a match that begins at `at` ends, or kNone.
    std::size_t match_end(std::size_t at) {
        for (std::size_t i = 0; i < old_.size(); ++i) {
            if (++compared_ % kCheckEvery == 0 && deadline_.passed()) {
                late_ = true;
                return kNone;
            }
            const bool lone_feed = old_[i] == '\n' && (i == 0 || old_[i - 1] != '\r');
            if (lone_feed && at + 1 < file_.size() && file_[at] == '\r' && file_[at + 1] == '\n') {
                at += 2;
                continue;
            }
            if (at >= file_.size() || file_[at] != old_[i]) {
                return kNone;
            }
            ++at;
        }
        return at;
    }

    static constexpr std::uint64_t kCheckEvery = 1024 * 1024;  // bytes compared

    std::string_view file_;
    std::string_view old_;
    base::Deadline deadline_;
    std::string_view key_;
    bool feed_first_ = false;
    bool late_ = false;
    std::uint64_t compared_ = 0;
};

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
    constexpr std::size_t kHintBytes = 256;  // std::string_view::find() is quadratic
    const std::string_view first = first_words(old_text).substr(0, kHintBytes);
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

std::unexpected<base::Error> too_late() {
    return base::fail(
        ErrorKind::timeout,
        "timed_out",
        "searching for old_string took too long: give a piece whose first line is rarer"
    );
}

// Whether another place stands behind the first one; overlapping ones count too.
base::Result<void> check_unique(std::string_view file, Finder& finder, Span first, bool feed) {
    constexpr std::size_t kListed = 20;
    std::string lines;
    std::size_t count = 0;
    std::size_t line = 1;
    std::size_t counted = 0;
    for (Span span = first; span.begin != kNone;) {
        line += static_cast<std::size_t>(
            std::ranges::count(file.substr(counted, span.begin - counted), '\n')
        );
        counted = span.begin;
        lines += fmt::format("{}{}", count == 0 ? "" : ", ", line);
        if (++count > kListed) {
            lines += ", ...";
            break;
        }
        // CR LF is one newline.
        span = finder.next(span.begin + (feed && file[span.begin] == '\r' ? 2 : 1));
    }
    if (finder.late()) {
        return too_late();
    }
    if (count == 1) {
        return {};
    }
    return base::fail(
        ErrorKind::conflict,
        "not_unique",
        fmt::format(
            "old_string occurs {} times, in lines {}; add lines around it to make it unique, or "
            "set replace_all",
            count > kListed ? fmt::format("more than {}", kListed) : fmt::format("{}", count),
            lines
        )
    );
}

// Replaces the piece at `span` and, with replace_all, every one behind it.
base::Result<EditedText> replace_from(
    std::string_view file, const TextEdit& edit, Finder& finder, Span span, std::size_t max_bytes
) {
    const bool utf8 = base::is_utf8(file);
    EditedText out;
    std::size_t copied = 0;
    std::size_t line = 1;
    while (span.begin != kNone) {
        if (!utf8) {
            if (auto checked = check_encoding(file, edit, span); !checked) {
                return std::unexpected(checked.error());
            }
        }
        const std::string_view before = file.substr(copied, span.begin - copied);
        line += static_cast<std::size_t>(std::ranges::count(before, '\n'));
        out.first_line = out.places == 0 ? line : out.first_line;
        out.last_line = line;
        ++out.places;
        const std::string_view piece = file.substr(span.begin, span.end - span.begin);
        line += static_cast<std::size_t>(std::ranges::count(piece, '\n'));
        out.text += before;
        out.text += with_file_newlines(file, span, edit.new_text);
        copied = span.end;
        if (out.text.size() + (file.size() - copied) > max_bytes) {
            return base::fail(
                ErrorKind::too_large,
                "file_too_large",
                fmt::format("the file would grow beyond {} bytes; use execute", max_bytes)
            );
        }
        span = edit.replace_all ? finder.next(span.end) : Span{kNone, kNone};
    }
    if (finder.late()) {
        return too_late();
    }
    out.text += file.substr(copied);
    return out;
}

}  // namespace

base::Result<EditedText> apply_edit(
    std::string_view file, const TextEdit& edit, std::size_t max_bytes, base::Deadline deadline
) {
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
    Finder finder(file, edit.old_text, deadline);
    const Span first = finder.next(0);
    if (finder.late()) {
        return too_late();
    }
    if (first.begin == kNone) {
        return no_match(file, edit.old_text);
    }
    if (!edit.replace_all) {
        auto unique = check_unique(file, finder, first, edit.old_text.front() == '\n');
        if (!unique) {
            return std::unexpected(unique.error());
        }
    }
    return replace_from(file, edit, finder, first, max_bytes);
}

}  // namespace ars::tools
