// The guest tree: names that tools, models and documentation agree on, and who owns it.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

#include <sys/types.h>

namespace ars::fsmount {

inline constexpr std::string_view kHome = "/home/gem";
inline constexpr std::string_view kUserData = "/home/gem/user-data";
inline constexpr std::string_view kSkills = "/home/gem/skills";
inline constexpr uid_t kGemUid = 1000;
inline constexpr gid_t kGemGid = 1000;

// The directory name of a user: a uid of [A-Za-z0-9_-]+ (at most 128) as it is, any other one as
// "uid-<sha256>", so that no uid can name a path.
[[nodiscard]] std::string safe_uid(std::string_view uid);

// A workdir path is relative POSIX without empty, "." or ".." parts, backslash, NUL or leading
// slash.
// "" names the workspace itself.
[[nodiscard]] base::Result<void> check_workdir(std::string_view workdir_path);

// "/home/gem/user-data" or "/home/gem/user-data/<workdir_path>".
[[nodiscard]] std::string guest_workdir(std::string_view workdir_path);

}  // namespace ars::fsmount
