#include "server/dto_runs.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/fields.hpp"
#include "base/text.hpp"
#include "runtime/agents/slug.hpp"
#include "runtime/runs/attachments.hpp"
#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/lineage.hpp"
#include "runtime/runs/run_view.hpp"
#include "server/dto_requests.hpp"
#include "server/json_body.hpp"

#include <boost/json/serialize.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::int64_t kRequestIdBytes = 200;
constexpr std::int64_t kModelSpecBytes = 512;
constexpr std::int64_t kTimeoutMs = 24 * 3600 * 1000;
constexpr std::int64_t kSteps = 10'000;

struct RunBody {
    std::string query;
    std::string agent_slug;
    std::optional<std::string> thread_id;
    std::optional<RunMeta> meta;
    std::optional<std::string> request_id;
    std::optional<std::string> model_spec;
    std::optional<agents::ApprovalMode> tool_approval_mode;
    store::QueuePolicy queue_policy = store::QueuePolicy::enqueue;
    std::optional<base::milliseconds> timeout;
    std::optional<std::uint32_t> max_steps;
};

std::string check_not_blank(std::string_view text) {
    return base::trim(text).empty() ? "must not be blank" : "";
}

// Ids travel in URLs, headers and log lines.
std::string check_id(std::string_view text) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F) {
            return "must not contain spaces or control characters";
        }
    }
    return {};
}

constexpr base::Rule kRequestIdRule{
    .min = 1,
    .max = kRequestIdBytes,
    .check = check_id,
    .doc = "Makes the request safe to repeat: the same id and body give the same run."
};

const base::Fields<RunMeta>& new_run_meta_fields() {
    static const auto fields =
        base::Fields<RunMeta>{}
            .text("request_id", &RunMeta::request_id, kRequestIdRule)
            .texts(
                "attachment_file_ids",
                &RunMeta::attachment_file_ids,
                {.max = runs::kMessageAttachments,
                 .doc = "Attachments of the thread, or your uploads, that come with the message."}
            );
    return fields;
}

const base::Fields<RunBody>& run_body_fields() {
    static const auto fields =
        base::Fields<RunBody>{}
            .text(
                "query",
                &RunBody::query,
                {.required = true,
                 .min = 1,
                 .max = static_cast<std::int64_t>(base::limits::kUserQueryBytes),
                 .check = check_not_blank,
                 .doc = "The user's message."}
            )
            .text(
                "agent_slug",
                &RunBody::agent_slug,
                {.required = true, .min = 1, .max = agents::kSlugBytes, .doc = "Which agent."}
            )
            .text(
                "thread_id",
                &RunBody::thread_id,
                {.min = 1, .max = kThreadIdBytes, .doc = "Absent: a new thread is made."}
            )
            .object("meta", &RunBody::meta, new_run_meta_fields())
            .text("request_id", &RunBody::request_id, kRequestIdRule)
            .text(
                "model_spec",
                &RunBody::model_spec,
                {.max = kModelSpecBytes, .doc = "<provider>:<model>; absent: the agent's."}
            )
            .choice(
                "tool_approval_mode",
                &RunBody::tool_approval_mode,
                {{"default", agents::ApprovalMode::ask},
                 {"always_trust", agents::ApprovalMode::always_trust}},
                {.doc = "Overrides the agent's and the appliance's mode for this run."}
            )
            .choice(
                "queue_policy",
                &RunBody::queue_policy,
                {{"enqueue", store::QueuePolicy::enqueue},
                 {"reject", store::QueuePolicy::reject},
                 {"steer", store::QueuePolicy::steer}},
                {.doc = "What happens when the thread already has an active run."}
            )
            .duration(
                "timeout",
                &RunBody::timeout,
                {.min = 1, .max = kTimeoutMs, .doc = "Wall time of the run."}
            )
            .integer(
                "max_steps",
                &RunBody::max_steps,
                {.min = 1, .max = kSteps, .doc = "Model calls of the run."}
            );
    return fields;
}

