#include "server/dto_threads.hpp"

#include "base/fields.hpp"
#include "runtime/agents/slug.hpp"
#include "runtime/runs/interrupts.hpp"
#include "server/dto_runs.hpp"
#include "server/json_body.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <map>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::int64_t kRequestIdBytes = 64;
constexpr std::int64_t kTitleBytes = 1024;
constexpr std::size_t kMetadataBytes = 16 * base::limits::kKiB;
constexpr std::string_view kProjects = "projects/";

struct ThreadBody {
    std::optional<std::string> request_id;
    std::optional<std::string> title;
    std::string agent_id;
    std::optional<json::object> metadata;
};

const base::Fields<ThreadBody>& thread_body_fields() {
    static const auto fields =
        base::Fields<ThreadBody>{}
            .text(
                "request_id",
                &ThreadBody::request_id,
                {.min = 1, .max = kRequestIdBytes, .doc = "The same id gives the same thread."}
            )
            .text("title", &ThreadBody::title, {.max = kTitleBytes})
            .text(
                "agent_id",
                &ThreadBody::agent_id,
                {.required = true, .min = 1, .max = agents::kSlugBytes, .doc = "The agent's slug."}
            )
            .raw("metadata", &ThreadBody::metadata, {.doc = "Kept and given back as it is."});
    return fields;
}

const char* thread_status(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto latest = txn.latest_run_of_thread(thread.no);
    const auto run = latest ? txn.run(*latest) : std::nullopt;
    if (!run) {
        return "done";
    }
    const bool at_rest =
        store::is_terminal(run->status) || run->status == store::RunStatus::interrupted;
    return at_rest ? "ready" : "loading";
}

// Stored text that should be JSON: the value, or the text itself where a model wrote something
// else.
json::value parsed_or_text(const std::string& text) {
    json::error_code ec;
    json::value value = json::parse(text, ec);
    return ec ? json::value(text) : value;
}

json::value parent_id(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto parent = thread.parent != 0 ? txn.thread(thread.parent) : std::nullopt;
    return parent ? json::value(parent->id) : json::value();
}

using Results = std::map<std::string, const store::MessageRecord*, std::less<>>;

json::array calls_to_json(const store::MessageRecord& message, const Results& results) {
    json::array out;
    for (const store::ToolCall& call : message.tool_calls) {
        json::object entry{
            {"id", call.id}, {"name", call.name}, {"input", parsed_or_text(call.arguments)}
        };
        const auto found = results.find(call.id);
        if (found == results.end()) {
            entry["status"] = "pending";
            entry["output"] = nullptr;
        } else {
            entry["status"] = found->second->is_error ? "error" : "success";
            entry["output"] = found->second->content;
            entry["duration_ms"] = found->second->duration_ms;
        }
        out.push_back(std::move(entry));
    }
    return out;
}

json::object message_to_json(
    const store::MessageRecord& message, const store::RunRecord* run, const Results& results
) {
    json::object out{
        {"id", message.id},
        {"role", store::to_string(message.role)},
        {"content", message.content},
        {"run_id", run != nullptr ? json::value(run->id) : json::value()},
        {"request_id", run != nullptr ? json::value(run->request_id) : json::value()},
        {"created_at", time_to_json(message.created_ms)}
    };
    if (message.role == store::Role::assistant) {
        out["reasoning_content"] = message.reasoning;
        out["tool_calls"] = calls_to_json(message, results);
        out["run_started_at"] = time_to_json(run != nullptr ? run->started_ms : 0);
        out["run_finished_at"] = time_to_json(run != nullptr ? run->finished_ms : 0);
    }
    return out;
}

}  // namespace

std::expected<runs::NewThread, HttpResponse> read_new_thread(const HttpRequest& request) {
    auto body = read_body(request, thread_body_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    runs::NewThread out;
    out.user = request.user;
    out.agent_slug = std::move(body->agent_id);
    out.title = body->title.value_or("");
    out.request_id = body->request_id.value_or("");
    const json::object metadata = body->metadata.value_or(json::object());
    if (metadata.contains("attachments")) {
        return std::unexpected(error_response(
            400, "reserved_metadata", "metadata.attachments belongs to the server; leave it out"
        ));
    }
    out.metadata = json::serialize(metadata);
    if (out.metadata.size() > kMetadataBytes) {
        return std::unexpected(faults_response(
            {{"/metadata", "must be at most " + std::to_string(kMetadataBytes) + " bytes", ""}}
        ));
    }
    return out;
}

json::object thread_to_json(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    json::value project;
    if (thread.workdir_path.starts_with(kProjects)) {
        project = std::string_view(thread.workdir_path).substr(kProjects.size());
    }
    return {
        {"id", thread.id},
        {"uid", thread.uid},
        {"agent_id", thread.agent_slug},
        {"title", thread.title},
        {"is_pinned", false},
        {"project_id", std::move(project)},
        {"workdir_path", thread.workdir_path},
        {"parent_thread_id", parent_id(txn, thread)},
        {"status", store::to_string(thread.status)},
        {"created_at", time_to_json(thread.created_ms)},
        {"updated_at", time_to_json(thread.updated_ms)},
        {"metadata",
         thread.metadata.empty() ? json::value(json::object()) : parsed_or_text(thread.metadata)},
        {"thread_status", thread_status(txn, thread)}
    };
}

json::array history_to_json(
    const store::ReadTxn& txn,
    const store::ThreadRecord& thread,
    std::size_t limit,
    const store::CheckpointRecord* at
) {
    std::vector<store::MessageRecord> messages = txn.messages(thread.no);
    if (at != nullptr) {
        std::erase_if(messages, [at](const store::MessageRecord& message) {
            return !store::belongs_to(message, *at);
        });
    }
    // A queued message is stored before the answer to the one ahead of it, and is shown after that
    // answer.
    std::ranges::sort(messages, {}, [](const store::MessageRecord& message) {
        return std::pair(message.run, message.seq);
    });
    Results results;
    std::vector<const store::MessageRecord*> shown;
    for (const store::MessageRecord& message : messages) {
        if (message.role == store::Role::tool) {
            results.emplace(message.tool_call_id, &message);
        } else {
            shown.push_back(&message);
        }
    }
    if (shown.size() > limit) {
        shown.erase(shown.begin(), shown.end() - static_cast<std::ptrdiff_t>(limit));
    }
    json::array out;
    std::optional<store::RunRecord> run;
    for (const store::MessageRecord* message : shown) {
        if (!run || run->no != message->run) {
            run = txn.run(message->run);
        }
        out.push_back(message_to_json(*message, run ? &*run : nullptr, results));
    }
    return out;
}

json::object state_to_json(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto checkpoint = txn.latest_checkpoint(thread.no);
    const bool stored = checkpoint && !checkpoint->state.empty();
    const auto latest = txn.latest_run_of_thread(thread.no);
    const auto run = latest ? txn.run(*latest) : std::nullopt;
    return {
        {"thread_id", thread.id},
        {"parent_thread_id", parent_id(txn, thread)},
        {"thread_status", thread_status(txn, thread)},
        {"agent_state", stored ? parsed_or_text(checkpoint->state) : json::value(json::object())},
        {"interrupts", run ? runs::interrupts_to_json(txn, *run) : json::array()},
    };
}

}  // namespace ars::server
