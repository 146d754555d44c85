#include "runtime/store/codec.hpp"

#include "tests/fuzz/store_codec.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace ars::store {
namespace {

ThreadRecord full_thread() {
    return {
        .no = 0,
        .id = "t-1",
        .uid = std::string("a\0b", 3),
        .agent_slug = "slug",
        .title = "Über alles",
        .workdir_path = "projects/x",
        .request_id = "req",
        .metadata = R"({"a":1})",
        .status = ThreadStatus::subagent,
        .is_pinned = true,
        .is_hidden = true,
        .approval_mode = "default",
        .viewed = 9,
        .parent = 7,
        .root = UINT64_MAX,
        .created_ms = -5,
        .updated_ms = INT64_MAX,
    };
}

RunRecord full_run() {
    RunRecord run;
    run.id = "r";
    run.thread = 3;
    run.thread_id = "t";
    run.uid = "u";
    run.agent_slug = "a";
    run.request_id = "q";
    run.body_digest = "d";
    run.source = "channel";
    run.queue_policy = QueuePolicy::steer;
    run.type = RunType::resume;
    run.status = RunStatus::cancel_requested;
    run.parent = 1;
    run.root = 2;
    run.parent_call_id = "1:2:3";
    run.scope_id = "scope";
    run.model_spec = "main:m";
    run.approval_mode = "default";
    run.agent_config = "{}";
    run.error_type = "step_limit";
    run.error_message = "too many";
    run.input_message = 10;
    run.output_message = 11;
    run.steps = 12;
    run.agent_version = 12;
    run.agent_digest = "5e";
    run.max_steps = 300;
    run.timeout_ms = 3600000;
    run.served_ms = 5;
    run.attempt = 2;
    run.idle_attempts = 1;
    run.usage = {.input = 100, .output = 200, .complete = false};
    run.created_ms = 1;
    run.started_ms = 2;
    run.finished_ms = INT64_MIN;
    return run;
}

RequestRecord full_request() {
    RequestRecord request;
    request.request_id = "q";
    request.thread = 3;
    request.thread_id = "t";
    request.uid = "u";
    request.agent_slug = "a";
    request.body_digest = "d";
    request.source = "channel";
    request.policy = QueuePolicy::steer;
    request.status = RequestStatus::rejected;
    request.message_id = "m";
    request.content = "do it";
    request.model_spec = "main:m";
    request.approval_mode = "default";
    request.agent_config = "{}";
    request.agent_version = 3;
    request.agent_digest = "ab";
    request.max_steps = 4;
    request.timeout_ms = 5;
    request.run = 6;
    request.error_type = "run_busy";
    request.error_message = "busy";
    request.created_ms = 7;
    request.dispatched_ms = 8;
    request.updated_ms = 9;
    return request;
}

MessageRecord full_message() {
    MessageRecord message;
    message.id = "m";
    message.thread = 1;
    message.run = 2;
    message.role = Role::tool;
    message.content = std::string(5000, 'x');
    message.reasoning = "because";
    message.tool_calls = {{"1:1:0", "call_0", "bash", "{\"c"}, {"1:1:1", "", "", ""}};
    message.tool_call_id = "1:0:0";
    message.tool_name = "bash";
    message.is_error = true;
    message.duration_ms = 17;
    message.created_ms = 18;
    return message;
}

StoredEvent full_event() {
    EventRecord event;
    event.id = {1700000000000, 3};
    event.run = 9;
    event.shape = 5;
    event.source = 40;
    event.index = 2;
    event.type = "messages";
    event.payload = "{\"x\":1}";
    event.created_ms = 1700000000001;
    return {event, 41};
}

// One encoded record of each kind.
std::vector<std::string> samples() {
    return {
        encode_thread(full_thread()),
        encode_run_facts(full_run()),
        encode_run_state(full_run()),
        encode_request(full_request()),
        encode_message(full_message()),
        encode_call({.done = true, .child = 4, .deadline_ms = 5, .result = 6}),
        encode_checkpoint({0, "c", 1, 2, 3, 4, "{}", 5}),
        encode_event(full_event()),
        encode_event_head({{1, 2}, 3, 4}),
        encode_outbox({.attempts = 300}),
    };
}

TEST(Codec, AThreadSurvivesTheRoundTrip) {
    const ThreadRecord in = full_thread();
    const auto out = decode_thread(encode_thread(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(out->id, in.id);
    EXPECT_EQ(out->uid, in.uid);
    EXPECT_EQ(out->agent_slug, in.agent_slug);
    EXPECT_EQ(out->title, in.title);
    EXPECT_EQ(out->workdir_path, in.workdir_path);
    EXPECT_EQ(out->request_id, in.request_id);
    EXPECT_EQ(out->metadata, in.metadata);
    EXPECT_EQ(out->status, in.status);
    EXPECT_EQ(out->parent, in.parent);
    EXPECT_EQ(out->root, in.root);
    EXPECT_EQ(out->created_ms, in.created_ms);
    EXPECT_EQ(out->updated_ms, in.updated_ms);
}

TEST(Codec, ARequestSurvivesTheRoundTrip) {
    const RequestRecord in = full_request();
    const auto out = decode_request(encode_request(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(encode_request(*out), encode_request(in));
    EXPECT_EQ(out->source, "channel");
    EXPECT_EQ(out->policy, QueuePolicy::steer);
    EXPECT_EQ(out->status, RequestStatus::rejected);
    EXPECT_EQ(out->content, "do it");
    EXPECT_EQ(out->run, 6U);
    EXPECT_EQ(out->updated_ms, 9);
}

TEST(Codec, AThreadThatVersionTwoWroteIsRead) {
    ThreadRecord in = full_thread();
    in.is_pinned = in.is_hidden = false;
    in.approval_mode.clear();
    in.viewed = 0;
    const std::string today = encode_thread(in);
    // What version 3 added stands first: two flags, an empty text and a zero, a byte each.
    const auto out = decode_thread("\x02" + today.substr(5));
    ASSERT_TRUE(out);
    EXPECT_EQ(encode_thread(*out), today);
}

TEST(Codec, FactsOfARunThatVersionOneWroteAreRead) {
    RunRecord in = full_run();
    in.source.clear();
    in.agent_version = 0;
    in.agent_digest.clear();
    const std::string today = encode_run_facts(in);
    // What versions 4 and 2 added stands first: a zero and an empty text, the empty source and the
    // policy, a byte each.
    RunRecord out;
    ASSERT_TRUE(decode_run_facts("\x01" + today.substr(5), out));
    EXPECT_EQ(out.id, in.id);
    EXPECT_EQ(out.created_ms, in.created_ms);
    EXPECT_EQ(out.source, "chat");
    EXPECT_EQ(out.queue_policy, QueuePolicy::enqueue);
}

TEST(Codec, ARequestThatVersionThreeWroteIsRead) {
    RequestRecord in = full_request();
    in.agent_version = 0;
    in.agent_digest.clear();
    const std::string today = encode_request(in);
    // What version 4 added stands first: a zero and an empty text, a byte each.
    const auto out = decode_request("\x03" + today.substr(3));
    ASSERT_TRUE(out);
    EXPECT_EQ(encode_request(*out), today);
}

TEST(Codec, AnEventThatVersionFourWroteIsRead) {
    StoredEvent in = full_event();
    in.event.shape = 0;
    in.event.source = 0;
    in.event.index = 0;
    const std::string today = encode_event(in);
    // What version 5 added stands first: three zeros, a byte each.
    const auto out = decode_event("\x04" + today.substr(4));
    ASSERT_TRUE(out);
    EXPECT_EQ(encode_event(*out), today);
}

TEST(Codec, ARunSurvivesTheRoundTripInTwoHalves) {
    const RunRecord in = full_run();
    RunRecord out;
    ASSERT_TRUE(decode_run_facts(encode_run_facts(in), out));
    ASSERT_TRUE(decode_run_state(encode_run_state(in), out));
    EXPECT_EQ(out.id, in.id);
    EXPECT_EQ(out.thread, in.thread);
    EXPECT_EQ(out.thread_id, in.thread_id);
    EXPECT_EQ(out.uid, in.uid);
    EXPECT_EQ(out.agent_slug, in.agent_slug);
    EXPECT_EQ(out.agent_version, 12U);
    EXPECT_EQ(out.agent_digest, "5e");
    EXPECT_EQ(out.request_id, in.request_id);
    EXPECT_EQ(out.body_digest, in.body_digest);
    EXPECT_EQ(out.type, in.type);
    EXPECT_EQ(out.status, in.status);
    EXPECT_EQ(out.parent, in.parent);
    EXPECT_EQ(out.root, in.root);
    EXPECT_EQ(out.parent_call_id, in.parent_call_id);
    EXPECT_EQ(out.scope_id, in.scope_id);
    EXPECT_EQ(out.model_spec, in.model_spec);
    EXPECT_EQ(out.approval_mode, in.approval_mode);
    EXPECT_EQ(out.agent_config, in.agent_config);
    EXPECT_EQ(out.error_type, in.error_type);
    EXPECT_EQ(out.error_message, in.error_message);
    EXPECT_EQ(out.input_message, in.input_message);
    EXPECT_EQ(out.output_message, in.output_message);
    EXPECT_EQ(out.steps, in.steps);
    EXPECT_EQ(out.max_steps, in.max_steps);
    EXPECT_EQ(out.timeout_ms, in.timeout_ms);
    EXPECT_EQ(out.served_ms, in.served_ms);
    EXPECT_EQ(out.attempt, in.attempt);
    EXPECT_EQ(out.idle_attempts, in.idle_attempts);
    EXPECT_EQ(out.usage.input, in.usage.input);
    EXPECT_EQ(out.usage.output, in.usage.output);
    EXPECT_EQ(out.usage.complete, in.usage.complete);
    EXPECT_EQ(out.created_ms, in.created_ms);
    EXPECT_EQ(out.started_ms, in.started_ms);
    EXPECT_EQ(out.finished_ms, in.finished_ms);
}

TEST(Codec, AMessageWithToolCallsSurvivesTheRoundTrip) {
    const MessageRecord in = full_message();
    const auto out = decode_message(encode_message(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(out->id, in.id);
    EXPECT_EQ(out->thread, in.thread);
    EXPECT_EQ(out->run, in.run);
    EXPECT_EQ(out->role, in.role);
    EXPECT_EQ(out->content, in.content);
    EXPECT_EQ(out->reasoning, in.reasoning);
    ASSERT_EQ(out->tool_calls.size(), 2U);
    EXPECT_EQ(out->tool_calls[0].id, "1:1:0");
    EXPECT_EQ(out->tool_calls[0].provider_id, "call_0");
    EXPECT_EQ(out->tool_calls[0].name, "bash");
    EXPECT_EQ(out->tool_calls[0].arguments, "{\"c");
    EXPECT_EQ(out->tool_calls[1].id, "1:1:1");
    EXPECT_EQ(out->tool_call_id, in.tool_call_id);
    EXPECT_EQ(out->tool_name, in.tool_name);
    EXPECT_EQ(out->is_error, in.is_error);
    EXPECT_EQ(out->duration_ms, in.duration_ms);
    EXPECT_EQ(out->created_ms, in.created_ms);
}

TEST(Codec, CallsCheckpointsAndEventsSurviveTheRoundTrip) {
    const auto call =
        decode_call(encode_call({.done = true, .child = 4, .deadline_ms = -5, .result = 6}));
    ASSERT_TRUE(call);
    EXPECT_TRUE(call->done);
    EXPECT_EQ(call->child, 4U);
    EXPECT_EQ(call->deadline_ms, -5);
    EXPECT_EQ(call->result, 6U);

    const auto checkpoint = decode_checkpoint(encode_checkpoint({0, "c", 1, 2, 3, 4, "{}", 5}));
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->id, "c");
    EXPECT_EQ(checkpoint->thread, 1U);
    EXPECT_EQ(checkpoint->run, 2U);
    EXPECT_EQ(checkpoint->step, 3U);
    EXPECT_EQ(checkpoint->message_head, 4U);
    EXPECT_EQ(checkpoint->state, "{}");
    EXPECT_EQ(checkpoint->created_ms, 5);

    const auto event = decode_event(encode_event(full_event()));
    ASSERT_TRUE(event);
    EXPECT_EQ(event->previous, 41U);
    EXPECT_EQ(event->event.id, (EventId{1700000000000, 3}));
    EXPECT_EQ(event->event.run, 9U);
    EXPECT_EQ(event->event.shape, 5);
    EXPECT_EQ(event->event.source, 40U);
    EXPECT_EQ(event->event.index, 2U);
    EXPECT_EQ(event->event.type, "messages");
    EXPECT_EQ(event->event.payload, "{\"x\":1}");
    EXPECT_EQ(event->event.created_ms, 1700000000001);
}

// With a new kind of record, samples() and the fuzz target grow too.
TEST(Codec, TheFuzzTargetKnowsEveryRecord) {
    int known = 0;
    for (const std::string& bytes : samples()) {
        known |= codec_accepts(bytes);
    }
    EXPECT_EQ(known, kEveryDecoder);
}

TEST(Codec, EveryTruncationAndEveryTrailingByteIsRefused) {
    for (const std::string& bytes : samples()) {
        ASSERT_GT(codec_accepts(bytes), 0);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            // A part of one record may by chance be another whole one: only its own decoder must
            // refuse.
            EXPECT_EQ(codec_accepts(bytes.substr(0, size)) & codec_accepts(bytes), 0) << size;
        }
        EXPECT_EQ(codec_accepts(bytes + '\0') & codec_accepts(bytes), 0);
    }
}

TEST(Codec, AnUnknownVersionIsRefused) {
    for (std::string bytes : samples()) {
        bytes[0] = static_cast<char>(kRecordVersion + 1);
        EXPECT_EQ(codec_accepts(bytes), 0);
        bytes[0] = 0;
        EXPECT_EQ(codec_accepts(bytes), 0);
    }
}

TEST(Codec, HugeLengthsAndCountsAreRefusedWithoutAnAllocation) {
    const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    EXPECT_FALSE(decode_thread("\x01" + huge));
    EXPECT_FALSE(decode_thread("\x01" + huge + "abc"));
    EXPECT_FALSE(decode_event_head("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")
    );  // over 64 bits
    // id, thread, run, role, content, reasoning: empty; then a count of 2^64 - 1 calls.
    EXPECT_FALSE(decode_message(std::string("\x01\0\0\0\0\0\0", 7) + huge));
}

TEST(Codec, NumbersAndEnumerationsOutOfRangeAreRefused) {
    std::string state = encode_run_state(full_run());
    state[1] = static_cast<char>(RunStatus::cancelled) + 1;
    RunRecord run;
    EXPECT_FALSE(decode_run_state(state, run));
    std::string call = encode_call({.done = true});
    call[1] = 2;
    EXPECT_FALSE(decode_call(call));
}

// The replay of the fuzz target without libFuzzer: whatever is accepted must encode to an equal
// record again.
TEST(Codec, SurvivesTwentyThousandMutations) {
    std::mt19937 random(20240607);
    const auto pick = [&random](std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
    };
    std::vector<std::string> pool = samples();
    int accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string bytes = pool[pick(pool.size())];
        for (std::size_t edits = 1 + pick(4); edits > 0; --edits) {
            const std::size_t at = bytes.empty() ? 0 : pick(bytes.size());
            switch (pick(5)) {
                case 0:
                    bytes.resize(at);
                    break;
                case 1:
                    bytes.insert(at, 1 + pick(12), static_cast<char>(pick(256)));
                    break;
                case 2:
                    bytes.erase(at, 1 + pick(8));
                    break;
                case 3:
                    bytes.insert(at, "\xff\xff\xff\xff\x0f");
                    break;
                default:
                    if (!bytes.empty()) {
                        bytes[at] = static_cast<char>(pick(256));
                    }
            }
        }
        accepted += codec_accepts(bytes) != 0 ? 1 : 0;
    }
    // Mutations inside of strings stay valid: when none is accepted, nothing was tested.
    EXPECT_GT(accepted, 100);
    EXPECT_LT(accepted, 19000);
}

}  // namespace
}  // namespace ars::store