// Of what the run will do, not of how the request was spelled.
std::string digest_of(const agents::User& user, const RunBody& body) {
    json::object canonical = run_body_fields().encode(body);
    canonical.erase("request_id");
    canonical.erase("meta");
    canonical["uid"] = user.uid;
    if (body.meta && body.meta->attachment_file_ids) {
        const std::vector<std::string>& ids = *body.meta->attachment_file_ids;
        canonical["attachments"] = json::array(ids.begin(), ids.end());
    }
    return base::sha256_hex(json::serialize(canonical));
}

json::object usage_to_json(const store::TokenUsage& usage) {
    return {
        {"input_tokens", usage.input},
        {"output_tokens", usage.output},
        {"total_tokens", usage.input + usage.output},
        {"complete", usage.complete}
    };
}

// With what its sub-agents used beside.
json::object usage_to_json(
    const store::TokenUsage& own, const std::optional<store::TokenUsage>& children
) {
    json::object out = usage_to_json(own);
    if (children) {
        out["subagents"] = usage_to_json(*children);
    }
    return out;
}

json::value text_or_null(std::string_view text) {
    return text.empty() ? json::value() : json::value(text);
}

json::value message_id(const store::ReadTxn& txn, store::Seq seq) {
    const auto message = seq != 0 ? txn.message(seq) : std::nullopt;
    return message ? json::value(message->id) : json::value();
}

json::value run_id_of(const store::ReadTxn& txn, store::RunNo no) {
    const auto run = no != 0 ? txn.run(no) : std::nullopt;
    return run ? json::value(run->id) : json::value();
}

}  // namespace

const base::Rule& request_id_rule() { return kRequestIdRule; }

const base::Fields<RunMeta>& run_meta_fields() {
    static const auto fields =
        base::Fields<RunMeta>{}.text("request_id", &RunMeta::request_id, kRequestIdRule);
    return fields;
}

std::expected<std::string, HttpResponse> request_id_of(
    const HttpRequest& request,
    const std::optional<std::string>& in_body,
    const std::optional<RunMeta>& meta
) {
    std::vector<std::pair<std::string, std::string>> given;
    if (const auto header = request.header("idempotency-key")) {
        std::string wrong = header->empty() ? "must not be empty" : check_id(*header);
        if (header->size() > static_cast<std::size_t>(kRequestIdBytes)) {
            wrong = "must be at most " + std::to_string(kRequestIdBytes) + " bytes long";
        } else if (!base::is_utf8(*header)) {
            wrong = "must be UTF-8";
        }
        if (!wrong.empty()) {
            return std::unexpected(faults_response({{"/Idempotency-Key", wrong, ""}}));
        }
        given.emplace_back("the header Idempotency-Key", *header);
    }
    if (in_body) {
        given.emplace_back("request_id", *in_body);
    }
    if (meta && meta->request_id) {
        given.emplace_back("meta.request_id", *meta->request_id);
    }
    for (const auto& [place, id] : given) {
        if (id != given.front().second) {
            return std::unexpected(error_response(
                422,
                "request_id_mismatch",
                given.front().first + " and " + place + " differ: send one of them, or the same id"
            ));
        }
    }
    return given.empty() ? std::string() : given.front().second;
}

json::value time_to_json(std::int64_t ms) {
    return ms == 0 ? json::value() : json::value(base::iso8601(ms));
}

