#include "server/dto_files.hpp"

#include "base/clock.hpp"
#include "fsmount/layout.hpp"
#include "server/http_error.hpp"

#include <algorithm>
#include <array>

namespace ars::server {

namespace {

const char* to_string(fsmount::FileKind kind) {
    switch (kind) {
        case fsmount::FileKind::file:
            return "file";
        case fsmount::FileKind::directory:
            return "directory";
        case fsmount::FileKind::symlink:
            return "symlink";
        case fsmount::FileKind::other:
            break;
    }
    return "other";
}

std::string_view last_part(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

base::Result<std::string> scope_path(std::string_view path) {
    auto bytes = fsmount::unquote_path(path);
    if (!bytes) {
        return std::unexpected(bytes.error());
    }
    const std::string home = std::string(fsmount::kHome) + "/";
    if ((*bytes + "/").starts_with(home)) {
        return std::unexpected(fsmount::outside_directory(
            fsmount::quote_path(*bytes), "\"/\" is the top directory here"
        ));
    }
    std::string out;
    for (const std::string& part : fsmount::split_path(*bytes)) {
        if (part == "..") {
            return std::unexpected(
                fsmount::outside_directory(fsmount::quote_path(*bytes), "it has a \"..\" part")
            );
        }
        out += (out.empty() ? "" : "/") + part;
    }
    if (!out.empty() && fsmount::names_directory(*bytes)) {
        out += '/';
    }
    return out;
}

const base::Fields<DirectoryBody>& directory_fields() {
    static const auto fields =
        base::Fields<DirectoryBody>{}
            .text("thread_id", &DirectoryBody::thread_id, {.doc = "Of the thread's directory."})
            .text("parent_path", &DirectoryBody::parent_path, {.required = true, .min = 1})
            .text("name", &DirectoryBody::name, {.required = true, .min = 1});
    return fields;
}

HttpResponse file_error_response(const base::Error& error) {
    static constexpr std::array<std::pair<std::string_view, int>, 6> kStatuses = {{
        {"not_a_directory", 404},
        {"not_regular_file", 400},
        {"is_root", 400},
        {"no_space", 507},
        {"too_many_links", 403},
        {"request_timeout", 408},
    }};
    const auto known =
        std::ranges::find(kStatuses, error.code, &std::pair<std::string_view, int>::first);
    return known == kStatuses.end() ? error_response(error)
                                    : error_response(known->second, error.code, error.message);
}

boost::json::object entry_to_json(
    const std::string& thread_id, const std::string& scope_path, const fsmount::FileInfo& info
) {
    const bool is_dir = info.kind == fsmount::FileKind::directory;
    boost::json::object out{
        {"path", fsmount::quote_path("/" + scope_path + (is_dir ? "/" : ""))},
        {"name", fsmount::quote_path(last_part(scope_path))},
        {"is_dir", is_dir},
        {"kind", to_string(info.kind)},
        {"size", is_dir ? 0 : info.size},
        {"modified_at", base::iso8601(info.modified_ms)},
        {"artifact_url", nullptr}
    };
    if (info.kind == fsmount::FileKind::file) {
        out["artifact_url"] =
            (thread_id.empty()
                 ? "/api/workspace/download?"
                 : "/api/viewer/filesystem/download?thread_id=" + percent_encode(thread_id) + "&") +
            ("path=" + percent_encode("/" + scope_path));
    }
    return out;
}

std::string percent_encode(std::string_view bytes) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += '%';
            out += kHex[byte >> 4U];
            out += kHex[byte & 15U];
        }
    }
    return out;
}

std::string content_disposition(std::string_view path) {
    return "attachment; filename*=UTF-8''" + percent_encode(last_part(path));
}

}  // namespace ars::server
