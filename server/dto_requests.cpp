#include "server/dto_requests.hpp"

#include "server/dto_runs.hpp"
#include "server/http_error.hpp"

#include <boost/json/array.hpp>

#include <cctype>

namespace ars::server {

namespace json = boost::json;

namespace {

std::string encoded(std::string_view segment) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    for (const char c : segment) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x80 && std::isalnum(byte) != 0) ||
            std::string_view("-_.~:").find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += '%';
            out += kHex[byte >> 4U];
            out += kHex[byte & 0xFU];
        }
    }
    return out;
}

json::value text_or_null(std::string_view text) {
    return text.empty() ? json::value() : json::value(text);
}

json::value run_id(const store::ReadTxn& txn, store::RunNo no) {
    const auto run = no != 0 ? txn.run(no) : std::nullopt;
    return run ? json::value(run->id) : json::value();
}

void add_active_run(json::object& detail, const store::RunRecord& run) {
    detail["active_run_id"] = run.id;
    detail["active_run_status"] = store::to_string(run.status);
    detail["agent_slug"] = run.agent_slug;
    detail["thread_id"] = run.thread_id;
}

}  // namespace

std::string run_events_url(const store::RunRecord& run) {
    return "/api/agent/runs/" + run.id + "/events";
}

std::string request_url(const store::RequestRecord& request) {
    return "/api/agent/requests/" + encoded(request.request_id);
}

std::string request_events_url(const store::RequestRecord& request) {
    return request_url(request) + "/events";
}

json::object request_to_json(const store::ReadTxn& txn, const store::RequestRecord& request) {
    const bool dispatched = request.status == store::RequestStatus::dispatched;
    return {
        {"request_id", request.request_id},
        {"uid", request.uid},
        {"agent_slug", request.agent_slug},
        {"thread_id", request.thread_id},
        {"source", request.source},
        {"queue_policy", store::to_string(request.policy)},
        {"status", store::to_string(request.status)},
        {"queue_position", runs::queue_position(txn, request)},
        {"input_message_id", text_or_null(request.message_id)},
        {"dispatched_run_id", dispatched ? run_id(txn, request.run) : json::value()},
        {"error_type", text_or_null(request.error_type)},
        {"error_message", text_or_null(request.error_message)},
        {"created_at", time_to_json(request.created_ms)},
        {"dispatched_at", time_to_json(request.dispatched_ms)},
        {"updated_at", time_to_json(request.updated_ms)}
    };
}

json::object queue_to_json(const store::ReadTxn& txn, const runs::ThreadQueue& queue) {
    json::array requests;
    for (const store::RequestRecord& request : queue.requests) {
        json::object entry = request_to_json(txn, request);
        entry["content"] = request.content;
        requests.push_back(std::move(entry));
    }
    const bool paused = queue.state.status == runs::QueueStatus::paused;
    const auto& blocker = queue.state.blocker;
    json::value reason;
    if (paused) {
        reason = blocker->status == store::RunStatus::failed ? "run_failed" : "run_cancelled";
    }
    return {
        {"requests", std::move(requests)},
        {"queue",
         {{"status", runs::to_string(queue.state.status)},
          {"paused_reason", std::move(reason)},
          {"blocking_run_id", blocker ? json::value(blocker->id) : json::value()},
          {"can_continue", paused}}}
    };
}

HttpResponse rejected_response(const runs::Submitted& submitted) {
    json::object more = submitted_to_json(submitted);
    if (submitted.run.no != 0) {
        add_active_run(more, submitted.run);
    }
    return error_response(
        409, submitted.request.error_type, submitted.request.error_message, std::move(more)
    );
}

HttpResponse conflict_response(
    const Api& api, const base::Error& error, const std::string& thread_id
) {
    const bool names_run = error.code == "run_interrupted" || error.code == "run_not_steerable" ||
                           error.code == "run_active" || error.code == "run_busy";
    json::object more;
    if (names_run) {
        api.runs.store().read([&](const store::ReadTxn& txn) {
            const auto thread = txn.thread_by_id(thread_id);
            const auto latest = thread ? txn.latest_run_of_thread(thread->no) : std::nullopt;
            if (const auto run = latest ? txn.run(*latest) : std::nullopt) {
                add_active_run(more, *run);
            }
        });
    }
    return more.empty()
               ? error_response(error)
               : error_response(status_of(error.kind), error.code, error.message, std::move(more));
}

}  // namespace ars::server
