// /api/projects: directories of a user's workspace that threads can work in.
#include "server/dto_files.hpp"
#include "server/dto_projects.hpp"
#include "server/file_scope.hpp"
#include "server/http_error.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>

#include <algorithm>

namespace ars::server {

namespace {

std::vector<runs::Project> projects_of(const Api& api, const HttpRequest& request) {
    return api.runs.store().read([&request](const store::ReadTxn& txn) {
        return runs::projects_of(txn, request.user.uid);
    });
}

HttpResponse list_projects(Api& api, const HttpRequest& request) {
    boost::json::array out;
    for (const runs::Project& project : projects_of(api, request)) {
        out.push_back(project_to_json(project));
    }
    return json_response(std::move(out));
}

base::Task<HttpResponse> create_project(Api& api, const HttpRequest& request) {
    auto wanted = read_new_project(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    auto workspace = workspace_of(api, request);
    if (!workspace) {
        co_return std::move(workspace.error());
    }
    const auto known = projects_of(api, request);
    if (std::ranges::find(known, wanted->request_id, &runs::Project::request_id) == known.end()) {
        const auto work = [workspace = *workspace, path = wanted->workdir_path] {
            return workspace->find_workdir(path);
        };
        if (const auto there = co_await api.files.offload->run(work); !there) {
            co_return there.error().code == "not_a_directory"
                ? error_response(400, there.error().code, there.error().message)
                : file_error_response(there.error());
        }
    }
    const auto project = co_await api.runs.create_project(std::move(*wanted));
    co_return project ? json_response(project_to_json(*project)) : error_response(project.error());
}

}  // namespace

void add_project_routes(Router& router) {
    router.add(Method::get, "/api/projects", list_projects);
    router.add(Method::post, "/api/projects", create_project);
}

}  // namespace ars::server