std::expected<runs::SubmitRun, HttpResponse> read_run_request(const HttpRequest& request) {
    auto body = read_body(request, run_body_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    auto request_id = request_id_of(request, body->request_id, body->meta);
    if (!request_id) {
        return std::unexpected(std::move(request_id.error()));
    }
    runs::SubmitRun out;
    out.queue_policy = body->queue_policy;
    out.user = request.user;
    out.body_digest = digest_of(request.user, *body);
    out.request_id = std::move(*request_id);
    out.agent_slug = std::move(body->agent_slug);
    out.query = std::move(body->query);
    out.thread_id = body->thread_id.value_or("");
    out.model_spec = std::string(base::trim(body->model_spec.value_or("")));
    out.approval_mode = body->tool_approval_mode;
    out.timeout = body->timeout;
    out.max_steps = body->max_steps;
    if (body->meta) {
        out.attachments = body->meta->attachment_file_ids.value_or(std::vector<std::string>());
    }
    return out;
}

json::object run_request_schema() { return run_body_fields().schema(); }

json::object submitted_to_json(const runs::Submitted& submitted) {
    const store::RequestRecord& request = submitted.request;
    const bool queued = request.status == store::RequestStatus::queued;
    json::object out{
        {"request_id", request.request_id},
        {"status", store::to_string(request.status)},
        {"queue_policy", store::to_string(request.policy)},
        {"queue_position", submitted.position},
        {"message_id", text_or_null(submitted.message_id)},
        {"run_id", nullptr},
        {"run_status", nullptr},
        {"thread_id", request.thread_id},
        {"stream_url", nullptr},
        {"request_events_url", nullptr}
    };
    if (request.status == store::RequestStatus::dispatched) {
        out["run_id"] = submitted.run.id;
        out["run_status"] = store::to_string(submitted.run.status);
        out["stream_url"] = run_events_url(submitted.run);
    }
    if (queued) {
        out["request_events_url"] = request_events_url(request);
    }
    return out;
}

json::object run_to_json(const store::ReadTxn& txn, const store::RunRecord& run) {
    json::object out{
        {"id", run.id},
        {"run_id", run.id},
        {"thread_id", run.thread_id},
        {"conversation_thread_id", run.thread_id},
        {"runtime_scope_id", run.scope_id},
        {"agent_slug", run.agent_slug},
        {"agent_version", run.agent_version},
        {"config_digest", text_or_null(run.agent_digest)},
        {"uid", run.uid},
        {"status", store::to_string(run.status)},
        {"request_id", run.request_id},
        {"run_type", store::to_string(run.type)},
        {"created_by_run_id", run_id_of(txn, run.parent)},
        {"input_message_id", message_id(txn, run.input_message)},
        {"output_message_id", message_id(txn, run.output_message)},
        {"input_payload",
         {{"model_spec", run.model_spec}, {"tool_approval_mode", run.approval_mode}}},
        {"token_usage", usage_to_json(run.usage, runs::usage_of_children(txn, run))},
        {"error_type", text_or_null(run.error_type)},
        {"error_message", text_or_null(run.error_message)},
        {"steps", run.steps},
        {"max_steps", run.max_steps},
        {"attempt", run.attempt},
        {"created_at", time_to_json(run.created_ms)},
        {"started_at", time_to_json(run.started_ms)},
        {"finished_at", time_to_json(run.finished_ms)},
        {"interrupts", runs::interrupts_to_json(txn, run)},
        {"resumed_by_run_id", run_id_of(txn, runs::resumed_by(txn, run))}
    };
    return out;
}

json::object outcome_to_json(const runs::RunOutcome& outcome) {
    const store::RunRecord& run = outcome.run;
    json::object out{
        {"status", store::to_string(run.status)},
        {"output", outcome.output},
        {"agent_slug", run.agent_slug},
        {"thread_id", run.thread_id},
        {"conversation_id", run.thread},
        {"agent_run_id", run.id},
        {"request_id", run.request_id},
        {"final_message_id", text_or_null(outcome.final_message_id)},
        {"langfuse_trace_id", nullptr},
        {"token_usage", usage_to_json(run.usage, outcome.children_usage)}
    };
    if (!run.error_type.empty() || run.status == store::RunStatus::failed) {
        out["error"] = {
            {"type", run.error_type.empty() ? std::string("failed") : run.error_type},
            {"message", run.error_message}
        };
    }
    return out;
}

}  // namespace ars::server
