#include "server/dto_invocation.hpp"

#include "base/digest.hpp"
#include "base/fields.hpp"
#include "base/text.hpp"
#include "runtime/agents/slug.hpp"
#include "server/dto_runs.hpp"
#include "server/json_body.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::int64_t kRequestIdBytes = 64;
constexpr std::int64_t kThreadIdBytes = 200;
constexpr std::int64_t kModelSpecBytes = 512;
constexpr std::int64_t kWaitMs = 30 * 60 * 1000;
constexpr std::size_t kThreadIdSize = 64;
constexpr std::string_view kThreadPrefix = "invocation_";

using store::QueuePolicy;

struct CallBody {
    std::string agent_slug;
    json::value messages;
    bool stream = false;
    std::optional<json::object> agent_call_meta;
    std::optional<std::string> thread_id;
    std::optional<std::string> request_id;
    std::optional<std::string> model_spec;
    std::optional<agents::ApprovalMode> tool_approval_mode;
    bool async_mode = false;
    std::optional<QueuePolicy> queue_policy;
    std::optional<base::milliseconds> wait_timeout;
};

const base::Fields<CallBody>& call_fields() {
    static const auto fields =
        base::Fields<CallBody>{}
            .text(
                "agent_slug",
                &CallBody::agent_slug,
                {.required = true, .min = 1, .max = agents::kSlugBytes, .doc = "Which agent."}
            )
            .any(
                "messages",
                &CallBody::messages,
                {.required = true, .doc = "As of a chat completion; the last user message is used."}
            )
            .boolean("stream", &CallBody::stream, {.doc = "Only false."})
            .raw(
                "agent_call_meta",
                &CallBody::agent_call_meta,
                {.doc = "Given back in the answer; must not hold `context`."}
            )
            .text("thread_id", &CallBody::thread_id, {.min = 1, .max = kThreadIdBytes})
            .text(
                "request_id",
                &CallBody::request_id,
                {.min = 1, .max = kRequestIdBytes, .doc = "Makes the call safe to repeat."}
            )
            .text("model_spec", &CallBody::model_spec, {.max = kModelSpecBytes})
            .choice(
                "tool_approval_mode",
                &CallBody::tool_approval_mode,
                {{"default", agents::ApprovalMode::ask},
                 {"always_trust", agents::ApprovalMode::always_trust}}
            )
            .boolean("async_mode", &CallBody::async_mode, {.doc = "Answers at once."})
            .choice(
                "queue_policy",
                &CallBody::queue_policy,
                {{"enqueue", QueuePolicy::enqueue}, {"reject", QueuePolicy::reject}},
                {.doc = "Of an async call; one that waits is always `reject`."}
            )
            .duration(
                "wait_timeout",
                &CallBody::wait_timeout,
                {.min = 1, .max = kWaitMs, .doc = "How long to wait before 504."}
            );
    return fields;
}

struct QueryBody {
    std::string run_id;
    std::optional<std::string> agent_slug;
};

const base::Fields<QueryBody>& query_fields() {
    static const auto fields = base::Fields<QueryBody>{}
                                   .text("run_id", &QueryBody::run_id, {.required = true, .min = 1})
                                   .text("agent_slug", &QueryBody::agent_slug, {});
    return fields;
}

// The text of one message's content, or what is wrong with it.
std::expected<std::string, std::string> text_of(const json::value* content) {
    if (content == nullptr) {
        return std::unexpected("has no content");
    }
    if (content->is_string()) {
        return std::string(content->as_string());
    }
    if (!content->is_array()) {
        return std::unexpected("must be a text or a list of parts");
    }
    std::string out;
    for (const json::value& part : content->as_array()) {
        const json::object* object = part.if_object();
        const json::value* type = object != nullptr ? object->if_contains("type") : nullptr;
        const json::value* text = object != nullptr ? object->if_contains("text") : nullptr;
        if (type == nullptr || *type != "text" || text == nullptr || !text->is_string()) {
            return std::unexpected(
                R"(has a part that is not {"type": "text", "text": ...}; nothing else is read)"
            );
        }
        out += out.empty() ? "" : "\n";
        out += std::string_view(text->as_string());
    }
    return out;
}

// The last user message, or the faults of `messages`.
std::expected<std::string, HttpResponse> input_of(const json::value& messages) {
    const auto refuse = [](const std::string& path, const std::string& message) {
        return std::unexpected(faults_response({{"/messages" + path, message, ""}}));
    };
    const json::array* list = messages.if_array();
    if (list == nullptr) {
        return refuse("", "must be a list");
    }
    for (std::size_t i = list->size(); i-- > 0;) {
        const json::object* message = (*list)[i].if_object();
        const json::value* role = message != nullptr ? message->if_contains("role") : nullptr;
        if (role == nullptr || *role != "user") {
            continue;
        }
        const std::string place = "/" + std::to_string(i) + "/content";
        auto text = text_of(message->if_contains("content"));
        if (!text) {
            return refuse(place, text.error());
        }
        if (base::trim(*text).empty()) {
            return refuse(place, "must not be blank");
        }
        if (text->size() > base::limits::kUserQueryBytes) {
            return refuse(
                place,
                "must be at most " + std::to_string(base::limits::kUserQueryBytes) + " bytes long"
            );
        }
        return std::move(*text);
    }
    return refuse("", "has no message of the role user");
}

