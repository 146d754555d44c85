// /api/viewer/filesystem: files of a thread's directory; /api/workspace: all files of a user. An
// orchestrator hands in inputs and fetches results, also while a run works on them: there is no
// lock and no copy, a reader meets old or new content. "/" is the thread's directory, or the
// workspace; nothing outside it can be named or reached.
#include "base/fields.hpp"
#include "base/text.hpp"
#include "fsmount/layout.hpp"
#include "server/api.hpp"
#include "server/dto_files.hpp"
#include "server/file_response.hpp"
#include "server/file_scope.hpp"
#include "server/file_search.hpp"
#include "server/file_upload.hpp"
#include "server/http_error.hpp"
#include "server/json_body.hpp"
#include "server/multipart.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

#include <algorithm>
#include <array>

namespace ars::server {

namespace {

using base::Result;
using fsmount::FileInfo;
using fsmount::Paths;
using fsmount::Workspace;

constexpr std::uint64_t kFormOverhead = 1 * base::limits::kMiB;  // fields, names, boundaries

// What people edit; others upload.
bool is_text_file(std::string_view path) {
    return std::ranges::any_of(
        std::array<std::string_view, 4>{".md", ".markdown", ".mdx", ".txt"},
        [path](std::string_view end) {
            return path.size() >= end.size() &&
                   equal_ignoring_case(path.substr(path.size() - end.size()), end);
        }
    );
}

// Text that comes in pieces, which may end inside a code point.
class Utf8Check {
  public:
    // False when it can't become UTF-8 any more.
    bool add(std::string_view piece) {
        rest_ += piece;
        std::size_t end = rest_.size();
        for (std::size_t back = 1; back <= std::min<std::size_t>(3, rest_.size()); ++back) {
            const auto byte = static_cast<unsigned char>(rest_[rest_.size() - back]);
            if (byte >= 0xC0) {  // the first of 2, 3 or 4
                const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
                end = size > back ? rest_.size() - back : end;
                break;
            }
        }
        const bool fits = base::is_utf8(std::string_view(rest_).substr(0, end));
        rest_.erase(0, end);
        return fits;
    }
    [[nodiscard]] bool is_whole() const { return rest_.empty(); }

