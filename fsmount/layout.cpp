#include "fsmount/layout.hpp"

#include "base/digest.hpp"

#include <algorithm>

namespace ars::fsmount {

namespace {

constexpr std::size_t kUidBytes = 128;
constexpr std::size_t kWorkdirBytes = 1024;
constexpr std::size_t kNameBytes = 255;

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

std::unexpected<base::Error> bad_workdir(std::string_view path, const char* why) {
    return base::fail(
        base::ErrorKind::invalid,
        "invalid_workdir",
        "workdir_path \"" + std::string(path) + "\" " + why +
            "; write a relative path such as \"projects/report\""
    );
}

}  // namespace

std::string safe_uid(std::string_view uid) {
    if (!uid.empty() && uid.size() <= kUidBytes && std::ranges::all_of(uid, is_plain)) {
        return std::string(uid);
    }
    return "uid-" + base::sha256_hex(uid);
}

base::Result<void> check_workdir(std::string_view workdir_path) {
    if (workdir_path.empty()) {
        return {};
    }
    if (workdir_path.size() > kWorkdirBytes) {
        return bad_workdir(workdir_path.substr(0, 64), "is longer than 1024 bytes");
    }
    for (const char c : workdir_path) {
        if (c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            return bad_workdir(workdir_path, "has a backslash or control character");
        }
    }
    if (workdir_path.find("://") != std::string_view::npos) {
        return bad_workdir(workdir_path, "is a URL");
    }
    std::string_view rest = workdir_path;
    for (;;) {
        const std::size_t slash = rest.find('/');
        const std::string_view part = rest.substr(0, slash);
        if (part.empty()) {
            return bad_workdir(workdir_path, "has a leading, trailing or double slash");
        }
        if (part == "." || part == "..") {
            return bad_workdir(workdir_path, "has a \".\" or \"..\" part");
        }
        if (part.size() > kNameBytes) {
            return bad_workdir(workdir_path, "has a part longer than 255 bytes");
        }
        if (slash == std::string_view::npos) {
            return {};
        }
        rest.remove_prefix(slash + 1);
    }
}

std::string guest_workdir(std::string_view workdir_path) {
    std::string out(kUserData);
    if (!workdir_path.empty()) {
        out += '/';
        out += workdir_path;
    }
    return out;
}

}  // namespace ars::fsmount
