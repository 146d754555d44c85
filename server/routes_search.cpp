// Looking for files by name: in a thread's directory, in the workspace, and for a message that
// mentions one.
#include "base/text.hpp"
#include "runtime/runs/projects.hpp"
#include "server/dto_files.hpp"
#include "server/file_search.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

std::expected<FileQuery, HttpResponse> query_of(Api& api, const HttpRequest& request) {
    const auto text = request.query("query");
    if (!text || text->size() > kSearchText) {
        return std::unexpected(faults_response(
            {{"/query",
              "must be there and have at most " + std::to_string(kSearchText) + " bytes",
              ""}}
        ));
    }
    FileQuery out;
    out.text = base::trim(*text);
    auto hidden = flag_of(request, "include_hidden", false);
    if (!hidden) {
        return std::unexpected(std::move(hidden.error()));
    }
    auto unbound = flag_of(request, "include_unbound_project_dirs", false);
    if (!unbound) {
        return std::unexpected(std::move(unbound.error()));
    }
    out.include_hidden = *hidden;
    out.include_unbound = *unbound;
    out.linked = linked_workdirs(api, request);
    return out;
}

base::Task<HttpResponse> search(Api& api, const HttpRequest& request) {
    auto query = query_of(api, request);
    if (!query) {
        co_return std::move(query.error());
    }
    auto scope = scope_of(api, request, request.query("thread_id").value_or(""));
    if (!scope) {
        co_return std::move(scope.error());
    }
    boost::json::array entries;
    if (query->text.empty()) {  // a field that nobody has written into yet
        co_return json_response({{"entries", std::move(entries)}, {"complete", true}});
    }
    const std::size_t results = scope->thread_id.empty() ? kWorkspaceResults : kThreadResults;
    const auto work = [scope = *scope, query = std::move(*query), results] {
        return search_files(scope, query, results);
    };
    const auto found = co_await api.files.offload->run(work);
    if (!found) {
        co_return file_error_response(found.error());
    }
    for (const fsmount::FoundName& one : found->found) {
        entries.push_back(entry_to_json(scope->thread_id, one.relative, one.info));
    }
    co_return json_response({{"entries", std::move(entries)}, {"complete", found->complete}});
}

base::Task<HttpResponse> search_for_mention(Api& api, const HttpRequest& request) {
    auto query = query_of(api, request);
    if (!query) {
        co_return std::move(query.error());
    }
    auto workspace = user_scope(api, request);
    if (!workspace) {
        co_return std::move(workspace.error());
    }
    std::optional<FileScope> thread;
    if (const auto id = request.query("thread_id"); id && !id->empty()) {
        auto scope = thread_scope(api, request, *id);
        if (!scope) {
            co_return std::move(scope.error());
        }
        thread = std::move(*scope);
    }
    if (query->text.empty()) {
        co_return json_response(boost::json::array());
    }
    const auto work = [thread, workspace = *workspace, query = std::move(*query)] {
        return search_mentions(thread ? &*thread : nullptr, workspace, query);
    };
    auto found = co_await api.files.offload->run(work);
    co_return json_response(std::move(found));
}

}  // namespace

void add_search_routes(Router& router) {
    router.add(Method::get, std::string(kThreadFiles) + "/search", search);
    router.add(Method::get, std::string(kUserFiles) + "/search", search);
    router.add(Method::get, "/api/mention/search", search_for_mention);
}

}  // namespace ars::server
