#include "server/file_scope.hpp"

#include "fsmount/layout.hpp"
#include "runtime/runs/projects.hpp"
#include "server/dto_files.hpp"
#include "server/http_error.hpp"

namespace ars::server {

using fsmount::Paths;

std::string FileScope::guest(const std::string& path) const {
    return fsmount::guest_workdir(workdir) + "/" + path;
}

base::Result<void> FileScope::make_top() const {
    if (is_linked) {
        const auto there = paths.open_directory(guest(""));
        return there ? base::Result<void>() : std::unexpected(there.error());
    }
    return workdir.empty() ? base::Result<void>() : workspace->make_workdir(workdir);
}

std::vector<std::string> linked_workdirs(const Api& api, const HttpRequest& request) {
    return api.runs.store().read([&request](const store::ReadTxn& txn) {
        std::vector<std::string> out;
        for (runs::Project& project : runs::projects_of(txn, request.user.uid)) {
            out.push_back(std::move(project.workdir_path));
        }
        return out;
    });
}

std::expected<std::shared_ptr<fsmount::Workspace>, HttpResponse> workspace_of(
    const Api& api, const HttpRequest& request
) {
    if (!api.runs.accepting()) {
        return std::unexpected(
            error_response(503, "not_ready", "the server is starting or stopping; try again")
        );
    }
    auto workspace = api.files.workspace_of(request.user.uid);
    if (!workspace) {
        return std::unexpected(error_response(workspace.error()));
    }
    return std::move(*workspace);
}

std::expected<FileScope, HttpResponse> user_scope(const Api& api, const HttpRequest& request) {
    auto workspace = workspace_of(api, request);
    if (!workspace) {
        return std::unexpected(std::move(workspace.error()));
    }
    Paths paths = Paths::within(*workspace, "");
    return FileScope{"", "", false, std::move(*workspace), std::move(paths)};
}

std::expected<FileScope, HttpResponse> thread_scope(
    const Api& api, const HttpRequest& request, const std::string& thread_id
) {
    if (thread_id.empty()) {
        return std::unexpected(faults_response({{"/thread_id", "is missing", ""}}));
    }
    const auto thread = api.runs.find_thread(request.user, thread_id);
    if (!thread) {
        return std::unexpected(error_response(thread.error()));
    }
    auto workspace = workspace_of(api, request);
    if (!workspace) {
        return std::unexpected(std::move(workspace.error()));
    }
    const bool is_linked = api.runs.store().read([&thread](const store::ReadTxn& txn) {
        return !runs::project_of_thread(txn, *thread).empty();
    });
    Paths paths = Paths::within(*workspace, thread->workdir_path);
    return FileScope{
        thread->id, thread->workdir_path, is_linked, std::move(*workspace), std::move(paths)
    };
}

std::expected<FileScope, HttpResponse> scope_of(
    const Api& api, const HttpRequest& request, const std::string& thread_id
) {
    return request.path().starts_with(kUserFiles) ? user_scope(api, request)
                                                  : thread_scope(api, request, thread_id);
}

std::expected<FileTarget, HttpResponse> target_of(
    const Api& api, const HttpRequest& request, const char* otherwise
) {
    auto scope = scope_of(api, request, request.query("thread_id").value_or(""));
    if (!scope) {
        return std::unexpected(std::move(scope.error()));
    }
    const auto given = request.query("path");
    if (!given && otherwise == nullptr) {
        return std::unexpected(faults_response({{"/path", "is missing", ""}}));
    }
    auto path = scope_path(given ? *given : otherwise);
    if (!path) {
        return std::unexpected(file_error_response(path.error()));
    }
    return FileTarget{std::move(*scope), std::move(*path)};
}

}  // namespace ars::server
