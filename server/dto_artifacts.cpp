#include "server/dto_artifacts.hpp"

#include "fsmount/guest_path.hpp"
#include "fsmount/layout.hpp"
#include "server/dto_files.hpp"

#include <algorithm>

namespace ars::server {

namespace {

bool is_below(std::string_view path, std::string_view root) {
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

}  // namespace

const base::Fields<SaveBody>& save_fields() {
    static const auto fields = base::Fields<SaveBody>{}.text(
        "path",
        &SaveBody::path,
        {.required = true, .min = 1, .doc = "The file, as agents name it: /home/gem/user-data/..."}
    );
    return fields;
}

base::Result<std::string> artifact_path(std::string_view path) {
    auto bytes = fsmount::unquote_path(path);
    if (!bytes) {
        return std::unexpected(bytes.error());
    }
    const std::vector<std::string> parts = fsmount::split_path(*bytes);
    const bool inside = is_below(*bytes, fsmount::kUserData) || is_below(*bytes, fsmount::kSkills);
    if (!inside || std::ranges::find(parts, "..") != parts.end()) {
        return std::unexpected(fsmount::path_escape(fsmount::quote_path(*bytes), ""));
    }
    return fsmount::quote_path(*bytes);
}

std::string artifact_url(std::string_view thread_id, std::string_view path) {
    std::string out = "/api/chat/thread/" + percent_encode(thread_id) + "/artifacts";
    for (const std::string& part : fsmount::split_path(path)) {
        out += "/" + percent_encode(part);
    }
    return out;
}

}  // namespace ars::server
