// /api/chat/thread/{id}/artifacts: files that agents made, by the paths that agents write:
// /home/gem/user-data/... and /home/gem/skills/...
#include "fsmount/layout.hpp"
#include "server/dto_artifacts.hpp"
#include "server/dto_files.hpp"
#include "server/file_response.hpp"
#include "server/file_scope.hpp"
#include "server/http_error.hpp"
#include "server/json_body.hpp"
#include "server/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace ars::server {

namespace {

using base::Result;
using fsmount::Paths;

constexpr int kCopies = 1000;  // of one name
constexpr std::size_t kPiece = 1 * base::limits::kMiB;
constexpr std::string_view kSaved = "/home/gem/user-data/saved_artifacts";

std::expected<Paths, HttpResponse> files_of(Api& api, const HttpRequest& request) {
    if (const auto thread = api.runs.find_thread(request.user, request.params[0]); !thread) {
        return std::unexpected(error_response(thread.error()));
    }
    auto workspace = workspace_of(api, request);
    if (!workspace) {
        return std::unexpected(std::move(workspace.error()));
    }
    return Paths(std::move(*workspace), std::string(fsmount::kUserData));
}

base::Task<HttpResponse> get_artifact(Api& api, const HttpRequest& request) {
    auto files = files_of(api, request);
    if (!files) {
        co_return std::move(files.error());
    }
    const std::string& tail = request.params[1];
    auto path = artifact_path(tail.starts_with('/') ? tail : "/" + tail);
    if (!path) {
        co_return file_error_response(path.error());
    }
    co_return co_await file_response(api, std::move(*files), std::move(*path));
}

// "report.txt", "report (1).txt", ...
std::string numbered(std::string_view name, int number) {
    if (number == 0) {
        return std::string(name);
    }
    const std::size_t dot = name.rfind('.');
    const std::size_t stem = dot == std::string_view::npos || dot == 0 ? name.size() : dot;
    return fmt::format("{} ({}){}", name.substr(0, stem), number, name.substr(stem));
}

// Its name; whoever is first has it, the others take the next ones.
Result<std::string> publish(const Paths& files, fsmount::NewFile file, std::string_view name) {
    auto made = files.make_directory(kSaved);
    if (!made && made.error().code != "already_exists") {
        return std::unexpected(made.error());
    }
    std::vector<fsmount::NamedFile> one;
    one.push_back({std::move(file), ""});
    for (int number = 0; number <= kCopies; ++number) {
        std::string path = fmt::format("{}/{}", kSaved, numbered(name, number));
        one.front().path = fsmount::quote_path(path);
        if (auto put = files.publish_all(one); put) {
            return path;
        } else if (put.error().code != "already_exists") {
            return std::unexpected(put.error());
        }
    }
    return base::fail(
        base::ErrorKind::conflict,
        "too_many_copies",
        fmt::format("{} has {} copies of that name already; remove some", kSaved, kCopies)
    );
}

// What is copied, a piece at a time, so that others get at the threads for file work.
struct Copy {
    fsmount::OpenFile from;
    fsmount::NewFile to;
    std::uint64_t offset = 0;
};

Result<std::shared_ptr<Copy>> begin_copy(const Paths& files, const std::string& path) {
    auto from = files.open_read(path);
    if (!from) {
        return std::unexpected(from.error());
    }
    auto to = files.begin_file();
    if (!to) {
        return std::unexpected(to.error());
    }
    return std::make_shared<Copy>(Copy{std::move(*from), std::move(*to)});
}

// True when nothing is left.
Result<bool> copy_piece(Copy& copy) {
    std::string bytes(std::min<std::uint64_t>(kPiece, copy.from.info.size - copy.offset), '\0');
    const ssize_t size =
        ::pread(copy.from.fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(copy.offset));
    if (size < 0) {
        return base::fail_errno("read_failed", "pread of an artifact", errno);
    }
    bytes.resize(static_cast<std::size_t>(size));
    if (auto written = copy.to.write(bytes, "the copy"); !written) {
        return std::unexpected(written.error());
    }
    copy.offset += bytes.size();
    return bytes.empty() || copy.offset == copy.from.info.size;
}

base::Task<HttpResponse> save_artifact(Api& api, const HttpRequest& request) {
    auto body = read_body(request, save_fields());
    if (!body) {
        co_return std::move(body.error());
    }
    auto files = files_of(api, request);
    if (!files) {
        co_return std::move(files.error());
    }
    const auto path = artifact_path(body->path);
    if (!path) {
        co_return file_error_response(path.error());
    }
    const auto begin = [files = *files, path = *path] { return begin_copy(files, path); };
    const auto begun = co_await api.files.offload->run(begin);
    if (!begun) {
        co_return file_error_response(begun.error());
    }
    const std::shared_ptr<Copy> copy = *begun;
    if (copy->from.info.size > kDownloadBytes) {
        co_return file_too_large();
    }
    const auto work = [copy] { return copy_piece(*copy); };
    for (bool done = false; !done;) {
        const auto more = co_await api.files.offload->run(work);
        if (!more) {
            co_return file_error_response(more.error());
        }
        done = *more;
    }
    const std::string bytes = fsmount::unquote_path(*path).value();
    const auto finish = [files = *files, copy, name = bytes.substr(bytes.rfind('/') + 1)] {
        return publish(files, std::move(copy->to), name);
    };
    const auto saved = co_await api.files.offload->run(finish);
    if (!saved) {
        co_return file_error_response(saved.error());
    }
    co_return json_response(
        {{"path", fsmount::quote_path(*saved)},
         {"name", fsmount::quote_path(saved->substr(saved->rfind('/') + 1))},
         {"size", copy->offset},
         {"artifact_url", artifact_url(request.params[0], *saved)}},
        201
    );
}

}  // namespace

void add_artifact_routes(Router& router) {
    router.add(Method::get, "/api/chat/thread/{id}/artifacts/{path...}", get_artifact);
    router.add(Method::post, "/api/chat/thread/{id}/artifacts/save", save_artifact);
}

}  // namespace ars::server
