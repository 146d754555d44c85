// One field list per record, read and written by the same template: the two directions can't drift.
#include "runtime/store/codec.hpp"

#include "runtime/store/bytes.hpp"

namespace ars::store {

namespace {

// Least bytes of one stored ToolCall: four empty strings. It bounds the count that a reader
// believes.
constexpr std::size_t kLeastToolCall = 4;

template <class Archive, class Record>
void thread_fields(Archive& archive, Record& r) {
    // Before the rest: a record ends with a time (soundness.cpp).
    if (archive.version() >= 3) {
        archive(r.is_pinned);
        archive(r.is_hidden);
        archive(r.approval_mode);
        archive(r.viewed);
    }
    archive(r.id);
    archive(r.uid);
    archive(r.agent_slug);
    archive(r.title);
    archive(r.workdir_path);
    archive(r.request_id);
    archive(r.metadata);
    archive.enumeration(r.status, ThreadStatus::subagent);
    archive(r.parent);
    archive(r.root);
    archive(r.created_ms);
    archive(r.updated_ms);
}

template <class Archive, class Record>
void run_fact_fields(Archive& archive, Record& r) {
    if (archive.version() >= 4) {
        archive(r.agent_version);
        archive(r.agent_digest);
    }
    if (archive.version() >= 2) {
        archive(r.source);
        archive.enumeration(r.queue_policy, QueuePolicy::steer);
    }
    archive(r.id);
    archive(r.thread);
    archive(r.thread_id);
    archive(r.uid);
    archive(r.agent_slug);
    archive(r.request_id);
    archive(r.body_digest);
    archive.enumeration(r.type, RunType::subagent);
    archive(r.parent);
    archive(r.root);
    archive(r.parent_call_id);
    archive(r.scope_id);
    archive(r.model_spec);
    archive(r.approval_mode);
    archive(r.agent_config);
    archive(r.max_steps);
    archive(r.timeout_ms);
    archive(r.created_ms);
}

template <class Archive, class Record>
void run_state_fields(Archive& archive, Record& r) {
    archive.enumeration(r.status, RunStatus::cancelled);
    archive(r.error_type);
    archive(r.error_message);
    archive(r.input_message);
    archive(r.output_message);
    archive(r.steps);
    archive(r.served_ms);
    archive(r.attempt);
    archive(r.idle_attempts);
    archive(r.usage.input);
    archive(r.usage.output);
    archive(r.usage.complete);
    archive(r.started_ms);
    archive(r.finished_ms);
}

template <class Archive, class Record>
void request_fields(Archive& archive, Record& r) {
    if (archive.version() >= 4) {
        archive(r.agent_version);
        archive(r.agent_digest);
    }
    archive(r.request_id);
    archive(r.thread);
    archive(r.thread_id);
    archive(r.uid);
    archive(r.agent_slug);
    archive(r.body_digest);
    archive(r.source);
    archive.enumeration(r.policy, QueuePolicy::steer);
    archive.enumeration(r.status, RequestStatus::rejected);
    archive(r.message_id);
    archive(r.content);
    archive(r.model_spec);
    archive(r.approval_mode);
    archive(r.agent_config);
    archive(r.max_steps);
    archive(r.timeout_ms);
    archive(r.run);
    archive(r.error_type);
    archive(r.error_message);
    archive(r.created_ms);
    archive(r.dispatched_ms);
    archive(r.updated_ms);
}

template <class Archive, class Record>
void tool_call_fields(Archive& archive, Record& r) {
    archive(r.id);
    archive(r.provider_id);
    archive(r.name);
    archive(r.arguments);
}

void tool_calls(ByteWriter& writer, const std::vector<ToolCall>& calls) {
    writer(std::uint64_t{calls.size()});
    for (const ToolCall& call : calls) {
        tool_call_fields(writer, call);
    }
}

void tool_calls(ByteReader& reader, std::vector<ToolCall>& calls) {
    std::uint64_t count = 0;
    reader(count);
    if (count > reader.remaining() / kLeastToolCall) {
        return reader.fail();
    }
    for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
        tool_call_fields(reader, calls.emplace_back());
    }
}

template <class Archive, class Record>
void message_fields(Archive& archive, Record& r) {
    archive(r.id);
    archive(r.thread);
    archive(r.run);
    archive.enumeration(r.role, Role::tool);
    archive(r.content);
    archive(r.reasoning);
    tool_calls(archive, r.tool_calls);
    archive(r.tool_call_id);
    archive(r.tool_name);
    archive(r.is_error);
    archive(r.duration_ms);
    archive(r.created_ms);
}

template <class Archive, class Record>
void call_fields(Archive& archive, Record& r) {
    archive(r.done);
    archive(r.child);
    archive(r.deadline_ms);
    archive(r.result);
}

template <class Archive, class Record>
void checkpoint_fields(Archive& archive, Record& r) {
    archive(r.id);
    archive(r.thread);
    archive(r.run);
    archive(r.step);
    archive(r.message_head);
    archive(r.state);
    archive(r.created_ms);
}

template <class Archive, class Record>
void event_fields(Archive& archive, Record& r) {
    if (archive.version() >= 5) {
        archive(r.event.shape);
        archive(r.event.source);
        archive(r.event.index);
    }
    archive(r.previous);
    archive(r.event.id.ms);
    archive(r.event.id.n);
    archive(r.event.run);
    archive(r.event.type);
    archive(r.event.payload);
    archive(r.event.created_ms);
}

template <class Archive, class Record>
void outbox_fields(Archive& archive, Record& r) {
    archive(r.attempts);
}

template <class Archive, class Record>
void event_head_fields(Archive& archive, Record& r) {
    archive(r.last.ms);
    archive(r.last.n);
    archive(r.seq);
    archive(r.count);
}

template <class Record, class Fields>
std::string encode(const Record& record, Fields fields) {
    ByteWriter writer;
    writer.write_version(kRecordVersion);
    fields(writer, record);
    return writer.take();
}

template <class Record, class Fields>
bool decode(std::string_view bytes, Record& record, Fields fields) {
    ByteReader reader(bytes);
    if (!reader.read_version(kRecordVersion)) {
        return false;
    }
    fields(reader, record);
    return reader.complete();
}

template <class Record, class Fields>
std::optional<Record> decode(std::string_view bytes, Fields fields) {
    Record record;
    if (!decode(bytes, record, fields)) {
        return std::nullopt;
    }
    return record;
}

// Turns a field list into a value that encode and decode can take.
#define ARS_FIELDS(list) [](auto& archive, auto& record) { list(archive, record); }

}  // namespace

