// /api/user/apikey: keys that users and administrators make themselves.
#include "server/api.hpp"
#include "server/dto_people.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

HttpResponse key_response(const Api& api, const base::Result<people::ApiKey>& key) {
    return key ? json_response({{"api_key", key_to_json(*key, api.people.last_use_ms(key->id))}})
               : error_response(key.error());
}

HttpResponse list_keys(Api& api, const HttpRequest& request) {
    auto part = list_part_of(request);
    if (!part) {
        return std::move(part.error());
    }
    const auto keys = api.people.keys_for(request.caller(), request.query("user_id").value_or(""));
    json::array list;
    for (std::size_t i = part->offset; i < keys.size() && list.size() < part->limit; ++i) {
        list.push_back(key_to_json(keys[i], api.people.last_use_ms(keys[i].id)));
    }
    return json_response({{"api_keys", std::move(list)}, {"total", keys.size()}});
}

HttpResponse get_key(Api& api, const HttpRequest& request) {
    return key_response(api, api.people.key_for(request.caller(), request.params[0]));
}

base::Task<HttpResponse> create_key(Api& api, const HttpRequest& request) {
    auto wanted = read_new_key(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto created = co_await api.people.create_key(request.caller(), std::move(*wanted));
    if (!created) {
        co_return error_response(created.error());
    }
    const bool is_new = !created->secret.empty();
    json::object body{
        {"api_key", key_to_json(created->key, api.people.last_use_ms(created->key.id))},
        {"secret", nullptr}
    };
    if (is_new) {
        body["secret"] = created->secret;
    }
    HttpResponse response = json_response(std::move(body), is_new ? 201 : 200);
    response.headers.emplace_back("Cache-Control", "no-store");
    co_return response;
}

base::Task<HttpResponse> change_key(Api& api, const HttpRequest& request) {
    auto wanted = read_key_change(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto key =
        co_await api.people.change_key(request.caller(), request.params[0], std::move(*wanted));
    co_return key_response(api, key);
}

base::Task<HttpResponse> revoke_key(Api& api, const HttpRequest& request) {
    const auto key = co_await api.people.revoke_key(request.caller(), request.params[0]);
    co_return key_response(api, key);
}

}  // namespace

void add_key_routes(Router& router) {
    // Clients of the public system send the slash.
    for (const char* path : {"/api/user/apikey", "/api/user/apikey/"}) {
        router.add(Method::get, path, list_keys);
        router.add(Method::post, path, create_key);
    }
    router.add(Method::get, "/api/user/apikey/{id}", get_key);
    router.add(Method::put, "/api/user/apikey/{id}", change_key);
    router.add(Method::del, "/api/user/apikey/{id}", revoke_key);
}

}  // namespace ars::server
