#include "server/dto_threads.hpp"

#include "base/fields.hpp"
#include "runtime/agents/slug.hpp"
#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/projects.hpp"
#include "runtime/runs/thread_state.hpp"
#include "server/dto_runs.hpp"
#include "server/json_body.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <deque>
#include <map>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::int64_t kRequestIdBytes = 64;
constexpr std::int64_t kTitleBytes = 1024;
constexpr std::size_t kMetadataBytes = 16 * base::limits::kKiB;
constexpr std::int64_t kProjectIdBytes = 64;

struct ThreadBody {
    std::optional<std::string> request_id;
    std::optional<std::string> title;
    std::string agent_id;
    std::optional<json::object> metadata;
    std::optional<std::string> project_id;
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
            .raw("metadata", &ThreadBody::metadata, {.doc = "Kept and given back as it is."})
            .text(
                "project_id",
                &ThreadBody::project_id,
                {.min = 1,
                 .max = kProjectIdBytes,
                 .doc = "Whose directory it works in; absent: a new one of its own."}
            );
    return fields;
}

struct ChangeBody {
    std::optional<std::string> title;
    std::optional<bool> is_pinned;
    std::optional<agents::ApprovalMode> tool_approval_mode;
};

const base::Fields<ChangeBody>& change_body_fields() {
    static const auto fields =
        base::Fields<ChangeBody>{}
            .text("title", &ChangeBody::title, {.max = kTitleBytes})
            .boolean("is_pinned", &ChangeBody::is_pinned, {.doc = "Listed before the others."})
            .choice(
                "tool_approval_mode",
                &ChangeBody::tool_approval_mode,
                {{"default", agents::ApprovalMode::ask},
                 {"always_trust", agents::ApprovalMode::always_trust}},
                {.doc = "Of the thread's next runs, over the agent's and the appliance's."}
            );
    return fields;
}

// Stored text that should be JSON: the value, or the text itself where a model wrote something
// else.
json::value parsed_or_text(const std::string& text) {
    json::error_code ec;
    json::value value = json::parse(text, ec);
    return ec ? json::value(text) : value;
}

// What happens in a thread is written to its runs.
std::int64_t updated_ms(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto latest = txn.latest_run_of_thread(thread.no);
    const auto run = latest ? txn.run(*latest) : std::nullopt;
    return run ? std::max({thread.updated_ms, run->created_ms, run->finished_ms})
               : thread.updated_ms;
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

json::object new_thread_schema() { return thread_body_fields().schema(); }
json::object thread_change_schema() { return change_body_fields().schema(); }

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
    out.project_id = body->project_id.value_or("");
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

std::expected<runs::ChangeThread, HttpResponse> read_thread_change(const HttpRequest& request) {
    auto body = read_body(request, change_body_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    runs::ChangeThread out;
    out.user = request.user;
    out.title = std::move(body->title);
    out.is_pinned = body->is_pinned;
    out.approval_mode = body->tool_approval_mode;
    return out;
}

json::object thread_to_json(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    // A directory of the thread's own is an implicit project.
    std::string project = runs::project_of_thread(txn, thread);
    if (project.empty() && thread.workdir_path.starts_with(runs::kManagedWorkdirs)) {
        project = thread.workdir_path.substr(runs::kManagedWorkdirs.size());
    }
    return {
        {"id", thread.id},
        {"uid", thread.uid},
        {"agent_id", thread.agent_slug},
        {"title", thread.title},
        {"is_pinned", thread.is_pinned},
        {"tool_approval_mode",
         thread.approval_mode.empty() ? json::value() : json::value(thread.approval_mode)},
        {"project_id", project.empty() ? json::value() : json::value(project)},
        {"workdir_path", thread.workdir_path},
        {"parent_thread_id", parent_id(txn, thread)},
        {"status", store::to_string(thread.status)},
        {"created_at", time_to_json(thread.created_ms)},
        {"updated_at", time_to_json(updated_ms(txn, thread))},
        {"metadata",
         thread.metadata.empty() ? json::value(json::object()) : parsed_or_text(thread.metadata)},
        {"thread_status", runs::thread_status(txn, thread)}
    };
}

HistoryPage history_page(
    const store::ReadTxn& txn,
    const store::ThreadRecord& thread,
    std::size_t limit,
    store::Seq before,
    const store::CheckpointRecord* at
) {
    constexpr std::size_t kRead = 256;
    if (at != nullptr) {
        before = at->message_head + 1;
    }
    // From the newest back: the results of a call come before it.
    std::deque<store::MessageRecord> read;
    std::vector<const store::MessageRecord*> shown;
    Results results;
    for (bool more = true; more && shown.size() <= limit;) {
        std::vector<store::MessageRecord> page = txn.messages_back(thread.no, before, kRead);
        more = page.size() == kRead;
        for (store::MessageRecord& message : page) {
            before = message.seq;
            if (at != nullptr && !store::belongs_to(message, *at)) {
                continue;
            }
            const store::MessageRecord& kept = read.emplace_back(std::move(message));
            if (kept.role == store::Role::tool) {
                results.emplace(kept.tool_call_id, &kept);
            } else {
                shown.push_back(&kept);
            }
        }
    }
    HistoryPage out;
    if (shown.size() > limit) {
        shown.resize(limit);
        out.next = shown.empty() ? 0 : shown.back()->seq;
    }
    std::optional<store::RunRecord> run;
    for (auto it = shown.rbegin(); it != shown.rend(); ++it) {
        if (!run || run->no != (*it)->run) {
            run = txn.run((*it)->run);
        }
        out.messages.push_back(message_to_json(**it, run ? &*run : nullptr, results));
    }
    return out;
}

json::object state_to_json(
    const store::ReadTxn& txn, const store::ThreadRecord& thread, std::size_t messages
) {
    const auto latest = txn.latest_run_of_thread(thread.no);
    const auto run = latest ? txn.run(*latest) : std::nullopt;
    json::object out{
        {"thread_id", thread.id},
        {"parent_thread_id", parent_id(txn, thread)},
        {"thread_status", runs::thread_status(txn, thread)},
        {"agent_state", runs::thread_state(txn, thread)},
        {"interrupts", run ? runs::interrupts_to_json(txn, *run) : json::array()},
    };
    if (thread.parent != 0) {
        out["subagent_thread"] = json::object{
            {"parent_thread_id", parent_id(txn, thread)},
            {"child_thread_id", thread.id},
            {"subagent_slug", thread.agent_slug}
        };
        out["subagent_run"] = run ? json::value(run_to_json(txn, *run)) : json::value();
    }
    if (messages > 0) {
        out["messages"] = history_page(txn, thread, messages).messages;
    }
    return out;
}

}  // namespace ars::server
