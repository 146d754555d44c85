#include "fsmount/guest_path.hpp"

#include "base/text.hpp"
#include "fsmount/layout.hpp"

#include <climits>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include <sys/stat.h>

namespace ars::fsmount {

using base::Error;
using base::ErrorKind;

namespace {

std::string in_error(std::string_view path) {
    constexpr std::size_t kShown = 256;
    return quote_path(base::utf8_head(path, kShown)) + (path.size() > kShown ? "..." : "");
}

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

bool is_quoted(std::string_view text) {
    return text.size() >= 3 && text.starts_with("$'") && text.ends_with('\'');
}

// The value of up to `digits` digits of `base` at `at`, which moves behind them; -1 without any.
int take_number(std::string_view text, std::size_t& at, int base, int digits) {
    int value = -1;
    for (; digits > 0 && at < text.size(); --digits, ++at) {
        const std::size_t digit =
            std::string_view("0123456789abcdef")
                .find(static_cast<char>(std::tolower(static_cast<unsigned char>(text[at]))));
        if (digit >= static_cast<std::size_t>(base)) {
            break;
        }
        value = std::max(value, 0) * base + static_cast<int>(digit);
    }
    return value;
}

// The character of the escape behind a backslash at `at`, which moves behind it; -1: none known.
int take_escape(std::string_view text, std::size_t& at) {
    constexpr std::string_view kLetters = "abeEfnrtv\\'\"?";
    constexpr std::string_view kMeanings = "\a\b\x1b\x1b\f\n\r\t\v\\'\"?";
    if (at >= text.size()) {
        return -1;
    }
    if (text[at] == 'x') {
        return take_number(text, ++at, 16, 2);
    }
    if (const std::size_t letter = kLetters.find(text[at]); letter != std::string_view::npos) {
        ++at;
        return kMeanings[letter];
    }
    const int octal = take_number(text, at, 8, 3);
    return octal > 0xff ? -1 : octal;
}

// What follows `root` in `path`; false when `path` is not below it.
bool strip_root(std::string_view path, std::string_view root, std::string& rest) {
    if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) {
        return false;
    }
    rest = path.size() > root.size() ? path.substr(root.size() + 1) : std::string_view();
    return true;
}

}  // namespace

std::string_view root_path(GuestRoot root) {
    return root == GuestRoot::user_data ? kUserData : kSkills;
}

std::string GuestPath::text() const {
    std::string out(root_path(root));
    if (!rest.empty()) {
        out += '/';
        out += rest;
    }
    return out;
}

std::string GuestPath::shown() const { return quote_path(text()); }

std::string quote_path(std::string_view bytes) {
    const bool plain = std::ranges::none_of(bytes, is_control) && base::is_utf8(bytes);
    if (plain && !is_quoted(bytes)) {
        return std::string(bytes);
    }
    std::string out = "$'";
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\' || c == '\'') {
            out += '\\';
            out += c;
        } else if (is_control(byte) || byte >= 0x80) {
            constexpr std::string_view kHex = "0123456789abcdef";
            out += "\\x";
            out += kHex[byte >> 4U];
            out += kHex[byte & 15U];
        } else {
            out += c;
        }
    }
    return out + "'";
}

base::Result<std::string> unquote_path(std::string_view shown) {
    if (!is_quoted(shown)) {
        return std::string(shown);
    }
    const std::string_view inner = shown.substr(2, shown.size() - 3);
    std::string out;
    for (std::size_t at = 0; at < inner.size();) {
        if (inner[at] != '\\') {
            out += inner[at++];
            continue;
        }
        const int value = take_escape(inner, ++at);
        if (value < 0) {
            return base::fail(
                ErrorKind::invalid,
                "invalid_path",
                "path " + std::string(shown.substr(0, 256)) +
                    " has an unknown escape; $'...' is read as bash does: \\xff, \\n, \\\\, \\'"
            );
        }
        out += static_cast<char>(value);
    }
    return out;
}

bool names_directory(std::string_view path) {
    return path.ends_with('/') || path == "." || path.ends_with("/.");
}

std::vector<std::string> split_path(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (!part.empty() && part != ".") {
            parts.emplace_back(part);
        }
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    }
    return parts;
}

