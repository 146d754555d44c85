// /api/system/users and /api/user/me: who may call, and as whom. /api/system/audit: what was
// changed.
#include "runtime/people/audit.hpp"
#include "server/api.hpp"
#include "server/dto_people.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::size_t kAuditDefault = 1'000;

HttpResponse admins_only() {
    return error_response(403, "admins_only", "only administrators may see this");
}

HttpResponse user_response(const base::Result<people::UserEntry>& entry, int status = 200) {
    return entry ? json_response({{"user", user_to_json(*entry)}}, status)
                 : error_response(entry.error());
}

HttpResponse me(Api&, const HttpRequest& request) {
    const people::Caller caller = request.caller();
    json::object out{
        {"uid", caller.user.uid},
        {"role", people::to_string(caller.user.role)},
        {"department", caller.user.department},
        {"key_name", nullptr},
        {"acting_key", nullptr}
    };
    if (!caller.key_name.empty()) {
        out["key_name"] = caller.key_name;
    }
    if (caller.is_acting()) {
        out["acting_key"] = {{"name", caller.key_name}, {"user_id", caller.key_uid}};
    }
    return json_response(std::move(out));
}

HttpResponse list_users(Api& api, const HttpRequest& request) {
    if (!request.caller().is_admin()) {
        return admins_only();
    }
    auto part = list_part_of(request);
    if (!part) {
        return std::move(part.error());
    }
    json::array list;
    for (const auto& entry : api.people.users(part->offset, part->limit)) {
        list.push_back(user_to_json(entry));
    }
    return json_response({{"users", std::move(list)}, {"total", api.people.user_count()}});
}

HttpResponse get_user(Api& api, const HttpRequest& request) {
    if (!request.caller().is_admin()) {
        return admins_only();
    }
    const auto entry = api.people.user_entry(request.params[0]);
    return entry ? user_response(*entry)
                 : error_response(404, "user_not_found", "there is no such user");
}

base::Task<HttpResponse> create_user(Api& api, const HttpRequest& request) {
    auto wanted = read_new_user(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto entry = co_await api.people.create_user(request.caller(), std::move(*wanted));
    co_return user_response(entry, 201);
}

base::Task<HttpResponse> change_user(Api& api, const HttpRequest& request) {
    auto wanted = read_user_change(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto entry =
        co_await api.people.change_user(request.caller(), request.params[0], std::move(*wanted));
    co_return user_response(entry);
}

base::Task<HttpResponse> delete_user(Api& api, const HttpRequest& request) {
    const auto deleted = co_await api.people.delete_user(request.caller(), request.params[0]);
    co_return deleted ? json_response({{"deleted", true}}) : error_response(deleted.error());
}

HttpResponse audit(Api& api, const HttpRequest& request) {
    if (!request.caller().is_admin()) {
        return admins_only();
    }
    auto after = number_of(request, "after", 0, SIZE_MAX);
    if (!after) {
        return std::move(after.error());
    }
    auto limit = number_of(request, "limit", kAuditDefault, kAuditPage);
    if (!limit) {
        return std::move(limit.error());
    }
    const auto lines = api.runs.store().read([&](const store::ReadTxn& txn) {
        return people::audit_lines(txn, *after, *limit);
    });
    HttpResponse response;
    response.content_type = "application/x-ndjson";
    for (const std::string& line : lines) {
        response.body += line;
        response.body += '\n';
    }
    return response;
}

}  // namespace

void add_people_routes(Router& router) {
    router.add(Method::get, "/api/user/me", me);
    router.add(Method::get, "/api/system/users", list_users);
    router.add(Method::post, "/api/system/users", create_user);
    router.add(Method::get, "/api/system/users/{uid}", get_user);
    router.add(Method::put, "/api/system/users/{uid}", change_user);
    router.add(Method::del, "/api/system/users/{uid}", delete_user);
    router.add(Method::get, "/api/system/audit", audit);
}

}  // namespace ars::server
