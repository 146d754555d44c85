// A path as a tool writes it, checked as text only: which root it names and what follows. Opening
// it is the business of fsmount/paths.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::fsmount {

enum class GuestRoot : std::uint8_t {
    user_data,  // read and write
    skills,     // read only
};
[[nodiscard]] std::string_view root_path(GuestRoot root);

struct GuestPath {
    GuestRoot root = GuestRoot::user_data;
    std::string rest;        // "a/b" without empty, "." or ".." parts; "" names the root itself
    bool directory = false;  // written with a slash at its end: a file there is the wrong thing
    std::string within;      // below user-data: what lies elsewhere is outside, also behind a link

    [[nodiscard]] std::string text() const;   // "/home/gem/user-data/a/b", any bytes
    [[nodiscard]] std::string shown() const;  // the same as quote_path() writes it
};

// A name or path as results and errors show it. Linux names are bytes; one that is no UTF-8 or has
// control characters is written as bash quotes it, $'a\xff', which bash and parse_guest_path() take
// back, so that whatever a listing shows can be opened.
[[nodiscard]] std::string quote_path(std::string_view bytes);
// The bytes behind either form. Error "invalid_path": an escape that bash would not know.
[[nodiscard]] base::Result<std::string> unquote_path(std::string_view shown);

// `path` (quoted or not) made absolute from `cwd` (a guest path). Errors: "invalid_path" (empty,
// NUL, "..", too long) and "path_escape" (outside both roots), each saying what to write instead.
[[nodiscard]] base::Result<GuestPath> parse_guest_path(std::string_view path, std::string_view cwd);

// The parts between slashes, empty and "." ones left out.
[[nodiscard]] std::vector<std::string> split_path(std::string_view path);
// Whether `path` can only name a directory: it ends in "/" or "/.".
[[nodiscard]] bool names_directory(std::string_view path);

// The failure of a system call on a guest path, with the code that tools and the API show:
// not_found, not_a_directory, permission_denied, read_only, no_space, already_exists,
// too_many_links, path_escape, name_too_long, not_regular_file, else file_error. Never names a host
// path.
[[nodiscard]] base::Error file_error(const std::string& guest, int sys_errno);
[[nodiscard]] base::Error not_regular_file(const std::string& guest, unsigned mode);
[[nodiscard]] base::Error path_escape(const std::string& guest, std::string_view why);
// The same code for a path that leaves what it must stay within.
[[nodiscard]] base::Error outside_directory(const std::string& guest, std::string_view why);

}  // namespace ars::fsmount
