#include "fsmount/guest_path.hpp"

#include "fsmount/layout.hpp"

#include <climits>

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

namespace ars::fsmount {

using base::Error;
using base::ErrorKind;

namespace {

std::string quoted(std::string_view path) {
    constexpr std::size_t kShown = 256;
    std::string out = "\"";
    out += path.substr(0, kShown);
    out += path.size() > kShown ? "...\"" : "\"";
    return out;
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

base::Result<GuestPath> parse_guest_path(std::string_view path, std::string_view cwd) {
    const auto invalid = [&](const char* why) {
        return base::fail(ErrorKind::invalid, "invalid_path", "path " + quoted(path) + " " + why);
    };
    if (path.empty()) {
        return invalid("is empty; write an absolute path such as \"/home/gem/user-data/report.md\""
        );
    }
    if (path.find('\0') != std::string_view::npos) {
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
    if (strip_root(full, kUserData, out.rest)) {
        out.root = GuestRoot::user_data;
        return out;
    }
    if (strip_root(full, kSkills, out.rest)) {
        out.root = GuestRoot::skills;
        return out;
    }
    return std::unexpected(path_escape(full.empty() ? "/" : full, ""));
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
