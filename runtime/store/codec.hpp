// How records look on disk: one version byte, then the fields in a fixed order as varints and
// length-prefixed strings. What is the key of a record (its number or seq) is not in its bytes.
//
// A change of a field list needs a new version byte and a decoder that still reads the old one.
// Decoders survive any bytes: they return nullopt for truncated, overlong, trailing or unknown
// input.
#pragma once

#include "runtime/store/records.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace ars::store {

// The version byte that is written today.
inline constexpr unsigned char kRecordVersion = 5;

[[nodiscard]] std::string encode_thread(const ThreadRecord& thread);
[[nodiscard]] std::optional<ThreadRecord> decode_thread(std::string_view bytes);

// A run is stored in two halves: the facts of its intake, large and written once, and its state,
// small and written at every step. So a step never rewrites the snapshot of the agent.
[[nodiscard]] std::string encode_run_facts(const RunRecord& run);
[[nodiscard]] std::string encode_run_state(const RunRecord& run);
// Fill their half of `run`; false leaves it in an unspecified but valid state.
[[nodiscard]] bool decode_run_facts(std::string_view bytes, RunRecord& run);
[[nodiscard]] bool decode_run_state(std::string_view bytes, RunRecord& run);

[[nodiscard]] std::string encode_request(const RequestRecord& request);
[[nodiscard]] std::optional<RequestRecord> decode_request(std::string_view bytes);

[[nodiscard]] std::string encode_message(const MessageRecord& message);
[[nodiscard]] std::optional<MessageRecord> decode_message(std::string_view bytes);

[[nodiscard]] std::string encode_call(const CallRecord& call);
[[nodiscard]] std::optional<CallRecord> decode_call(std::string_view bytes);

[[nodiscard]] std::string encode_checkpoint(const CheckpointRecord& checkpoint);
[[nodiscard]] std::optional<CheckpointRecord> decode_checkpoint(std::string_view bytes);

// An event in the journal knows the one before it in its run; see event_log.cpp.
struct StoredEvent {
    EventRecord event;
    Seq previous = 0;
};
[[nodiscard]] std::string encode_event(const StoredEvent& stored);
[[nodiscard]] std::optional<StoredEvent> decode_event(std::string_view bytes);

// What is not in its key.
[[nodiscard]] std::string encode_outbox(const OutboxRecord& record);
[[nodiscard]] bool decode_outbox(std::string_view bytes, OutboxRecord& record);

// Where the event log of a run ends.
struct EventHead {
    EventId last;
    Seq seq = 0;
    std::uint64_t count = 0;
};
[[nodiscard]] std::string encode_event_head(const EventHead& head);
[[nodiscard]] std::optional<EventHead> decode_event_head(std::string_view bytes);

}  // namespace ars::store
