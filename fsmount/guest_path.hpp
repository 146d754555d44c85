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
    std::string rest;  // "a/b" without empty, "." or ".." parts; "" names the root itself

    [[nodiscard]] std::string text() const;  // "/home/gem/user-data/a/b"
};

// `path` made absolute from `cwd` (a guest path). Errors: "invalid_path" (empty, NUL, "..", too
// long) and "path_escape" (outside both roots), each saying what to write instead.
[[nodiscard]] base::Result<GuestPath> parse_guest_path(std::string_view path, std::string_view cwd);

// The parts between slashes, empty and "." ones left out.
[[nodiscard]] std::vector<std::string> split_path(std::string_view path);

// The failure of a system call on a guest path, with the code that tools and the API show:
// not_found, not_a_directory, permission_denied, read_only, no_space, already_exists,
// too_many_links, path_escape, name_too_long, not_regular_file, else file_error. Never names a host
// path.
[[nodiscard]] base::Error file_error(const std::string& guest, int sys_errno);
[[nodiscard]] base::Error not_regular_file(const std::string& guest, unsigned mode);
[[nodiscard]] base::Error path_escape(const std::string& guest, std::string_view why);

}  // namespace ars::fsmount