std::string encode_thread(const ThreadRecord& thread) {
    return encode(thread, ARS_FIELDS(thread_fields));
}
std::optional<ThreadRecord> decode_thread(std::string_view bytes) {
    return decode<ThreadRecord>(bytes, ARS_FIELDS(thread_fields));
}

std::string encode_run_facts(const RunRecord& run) {
    return encode(run, ARS_FIELDS(run_fact_fields));
}
std::string encode_run_state(const RunRecord& run) {
    return encode(run, ARS_FIELDS(run_state_fields));
}
bool decode_run_facts(std::string_view bytes, RunRecord& run) {
    return decode(bytes, run, ARS_FIELDS(run_fact_fields));
}
bool decode_run_state(std::string_view bytes, RunRecord& run) {
    return decode(bytes, run, ARS_FIELDS(run_state_fields));
}

std::string encode_request(const RequestRecord& request) {
    return encode(request, ARS_FIELDS(request_fields));
}
std::optional<RequestRecord> decode_request(std::string_view bytes) {
    return decode<RequestRecord>(bytes, ARS_FIELDS(request_fields));
}

std::string encode_message(const MessageRecord& message) {
    return encode(message, ARS_FIELDS(message_fields));
}
std::optional<MessageRecord> decode_message(std::string_view bytes) {
    return decode<MessageRecord>(bytes, ARS_FIELDS(message_fields));
}

std::string encode_call(const CallRecord& call) { return encode(call, ARS_FIELDS(call_fields)); }
std::optional<CallRecord> decode_call(std::string_view bytes) {
    return decode<CallRecord>(bytes, ARS_FIELDS(call_fields));
}

std::string encode_checkpoint(const CheckpointRecord& checkpoint) {
    return encode(checkpoint, ARS_FIELDS(checkpoint_fields));
}
std::optional<CheckpointRecord> decode_checkpoint(std::string_view bytes) {
    return decode<CheckpointRecord>(bytes, ARS_FIELDS(checkpoint_fields));
}

std::string encode_event(const StoredEvent& stored) {
    return encode(stored, ARS_FIELDS(event_fields));
}
std::optional<StoredEvent> decode_event(std::string_view bytes) {
    return decode<StoredEvent>(bytes, ARS_FIELDS(event_fields));
}

std::string encode_outbox(const OutboxRecord& record) {
    return encode(record, ARS_FIELDS(outbox_fields));
}
bool decode_outbox(std::string_view bytes, OutboxRecord& record) {
    return decode(bytes, record, ARS_FIELDS(outbox_fields));
}

std::string encode_event_head(const EventHead& head) {
    return encode(head, ARS_FIELDS(event_head_fields));
}
std::optional<EventHead> decode_event_head(std::string_view bytes) {
    return decode<EventHead>(bytes, ARS_FIELDS(event_head_fields));
}

#undef ARS_FIELDS

}  // namespace ars::store
