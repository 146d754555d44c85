// /api/chat/thread/{id}/checkpoints and /fork: where a thread was, and going on from there.
#include "server/api.hpp"
#include "server/dto_checkpoints.hpp"
#include "server/dto_threads.hpp"
#include "server/http_error.hpp"
#include "server/query_number.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

constexpr std::size_t kPageLimit = 200;
constexpr std::size_t kPageDefault = 20;
constexpr std::size_t kHistoryLimit = 10'000;

HttpResponse checkpoint_missing(const std::string& id) {
    return error_response(
        404, "checkpoint_not_found", "no checkpoint \"" + id + "\" in this thread"
    );
}

// Newest first; `before` is the checkpoint_id that the page before ended with.
HttpResponse list_checkpoints(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    auto limit = number_of(request, "limit", kPageDefault, kPageLimit);
    if (!limit) {
        return std::move(limit.error());
    }
    const std::string before = request.query("before").value_or("");
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        store::Seq end = 0;
        if (!before.empty()) {
            const auto last = txn.checkpoint_by_id(thread->no, before);
            if (!last) {
                return checkpoint_missing(before);
            }
            end = last->seq;
        }
        boost::json::array list;
        for (const auto& checkpoint : txn.checkpoints(thread->no, end, *limit)) {
            list.push_back(checkpoint_to_json(txn, checkpoint));
        }
        return json_response({{"checkpoints", std::move(list)}});
    });
}

// What was said until then, and what stood on the table.
HttpResponse get_checkpoint(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        const auto checkpoint = txn.checkpoint_by_id(thread->no, request.params[1]);
        if (!checkpoint) {
            return checkpoint_missing(request.params[1]);
        }
        boost::json::object out = checkpoint_to_json(txn, *checkpoint);
        out["history"] = history_page(txn, *thread, kHistoryLimit, 0, &*checkpoint).messages;
        return json_response(std::move(out));
    });
}

base::Task<HttpResponse> fork_thread(Api& api, const HttpRequest& request) {
    auto wanted = read_fork(request);
    if (!wanted) {
        co_return std::move(wanted.error());
    }
    wanted->thread_id = request.params[0];
    const auto thread = co_await api.runs.fork_thread(std::move(*wanted));
    if (!thread) {
        co_return error_response(thread.error());
    }
    const store::ThreadRecord& record = *thread;
    co_return api.runs.store().read([&record](const store::ReadTxn& txn) {
        return json_response(thread_to_json(txn, record));
    });
}

}  // namespace

void add_checkpoint_routes(Router& router) {
    router.add(Method::get, "/api/chat/thread/{id}/checkpoints", list_checkpoints);
    router.add(Method::get, "/api/chat/thread/{id}/checkpoints/{checkpoint}", get_checkpoint);
    router.add(Method::post, "/api/chat/thread/{id}/fork", fork_thread);
}

}  // namespace ars::server