  private:
    std::string rest_;
};

HttpResponse entry_response(const FileTarget& target, const FileInfo& info, int status) {
    return json_response(
        {{"entry", entry_to_json(target.scope.thread_id, target.path, info)}}, status
    );
}

base::Task<HttpResponse> list_tree(Api& api, const HttpRequest& request) {
    auto target = target_of(api, request, "/");
    if (!target) {
        co_return std::move(target.error());
    }
    const auto after = fsmount::unquote_path(request.query("after").value_or(""));
    if (!after) {
        co_return file_error_response(after.error());
    }
    auto all = flag_of(request, "include_unbound_project_dirs", false);
    if (!all) {
        co_return std::move(all.error());
    }
    const std::string above =
        target->path.empty() || target->path.ends_with('/') ? target->path : target->path + "/";
    std::function<bool(std::string_view)> hidden;
    if (target->scope.thread_id.empty() && !*all) {
        hidden = [above, linked = linked_workdirs(api, request)](std::string_view name) {
            return is_unbound_project(above + std::string(name), linked);
        };
    }
    const auto work = [target = *target, after = *after, hidden] {
        return target.scope.paths.list_directory(target.guest(), after, kTreePage, hidden);
    };
    auto page = co_await api.files.offload->run(work);
    if (!page && page.error().code == "not_found" && target->path.empty()) {
        page = fsmount::DirectoryPage{};  // the first run or the first file makes it
    }
    if (!page) {
        co_return file_error_response(page.error());
    }
    boost::json::array entries;
    for (const auto& entry : page->entries) {
        entries.push_back(entry_to_json(target->scope.thread_id, above + entry.name, entry.info));
    }
    boost::json::object body{{"entries", std::move(entries)}, {"total", page->total}};
    body["next"] = nullptr;
    if (!page->cursor.empty()) {
        body["next"] = fsmount::quote_path(page->cursor);
    }
    co_return json_response(body);
}

base::Task<HttpResponse> get_file(Api& api, const HttpRequest& request) {
    auto target = target_of(api, request);
    if (!target) {
        co_return std::move(target.error());
    }
    co_return co_await file_response(api, target->scope.paths, target->guest());
}

base::Task<HttpResponse> put_file(Api& api, const HttpRequest& request) {
    auto target = target_of(api, request);
    if (!target) {
        co_return std::move(target.error());
    }
    if (target->path.empty()) {
        co_return error_response(400, "is_root", "the path names no file");
    }
    const bool is_text = target->scope.thread_id.empty();
    if (is_text && !is_text_file(target->path)) {
        co_return error_response(
            400,
            "not_editable",
            "only .md, .markdown, .mdx and .txt are written like this; send others to /upload"
        );
    }
    const auto begin = [target = *target]() -> Result<fsmount::NewFile> {
        if (auto made = target.scope.make_top(); !made) {
            return std::unexpected(made.error());
        }
        return target.scope.paths.begin_file();
    };
    auto file = co_await api.files.offload->run(begin);
    if (!file) {
        co_return file_error_response(file.error());
    }
    Utf8Check text;
    FileSink sink(*api.files.offload, std::move(*file));
    for (;;) {
        const auto piece = co_await request.peer->read_body();
        if (!piece) {
            co_return file_error_response(piece.error());
        }
        if (is_text && (piece->empty() ? !text.is_whole() : !text.add(*piece))) {
            co_return error_response(400, "not_utf8", "the content is not valid UTF-8");
        }
        if (piece->empty()) {
            break;
        }
        if (auto written = co_await sink.write(std::string(*piece)); !written) {
            co_return file_error_response(written.error());
        }
    }
    struct Put {
        bool is_new = false;
        FileInfo info;
    };
    const auto content = std::make_shared<fsmount::NewFile>(sink.take());
    const auto work = [target = *target, content]() -> Result<Put> {
        const Paths& paths = target.scope.paths;
        const auto is_new = paths.replace_with(*content, target.guest());
        if (!is_new) {
            return std::unexpected(is_new.error());
        }
        const auto info = paths.stat(target.guest());
        return info ? Result<Put>(Put{*is_new, *info}) : std::unexpected(info.error());
    };
    const auto put = co_await api.files.offload->run(work);
    co_return put ? entry_response(*target, put->info, put->is_new ? 201 : 200)
                  : file_error_response(put.error());
}

base::Task<HttpResponse> delete_file(Api& api, const HttpRequest& request) {
    auto target = target_of(api, request);
    if (!target) {
        co_return std::move(target.error());
    }
    const auto work = [target = *target] {
        return target.scope.paths.remove(target.guest(), base::Deadline::after(kTreeRemoval));
    };
    const auto removed = co_await api.files.offload->run(work);
    co_return removed
        ? json_response({{"success", true}, {"path", fsmount::quote_path("/" + target->path)}})
        : file_error_response(removed.error());
}

base::Task<HttpResponse> make_directory(Api& api, const HttpRequest& request) {
    auto body = read_body(request, directory_fields());
    if (!body) {
        co_return std::move(body.error());
    }
    auto scope = scope_of(api, request, body->thread_id);
    if (!scope) {
        co_return std::move(scope.error());
    }
    const auto parent = scope_path(body->parent_path);
    const auto name = parent ? scope_path(body->name) : parent;
    if (!name) {
        co_return file_error_response(name.error());
    }
    if (name->empty() || name->find('/') != std::string::npos) {
        co_return faults_response({{"/name", "must be one part of a path", ""}});
    }
    const FileTarget target{std::move(*scope), *parent + (parent->empty() ? "" : "/") + *name};
    const auto work = [target]() -> Result<FileInfo> {
        if (auto made = target.scope.make_top(); !made) {
            return std::unexpected(made.error());
        }
        if (auto made = target.scope.paths.make_directory(target.guest()); !made) {
            return std::unexpected(made.error());
        }
        return target.scope.paths.stat(target.guest());
    };
    const auto info = co_await api.files.offload->run(work);
    co_return info ? entry_response(target, *info, 201) : file_error_response(info.error());
}

// All files of the form get their names, or none.
Result<std::vector<FileInfo>> publish(const FileTarget& parent, std::vector<UploadedFile>& files) {
    if (parent.path.empty()) {
        if (auto made = parent.scope.make_top(); !made) {
            return std::unexpected(made.error());
        }
    }
    const Paths& paths = parent.scope.paths;
    if (const auto there = paths.open_directory(parent.guest()); !there) {
        return std::unexpected(there.error());
    }
    std::vector<fsmount::NamedFile> named;
    for (UploadedFile& file : files) {
        named.push_back({std::move(file.file), parent.guest() + "/" + file.name});
    }
    if (auto published = paths.publish_all(named); !published) {
        return std::unexpected(published.error());
    }
    std::vector<FileInfo> infos;
    for (const fsmount::NamedFile& file : named) {
        const auto info = paths.stat(file.path);
        infos.push_back(info ? *info : FileInfo{});
    }
    return infos;
}

base::Task<HttpResponse> upload(Api& api, const HttpRequest& request) {
    const auto boundary = multipart_boundary(request.header("content-type").value_or(""));
    if (!boundary) {
        co_return error_response(
            415,
            "unsupported_media_type",
            "send the files as multipart/form-data, with fields thread_id and parent_path"
        );
    }
    auto workspace = workspace_of(api, request);
    if (!workspace) {
        co_return std::move(workspace.error());
    }
    // A thread that the query names is looked at before anything is received.
    std::string thread_id = request.query("thread_id").value_or("");
    if (!thread_id.empty()) {
        if (auto scope = scope_of(api, request, thread_id); !scope) {
            co_return std::move(scope.error());
        }
    }
    auto form = co_await receive_form(
        *request.peer,
        *boundary,
        Paths(*workspace, std::string(fsmount::kUserData)),
        *api.files.offload
    );
    if (!form) {
        co_return file_error_response(form.error());
    }
    if (form->files.empty()) {
        co_return faults_response({{"/file", "is missing", "send at least one file"}});
    }
    auto scope = scope_of(api, request, form->thread_id.empty() ? thread_id : form->thread_id);
    if (!scope) {
        co_return std::move(scope.error());
    }
    if (form->parent_path.empty()) {
        form->parent_path = request.query("parent_path").value_or("/");
    }
    auto path = scope_path(form->parent_path);
    if (!path) {
        co_return file_error_response(path.error());
    }
    const FileTarget parent{std::move(*scope), std::move(*path)};
    const auto files = std::make_shared<std::vector<UploadedFile>>(std::move(form->files));
    const auto work = [parent, files] { return publish(parent, *files); };
    const auto infos = co_await api.files.offload->run(work);
    if (!infos) {
        co_return file_error_response(infos.error());
    }
    boost::json::array entries;
    for (std::size_t i = 0; i < infos->size(); ++i) {
        const bool slash = !parent.path.empty() && !parent.path.ends_with('/');
        const std::string place = parent.path + (slash ? "/" : "") + (*files)[i].name;
        entries.push_back(entry_to_json(parent.scope.thread_id, place, (*infos)[i]));
    }
    co_return json_response({{"entries", std::move(entries)}}, 201);
}

}  // namespace

void add_file_routes(Router& router) {
    for (const std::string_view place : {kThreadFiles, kUserFiles}) {
        const std::string at(place);
        router.add(Method::get, at + "/tree", list_tree);
        router.add(Method::get, at + "/file", get_file);
        router.add(Method::get, at + "/download", get_file);
        router.add(Method::put, at + "/file", BodyHandler{put_file, kUploadBytes});
        router.add(Method::del, at + "/file", delete_file);
        router.add(Method::post, at + "/directory", make_directory);
        router.add(Method::post, at + "/upload", BodyHandler{upload, kUploadBytes + kFormOverhead});
    }
}

}  // namespace ars::server
