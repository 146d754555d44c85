// /api/chat: threads and their history.
#include "server/api.hpp"
#include "server/dto_threads.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

constexpr std::size_t kListLimit = 500;
constexpr std::size_t kListDefault = 100;
constexpr std::size_t kOffsetLimit = 1'000'000;
constexpr std::size_t kHistoryLimit = 10'000;

base::Task<HttpResponse> create_thread(Api& api, const HttpRequest& request) {
    auto wanted = read_new_thread(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto thread = co_await api.runs.create_thread(std::move(*wanted));
    if (!thread) {
        co_return error_response(thread.error());
    }
    const store::ThreadRecord& record = *thread;
    co_return api.runs.store().read([&record](const store::ReadTxn& txn) {
        return json_response(thread_to_json(txn, record));
    });
}

HttpResponse list_threads(Api& api, const HttpRequest& request) {
    auto limit = number_of(request, "limit", kListDefault, kListLimit);
    if (!limit) {
        return std::move(limit.error());
    }
    auto offset = number_of(request, "offset", 0, kOffsetLimit);
    if (!offset) {
        return std::move(offset.error());
    }
    const std::string agent = request.query("agent_id").value_or("");
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        boost::json::array list;
        for (const auto& thread : txn.threads_of(request.user.uid, agent, *limit, *offset)) {
            list.push_back(thread_to_json(txn, thread));
        }
        return json_response({{"threads", std::move(list)}});
    });
}

HttpResponse get_thread(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    return api.runs.store().read([&thread](const store::ReadTxn& txn) {
        return json_response(thread_to_json(txn, *thread));
    });
}

HttpResponse get_history(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    return api.runs.store().read([&thread](const store::ReadTxn& txn) {
        return json_response({{"history", history_to_json(txn, *thread, kHistoryLimit)}});
    });
}

HttpResponse get_state(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    return api.runs.store().read([&thread](const store::ReadTxn& txn) {
        return json_response(state_to_json(txn, *thread));
    });
}

base::Task<HttpResponse> delete_thread(Api& api, const HttpRequest& request) {
    const auto deleted = co_await api.runs.delete_thread(request.user, request.params[0]);
    if (!deleted) {
        co_return error_response(deleted.error());
    }
    co_return json_response({{"deleted", true}});
}

}  // namespace

void add_thread_routes(Router& router) {
    router.add(Method::post, "/api/chat/thread", create_thread);
    router.add(Method::get, "/api/chat/threads", list_threads);
    router.add(Method::get, "/api/chat/thread/{id}", get_thread);
    router.add(Method::del, "/api/chat/thread/{id}", delete_thread);
    router.add(Method::get, "/api/chat/thread/{id}/history", get_history);
    router.add(Method::get, "/api/chat/thread/{id}/state", get_state);
}

}  // namespace ars::server
