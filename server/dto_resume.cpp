#include "server/dto_resume.hpp"

#include "base/fields.hpp"
#include "runtime/agents/slug.hpp"
#include "server/dto_runs.hpp"
#include "server/json_body.hpp"

namespace ars::server {

namespace json = boost::json;

namespace {

enum class ResumePolicy : std::uint8_t { enqueue };

struct ResumeBody {
    json::value resume;
    std::string created_by_run_id;
    std::string agent_slug;
    std::optional<std::string> thread_id;
    std::optional<RunMeta> meta;
    std::optional<std::string> request_id;
    ResumePolicy queue_policy = ResumePolicy::enqueue;
    std::optional<std::string> query;
    std::optional<json::value> model_spec;
    std::optional<json::value> tool_approval_mode;
    std::optional<json::value> timeout;
    std::optional<json::value> max_steps;
};

const base::Fields<ResumeBody>& resume_body_fields() {
    static const auto fields =
        base::Fields<ResumeBody>{}
            .any("resume", &ResumeBody::resume, {.required = true, .doc = "Answers by interrupt."})
            .text(
                "created_by_run_id",
                &ResumeBody::created_by_run_id,
                {.required = true, .min = 1, .max = 64, .doc = "The interrupted run."}
            )
            .text(
                "agent_slug",
                &ResumeBody::agent_slug,
                {.required = true, .min = 1, .max = agents::kSlugBytes}
            )
            .text("thread_id", &ResumeBody::thread_id, {.min = 1, .max = kThreadIdBytes})
            .object("meta", &ResumeBody::meta, run_meta_fields())
            .text("request_id", &ResumeBody::request_id, request_id_rule())
            .choice("queue_policy", &ResumeBody::queue_policy, {{"enqueue", ResumePolicy::enqueue}})
            .text("query", &ResumeBody::query, {.max = 0, .remedy = "a resume has no message"})
            .any("model_spec", &ResumeBody::model_spec)
            .any("tool_approval_mode", &ResumeBody::tool_approval_mode)
            .any("timeout", &ResumeBody::timeout)
            .any("max_steps", &ResumeBody::max_steps);
    return fields;
}

}  // namespace

json::object resume_request_schema() { return resume_body_fields().schema(); }

bool is_resume(const HttpRequest& request) {
    if (request.body.find("\"resume\"") == std::string::npos) {
        return false;  // most bodies: nothing is parsed twice
    }
    const auto body = parse_json(request.body);
    const json::object* object = body ? body->if_object() : nullptr;
    const json::value* resume = object != nullptr ? object->if_contains("resume") : nullptr;
    return resume != nullptr && !resume->is_null();
}

std::expected<ResumeRequest, HttpResponse> read_resume_request(const HttpRequest& request) {
    auto body = read_body(request, resume_body_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    auto request_id = request_id_of(request, body->request_id, body->meta);
    if (!request_id) {
        return std::unexpected(std::move(request_id.error()));
    }
    ResumeRequest out;
    out.resume.user = request.user;
    out.resume.run_id = std::move(body->created_by_run_id);
    out.resume.agent_slug = std::move(body->agent_slug);
    out.resume.thread_id = body->thread_id.value_or("");
    out.resume.request_id = std::move(*request_id);
    out.resume.resume = std::move(body->resume);
    const auto note = [&out](const char* name, const std::optional<json::value>& given) {
        if (given && !given->is_null()) {
            out.not_applied.emplace_back(name);
        }
    };
    note("model_spec", body->model_spec);
    note("tool_approval_mode", body->tool_approval_mode);
    note("timeout", body->timeout);
    note("max_steps", body->max_steps);
    return out;
}

}  // namespace ars::server
