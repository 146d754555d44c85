// /api/chat: threads and their history.
#include "server/api.hpp"
#include "server/dto_threads.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

constexpr std::size_t kHistoryLimit = 10'000;
constexpr std::size_t kHistoryDefault = 1'000;
constexpr std::size_t kSearchBytes = 256;

HttpResponse thread_response(Api& api, const base::Result<store::ThreadRecord>& thread) {
    if (!thread) {
        return error_response(thread.error());
    }
    return api.runs.store().read([&thread](const store::ReadTxn& txn) {
        return json_response(thread_to_json(txn, *thread));
    });
}

base::Task<HttpResponse> create_thread(Api& api, const HttpRequest& request) {
    auto wanted = read_new_thread(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    const auto thread = co_await api.runs.create_thread(std::move(*wanted));
    co_return thread_response(api, thread);
}

base::Task<HttpResponse> change_thread(Api& api, const HttpRequest& request) {
    auto wanted = read_thread_change(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    wanted->thread_id = request.params[0];
    const auto thread = co_await api.runs.change_thread(std::move(*wanted));
    co_return thread_response(api, thread);
}

base::Task<HttpResponse> mark_viewed(Api& api, const HttpRequest& request) {
    const auto thread = co_await api.runs.mark_viewed(request.user, request.params[0]);
    co_return thread_response(api, thread);
}

HttpResponse threads_response(Api& api, const HttpRequest& request, std::string_view title_part) {
    auto part = list_part_of(request);
    if (!part) {
        return std::move(part.error());
    }
    const std::string agent = request.query("agent_id").value_or("");
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        boost::json::array list;
        for (const auto& thread :
             txn.threads_of(request.user.uid, agent, part->limit, part->offset, title_part)) {
            list.push_back(thread_to_json(txn, thread));
        }
        return json_response({{"threads", std::move(list)}});
    });
}

HttpResponse list_threads(Api& api, const HttpRequest& request) {
    return threads_response(api, request, {});
}

HttpResponse search_threads(Api& api, const HttpRequest& request) {
    const std::string part = request.query("q").value_or("");
    if (part.empty() || part.size() > kSearchBytes) {
        return faults_response(
            {{"/q", "must have 1 to " + std::to_string(kSearchBytes) + " bytes", ""}}
        );
    }
    return threads_response(api, request, part);
}

HttpResponse get_thread(Api& api, const HttpRequest& request) {
    return thread_response(api, api.runs.find_thread(request.user, request.params[0]));
}

HttpResponse get_history(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    auto limit = number_of(request, "limit", kHistoryDefault, kHistoryLimit);
    if (!limit) {
        return std::move(limit.error());
    }
    auto before = number_of(request, "before", 0, SIZE_MAX);
    if (!before) {
        return std::move(before.error());
    }
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        HistoryPage page = history_page(txn, *thread, *limit, *before);
        boost::json::object body{{"history", std::move(page.messages)}, {"next", nullptr}};
        if (page.next != 0) {
            body["next"] = std::to_string(page.next);
        }
        return json_response(std::move(body));
    });
}

HttpResponse get_state(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    auto with_messages = flag_of(request, "include_messages", false);
    if (!with_messages) {
        return std::move(with_messages.error());
    }
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        return json_response(state_to_json(txn, *thread, *with_messages ? kHistoryDefault : 0));
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
    router.add(Method::get, "/api/chat/threads/search", search_threads);
    router.add(Method::get, "/api/chat/thread/{id}", get_thread);
    router.add(Method::put, "/api/chat/thread/{id}", change_thread);
    router.add(Method::post, "/api/chat/thread/{id}/viewed", mark_viewed);
    router.add(Method::del, "/api/chat/thread/{id}", delete_thread);
    router.add(Method::get, "/api/chat/thread/{id}/history", get_history);
    router.add(Method::get, "/api/chat/thread/{id}/state", get_state);
}

}  // namespace ars::server
