// What is stored, as plain values. Every record has a version byte on disk (store/codec); internal
// numbers rise for ever and key the indexes, public ids are opaque text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ars::store {

using Seq = std::uint64_t;        // place in the journal; 0 = none
using ThreadNo = std::uint64_t;   // 0 = none
using RunNo = std::uint64_t;      // 0 = none
using RequestNo = std::uint64_t;  // 0 = none

enum class RunStatus : std::uint8_t {
    pending,
    running,
    interrupted,
    cancel_requested,
    completed,
    failed,
    cancelled,
};
[[nodiscard]] constexpr bool is_terminal(RunStatus status) {
    return status >= RunStatus::completed;
}
[[nodiscard]] const char* to_string(RunStatus status);  // "cancel_requested"

enum class RunType : std::uint8_t { chat, resume, subagent };
[[nodiscard]] const char* to_string(RunType type);

// What becomes of a message whose thread has a run already: it waits its turn, is refused, or goes
// first while that run ends at its next step.
enum class QueuePolicy : std::uint8_t { enqueue, reject, steer };
[[nodiscard]] const char* to_string(QueuePolicy policy);

enum class RequestStatus : std::uint8_t { queued, dispatched, cancelled, rejected };
[[nodiscard]] const char* to_string(RequestStatus status);

enum class ThreadStatus : std::uint8_t { active, archived, deleted, subagent };
[[nodiscard]] const char* to_string(ThreadStatus status);

struct TokenUsage {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    bool complete = true;  // every model call reported its usage
};

struct ThreadRecord {
    ThreadNo no = 0;
    std::string id;  // <= 200 bytes
    std::string uid;
    std::string agent_slug;
    std::string title;
    std::string workdir_path;  // relative to the user's workspace; "" = the workspace itself
    std::string request_id;    // of its creation; may be empty
    std::string metadata;      // JSON object text
    ThreadStatus status = ThreadStatus::active;
    bool is_pinned = false;     // listed before the others
    bool is_hidden = false;     // in no list: an agent call made it
    std::string approval_mode;  // its user's choice for runs to come; "" = the agent's
    RunNo viewed = 0;           // the latest run that its user has seen the end of
    ThreadNo parent = 0;        // of a sub-agent's thread
    ThreadNo root = 0;          // itself for a root thread; its id names the sandbox scope
    std::int64_t created_ms = 0;
    std::int64_t updated_ms = 0;
};

struct RunRecord {
    RunNo no = 0;
    std::string id;
    ThreadNo thread = 0;
    std::string thread_id;
    std::string uid;
    std::string agent_slug;
    std::string request_id;   // global
    std::string body_digest;  // of the request that made it: same id + other digest is a conflict
    std::string source = "chat";  // who asks: "chat", "subagent", an entry of its own
    QueuePolicy queue_policy = QueuePolicy::enqueue;  // of the request that made it
    RunType type = RunType::chat;
    RunStatus status = RunStatus::pending;
    RunNo parent = 0;            // the run whose tool call made this one
    RunNo root = 0;              // itself for a root
    std::string parent_call_id;  // "<run>:<step>:<index>"
    std::string scope_id;        // runtime_scope_id = the root thread's id
    std::string model_spec;      // snapshot of intake
    std::string approval_mode;   // snapshot of intake
    std::string
        agent_config;  // JSON text of the agent's context at intake: what the run keeps using
    std::uint64_t agent_version = 0;  // of the agent at intake
    std::string agent_digest;         // of that version's definition
    std::string error_type;
    std::string error_message;
    Seq input_message = 0;
    Seq output_message = 0;   // answer of a completed run; of an interrupted one, what waits
    std::uint32_t steps = 0;  // model calls committed
    std::uint32_t max_steps = 0;
    std::int64_t timeout_ms = 0;      // wall time served
    std::int64_t served_ms = 0;       // used up by earlier boots
    std::uint32_t attempt = 1;        // +1 for each boot that took it over
    std::uint32_t idle_attempts = 0;  // boots in a row without a new record
    TokenUsage usage;
    std::int64_t created_ms = 0;
    std::int64_t started_ms = 0;
    std::int64_t finished_ms = 0;
};