base::Result<GuestPath> parse_guest_path(std::string_view written, std::string_view cwd) {
    const auto unquoted = unquote_path(written);
    if (!unquoted) {
        return std::unexpected(unquoted.error());
    }
    const std::string& path = *unquoted;
    const auto invalid = [&](const char* why) {
        return base::fail(ErrorKind::invalid, "invalid_path", "path " + in_error(path) + " " + why);
    };
    if (path.empty()) {
        return invalid("is empty; write an absolute path such as \"/home/gem/user-data/report.md\""
        );
    }
    if (path.find('\0') != std::string::npos) {
        return invalid("has a NUL character");
    }
    std::string full;
    if (path.front() != '/') {
        full = cwd;
    }
    for (const std::string& part : split_path(path)) {
        if (part == "..") {
            return invalid("has a \"..\" part; write the absolute path without it");
        }
        full += '/';
        full += part;
    }
    if (full.size() >= PATH_MAX) {
        return invalid("is longer than 4095 bytes");
    }
    GuestPath out;
    out.directory = names_directory(path);
    if (strip_root(full, kUserData, out.rest)) {
        out.root = GuestRoot::user_data;
        return out;
    }
    if (strip_root(full, kSkills, out.rest)) {
        out.root = GuestRoot::skills;
        return out;
    }
    return std::unexpected(path_escape(full.empty() ? "/" : quote_path(full), ""));
}

Error path_escape(const std::string& guest, std::string_view why) {
    std::string message = guest + " is outside what file tools may use";
    if (!why.empty()) {
        message += " (";
        message += why;
        message += ")";
    }
    message += "; they see /home/gem/user-data (read and write) and /home/gem/skills (read only)";
    return Error{ErrorKind::forbidden, "path_escape", std::move(message), EXDEV};
}

Error outside_directory(const std::string& guest, std::string_view why) {
    std::string message = guest + " is outside the directory that this request is about";
    if (!why.empty()) {
        message += " (";
        message += why;
        message += ")";
    }
    return Error{ErrorKind::forbidden, "path_escape", std::move(message), EXDEV};
}

Error not_regular_file(const std::string& guest, unsigned mode) {
    const char* what = "something else";
    if (S_ISDIR(mode)) {
        what = "a directory";
    } else if (S_ISFIFO(mode)) {
        what = "a FIFO";
    } else if (S_ISSOCK(mode)) {
        what = "a socket";
    } else if (S_ISCHR(mode) || S_ISBLK(mode)) {
        what = "a device";
    } else if (S_ISLNK(mode)) {
        what = "a symbolic link";
    }
    return Error{
        ErrorKind::invalid, "not_regular_file", guest + " is " + what + ", not a regular file", 0
    };
}

Error file_error(const std::string& guest, int sys_errno) {
    const auto make = [&](ErrorKind kind, const char* code, const char* says) {
        return Error{kind, code, guest + " " + says, sys_errno};
    };
    switch (sys_errno) {
        case ENOENT:
            return make(ErrorKind::not_found, "not_found", "does not exist");
        case ENOTDIR:
            return make(
                ErrorKind::invalid, "not_a_directory", "has a part that is not a directory"
            );
        case EACCES:
        case EPERM:
            return make(
                ErrorKind::forbidden, "permission_denied", "may not be accessed (permission denied)"
            );
        case EROFS:
            return make(
                ErrorKind::forbidden,
                "read_only",
                "is read-only; write below /home/gem/user-data instead"
            );
        case EEXIST:
            return make(ErrorKind::conflict, "already_exists", "exists already");
        case ELOOP:
            return make(
                ErrorKind::invalid, "too_many_links", "leads through too many symbolic links"
            );
        case EXDEV:
            return path_escape(guest, "a link leads out");
        case ENAMETOOLONG:
            return make(ErrorKind::invalid, "name_too_long", "has a name that is too long");
        case EISDIR:
        case ENXIO:
            return make(ErrorKind::invalid, "not_regular_file", "is not a regular file");
        case ENOSPC:
        case EDQUOT:
            return make(ErrorKind::io, "no_space", "could not be written: no space left");
        case EFBIG:
            return make(ErrorKind::too_large, "file_too_large", "would exceed the file size limit");
        default:
            return Error{
                ErrorKind::io, "file_error", guest + ": " + std::strerror(sys_errno), sys_errno
            };
    }
}

}  // namespace ars::fsmount
