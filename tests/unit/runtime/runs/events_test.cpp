// Events that show what is stored already: small on disk, whole for who reads them.
#include "runtime/runs/events.hpp"

#include "tests/unit/runtime/store/store_fixture.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace ars::runs {
namespace {

namespace json = boost::json;

class Events : public store::StoreTest {
  protected:
    void SetUp() override {
        StoreTest::SetUp();
        thread_ = new_thread();
        run_ = new_run(thread_, store::RunStatus::running);
    }

    void add(const std::function<store::EventRecord(store::WriteTxn&)>& make) {
        write([&](store::WriteTxn& txn) {
            store::EventRecord event = make(txn);
            txn.add_event(event);
        });
    }
    store::MessageRecord add_message(store::MessageRecord message) {
        message.thread = thread_.no;
        message.run = run_.no;
        write([&](store::WriteTxn& txn) { txn.add_message(message); });
        return message;
    }
    // What the newest event says to a reader.
    std::pair<std::string, json::value> newest() {
        return store_->read([&](const store::ReadTxn& txn) {
            const store::EventRecord last = read(txn, txn.run(run_.no).value(), {}, 100).back();
            return std::pair(last.type, json::parse(last.payload));
        });
    }
    std::vector<store::EventRecord> stored() {
        return store_->read([&](const store::ReadTxn& txn) { return txn.events(run_.no, {}, 100); }
        );
    }
    std::vector<store::EventRecord> read(
        const store::ReadTxn& txn,
        const store::RunRecord& run,
        store::EventId after,
        std::size_t most
    ) {
        return events::read(txn, run, after, most);
    }

    store::ThreadRecord thread_;
    store::RunRecord run_;
};

store::MessageRecord calling() {
    store::MessageRecord message;
    message.role = store::Role::assistant;
    message.content = "I look";
    message.reasoning = "it may be there";
    message.tool_calls = {
        {"r:1:0", "call_0", "ls", R"({"path":"."})"}, {"r:1:1", "call_1", "ls", "{\"pa"}
    };
    return message;
}

TEST_F(Events, AWholeMessageIsShownAsOneDelta) {
    const store::MessageRecord message = add_message(calling());
    add([&](auto&) { return events::message(run_, message); });
    const auto [type, payload] = newest();
    EXPECT_EQ(type, "messages");
    const json::value& item = payload.at("items").at(0);
    EXPECT_EQ(item.at("response"), "I look");
    EXPECT_EQ(item.at("thread_id").as_string(), thread_.id);
    const json::value& event = item.at("stream_event");
    EXPECT_EQ(event.at("type"), "message_delta");
    EXPECT_EQ(event.at("message_id").as_string(), message.id);
    EXPECT_EQ(event.at("content"), "I look");
    EXPECT_EQ(event.at("reasoning_content"), "it may be there");
}

TEST_F(Events, CallsAndTheirStartsAreThoseOfTheMessage) {
    const store::MessageRecord message = add_message(calling());
    add([&](auto&) { return events::tool_call(run_, message.seq, 0); });
    const json::value call = newest().second.at("items").at(0).at("stream_event");
    EXPECT_EQ(call.at("tool_call_id"), "r:1:0");
    EXPECT_EQ(call.at("args").at("path"), ".");
    EXPECT_EQ(call.at("index"), 0);
    add([&](auto&) { return events::tool_started(run_, message.seq, 1); });
    const auto [type, payload] = newest();
    EXPECT_EQ(type, "custom");
    EXPECT_EQ(payload.at("name"), "ars.stream_event");
    const json::value& data = payload.at("chunk").at("event").at("data");
    EXPECT_EQ(data.at("event"), "tool-started");
    EXPECT_EQ(data.at("tool_call_id"), "r:1:1");
    EXPECT_EQ(data.at("input"), "{\"pa") << "what is no JSON is shown as it was written";
}

TEST_F(Events, AResultComesWithItsFacts) {
    store::MessageRecord message;
    message.role = store::Role::tool;
    message.content = "a.txt";
    message.tool_call_id = "r:1:0";
    message.tool_name = "ls";
    message.duration_ms = 7;
    message = add_message(message);
    add([&](auto&) { return events::tool_finished(run_, message, {{"status", "exited"}}); });
    const json::value data = newest().second.at("chunk").at("event").at("data");
    EXPECT_EQ(data.at("event"), "tool-finished");
    EXPECT_EQ(data.at("output").at("content"), "a.txt");
    EXPECT_EQ(data.at("output").at("status"), "success");
    EXPECT_EQ(data.at("duration_ms"), 7);
    EXPECT_EQ(data.at("facts").at("status"), "exited");
}

TEST_F(Events, AStateIsThatOfItsCheckpointAlsoWhenANewerOneIsThere) {
    store::CheckpointRecord checkpoint;
    checkpoint.thread = thread_.no;
    checkpoint.run = run_.no;
    checkpoint.state = R"({"todos":[1]})";
    write([&](store::WriteTxn& txn) { txn.add_checkpoint(checkpoint); });
    add([&](auto&) { return events::agent_state(run_, checkpoint); });
    store::CheckpointRecord newer = checkpoint;
    newer.state = "{}";
    write([&](store::WriteTxn& txn) { txn.add_checkpoint(newer); });
    const json::value payload = newest().second;
    EXPECT_EQ(payload.at("agent_state"), json::parse(checkpoint.state));
    EXPECT_EQ(payload.at("chunk").at("agent_state"), json::parse(checkpoint.state));
}

TEST_F(Events, TheEndKeepsTheStatusThatItCameWith) {
    run_.status = store::RunStatus::interrupted;
    add([&](store::WriteTxn& txn) {
        txn.put_run(run_);
        return events::end(run_);
    });
    run_.status = store::RunStatus::cancelled;
    write([&](store::WriteTxn& txn) { txn.put_run(run_); });
    EXPECT_EQ(newest().second.at("status"), "interrupted");
}

TEST_F(Events, AResumedRunNamesTheOneItGoesOnFrom) {
    add([&](auto&) { return events::metadata(run_); });
    EXPECT_TRUE(newest().second.at("created_by_run_id").is_null());
    const std::string first = run_.id;
    store::RunRecord next;
    next.thread = thread_.no;
    next.uid = thread_.uid;
    next.type = store::RunType::resume;
    next.parent = run_.no;
    run_.status = store::RunStatus::interrupted;
    write([&](store::WriteTxn& txn) {
        txn.put_run(run_);
        txn.put_run(next);
    });
    run_ = next;
    add([&](auto&) { return events::metadata(run_); });
    EXPECT_EQ(newest().second.at("created_by_run_id").as_string(), first);
    EXPECT_EQ(newest().second.at("run_type"), "resume");
}

TEST_F(Events, WhatTheyShowIsNotStoredAgain) {
    store::MessageRecord message = calling();
    message.content = std::string(5000, 'x');
    message = add_message(message);
    add([&](auto&) { return events::message(run_, message); });
    add([&](auto&) { return events::tool_call(run_, message.seq, 0); });
    for (const store::EventRecord& event : stored()) {
        EXPECT_EQ(event.type + event.payload, "");
    }
}

}  // namespace
}  // namespace ars::runs