std::optional<HttpResponse> refusal_of(const CallBody& body) {
    std::vector<base::Fault> faults;
    if (body.stream) {
        faults.push_back(
            {"/stream", "is not supported here", "follow the run at /api/agent/runs/{id}/events"}
        );
    }
    if (body.agent_call_meta && body.agent_call_meta->contains("context")) {
        faults.push_back(
            {"/agent_call_meta/context", "can't be overridden", "use model_spec for the model"}
        );
    }
    if (!body.async_mode &&
        body.queue_policy.value_or(QueuePolicy::reject) != QueuePolicy::reject) {
        faults.push_back(
            {"/queue_policy", "must be reject for a call that waits", "send async_mode: true"}
        );
    }
    if (body.async_mode && body.wait_timeout) {
        faults.push_back({"/wait_timeout", "contradicts async_mode", "remove one of the two"});
    }
    return faults.empty() ? std::nullopt : std::optional(faults_response(faults));
}

// Of what the run will do: a call that waits and one that does not are the same run.
std::string digest_of(const agents::User& user, const CallBody& body, const std::string& input) {
    const json::object canonical{
        {"agent_call", body.agent_slug},
        {"input", input},
        {"thread_id", body.thread_id.value_or("")},
        {"model_spec", body.model_spec.value_or("")},
        {"approval", body.tool_approval_mode ? static_cast<int>(*body.tool_approval_mode) : -1},
        {"meta", body.agent_call_meta.value_or(json::object())},
        {"uid", user.uid}
    };
    return base::sha256_hex(json::serialize(canonical));
}

json::value finish_reason(store::RunStatus status) {
    switch (status) {
        case store::RunStatus::completed:
            return "stop";
        case store::RunStatus::failed:
        case store::RunStatus::cancelled:
        case store::RunStatus::interrupted:
            return store::to_string(status);
        default:
            return nullptr;
    }
}

}  // namespace

json::object agent_call_schema() { return call_fields().schema(); }
json::object call_result_query_schema() { return query_fields().schema(); }

std::expected<AgentCall, HttpResponse> read_agent_call(const HttpRequest& request) {
    auto body = read_body(request, call_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    if (auto refusal = refusal_of(*body)) {
        return std::unexpected(std::move(*refusal));
    }
    auto input = input_of(body->messages);
    if (!input) {
        return std::unexpected(std::move(input.error()));
    }
    auto request_id = request_id_of(request, body->request_id, std::nullopt);
    if (!request_id) {
        return std::unexpected(std::move(request_id.error()));
    }
    if (request_id->size() > static_cast<std::size_t>(kRequestIdBytes)) {
        return std::unexpected(
            faults_response({{"/Idempotency-Key", "must be at most 64 bytes long", ""}})
        );
    }
    AgentCall out;
    out.async = body->async_mode;
    out.wait = body->wait_timeout;
    out.meta = body->agent_call_meta.value_or(json::object());
    out.submit.user = request.user;
    out.submit.body_digest = digest_of(request.user, *body, *input);
    out.submit.request_id = request_id->empty() ? base::random_uuid() : std::move(*request_id);
    out.submit.query = std::move(*input);
    out.submit.agent_slug = std::move(body->agent_slug);
    out.submit.model_spec = std::string(base::trim(body->model_spec.value_or("")));
    out.submit.approval_mode = body->tool_approval_mode;
    out.submit.queue_policy =
        body->queue_policy.value_or(body->async_mode ? QueuePolicy::enqueue : QueuePolicy::reject);
    out.submit.source = "agent_call";
    out.submit.makes_thread = !body->thread_id;
    if (body->thread_id) {
        out.submit.thread_id = std::move(*body->thread_id);
    } else {  // derived, so that the same request finds the same thread
        const std::string facts =
            request.user.uid + ":" + out.submit.agent_slug + ":" + out.submit.request_id;
        out.submit.thread_id =
            (std::string(kThreadPrefix) + base::sha256_hex(facts)).substr(0, kThreadIdSize);
    }
    return out;
}

json::object call_to_json(const runs::RunOutcome& outcome) {
    json::object shown = outcome_to_json(outcome);
    const store::RunRecord& run = outcome.run;
    const json::object message{{"role", "assistant"}, {"content", outcome.output}};
    json::object out{
        {"run_id", run.id},
        {"agent_slug", run.agent_slug},
        {"thread_id", run.thread_id},
        {"status", store::to_string(run.status)},
        {"request_id", run.request_id},
        {"output", outcome.output},
        {"choices",
         {{{"index", 0},
           {"message", message},
           {"messages", json::array{message}},
           {"finish_reason", finish_reason(run.status)}}}},
        {"usage", nullptr}
    };
    if (store::is_terminal(run.status) && run.usage.complete) {
        out["usage"] = {
            {"prompt_tokens", run.usage.input},
            {"completion_tokens", run.usage.output},
            {"total_tokens", run.usage.input + run.usage.output}
        };
    }
    if (const json::value* error = shown.if_contains("error")) {
        out["error"] = *error;
    }
    return out;
}

std::expected<CallResultQuery, HttpResponse> read_call_result_query(const HttpRequest& request) {
    auto body = read_body(request, query_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    return CallResultQuery{std::move(body->run_id), body->agent_slug.value_or("")};
}

}  // namespace ars::server