// A message that could not become a run at once. One that could leaves no such record: its run has
// the same request id, and says the same.
struct RequestRecord {
    RequestNo no = 0;
    std::string request_id;  // global, shared with runs
    ThreadNo thread = 0;
    std::string thread_id;
    std::string uid;
    std::string agent_slug;
    std::string body_digest;
    std::string source = "chat";
    QueuePolicy policy = QueuePolicy::enqueue;
    RequestStatus status = RequestStatus::queued;
    std::string message_id;  // of the user's message, before and after it is in the thread
    std::string content;     // until it left the queue
    std::string model_spec;  // this and the next: snapshots of intake, for the run to come
    std::string approval_mode;
    std::string agent_config;  // until it left the queue
    std::uint64_t agent_version = 0;
    std::string agent_digest;
    std::uint32_t max_steps = 0;
    std::int64_t timeout_ms = 0;
    RunNo run = 0;  // dispatched: the run it became; rejected: the run in its way
    std::string error_type;
    std::string error_message;
    std::int64_t created_ms = 0;
    std::int64_t dispatched_ms = 0;
    std::int64_t updated_ms = 0;
};

enum class Role : std::uint8_t { user, assistant, tool };
[[nodiscard]] const char* to_string(Role role);

struct ToolCall {
    std::string id;           // ours: "<run id>:<step>:<index>", unique for ever
    std::string provider_id;  // theirs: repeats between turns, only ever sent back to the provider
    std::string name;
    std::string arguments;  // as the model wrote them: usually JSON text, perhaps broken
};

struct MessageRecord {
    Seq seq = 0;
    std::string id;  // public
    ThreadNo thread = 0;
    RunNo run = 0;
    Role role = Role::user;
    std::string content;
    std::string reasoning;             // assistant only
    std::vector<ToolCall> tool_calls;  // assistant only
    std::string tool_call_id;          // tool only: ToolCall::id
    std::string tool_name;             // tool only
    bool is_error = false;             // tool only
    std::int64_t duration_ms = 0;      // tool only
    std::int64_t created_ms = 0;
};

// The life of one tool call: written as an intent before it starts, again when its result is
// stored.
struct CallRecord {
    RunNo run = 0;
    std::uint32_t step = 0;
    std::uint32_t index = 0;
    bool done = false;
    RunNo child = 0;               // run started by task or subagent_start
    std::int64_t deadline_ms = 0;  // absolute wall time of a waiting tool; 0 = none
    Seq result = 0;                // message with the result
};

struct CheckpointRecord {
    Seq seq = 0;
    std::string id;
    ThreadNo thread = 0;
    RunNo run = 0;
    std::uint32_t step = 0;
    Seq message_head = 0;  // newest message that belongs to it
    std::string state;     // JSON object text: todos, artifacts, subagent_runs
    std::int64_t created_ms = 0;
};

// A message that waits in the queue is stored before the answers to those ahead of it, and is none
// of theirs.
[[nodiscard]] inline bool belongs_to(const MessageRecord& message, const CheckpointRecord& at) {
    return message.seq <= at.message_head && message.run <= at.run;
}

// The end of a root run that somebody outside has still to be told.
struct OutboxRecord {
    std::uint64_t queue = 0;  // whose; 0 = not yet shared out
    std::int64_t due_ms = 0;
    RunNo run = 0;
    std::uint32_t attempts = 0;
};

// Event ids are "<ms>-<n>", strictly rising in a run, also across restarts and clock jumps.
struct EventId {
    std::uint64_t ms = 0;
    std::uint32_t n = 0;
    auto operator<=>(const EventId&) const = default;
};
[[nodiscard]] std::string to_string(EventId id);
// False when the text is not "<digits>-<digits>".
[[nodiscard]] bool parse_event_id(const std::string& text, EventId& out);

struct EventRecord {
    EventId id;
    RunNo run = 0;
    // 0: `type` and `payload` are what a reader gets. Else the record `source` holds most of it,
    // and the rest, in this number's own way, is in `index` and `payload` (runs/events).
    std::uint8_t shape = 0;
    Seq source = 0;
    std::uint32_t index = 0;
    std::string type;     // "messages", "custom", "end", ...
    std::string payload;  // JSON text
    std::int64_t created_ms = 0;
};

}  // namespace ars::store
