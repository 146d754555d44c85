#include "server/sse_stream.hpp"

#include "runtime/runs/events.hpp"
#include "tests/unit/server/server_fixture.hpp"

namespace ars::server::testing {
namespace {

using std::chrono::milliseconds;
using store::RunStatus;

class SseStreamTest : public ServerTest {
  protected:
    std::vector<Frame> follow(
        const store::RunRecord& run, std::string_view headers = {}, std::string_view query = {}
    ) {
        RawClient client = connect();
        client.request("GET " + events_path(run) + std::string(query), headers);
        const RawResponse response = client.read_response();
        EXPECT_EQ(response.status, 200);
        EXPECT_TRUE(client.at_end());
        return parse_frames(response.body);
    }
    std::vector<store::EventRecord> log_of(const store::RunRecord& run) {
        return store_->read([&](const store::ReadTxn& txn) {
            return runs::events::read(txn, run, {}, 100'000);
        });
    }
};

std::vector<Frame> tail(const std::vector<Frame>& frames, std::size_t from) {
    return {frames.begin() + static_cast<std::ptrdiff_t>(from), frames.end()};
}

TEST_F(SseStreamTest, FramesCarryTheEnvelope) {
    start();
    const auto run = make_run(1, RunStatus::completed);
    RawClient client = connect();
    client.request("GET " + events_path(run));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
    EXPECT_EQ(response.headers.at("cache-control"), "no-cache");
    EXPECT_EQ(response.headers.at("x-accel-buffering"), "no");
    const auto frames = parse_frames(response.body);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].event, "custom");
    EXPECT_EQ(frames[0].id, store::to_string(log_of(run)[0].id));
    const auto data = boost::json::parse(frames[0].data).as_object();
    EXPECT_EQ(data.at("schema_version").as_int64(), 1);
    EXPECT_EQ(data.at("run_id").as_string(), run.id);
    EXPECT_EQ(data.at("thread_id").as_string(), run.thread_id);
    EXPECT_EQ(data.at("event").as_string(), "custom");
    EXPECT_EQ(data.at("payload").at("n").as_int64(), 0);
    EXPECT_TRUE(data.at("created_at").as_string().ends_with("Z"));
    EXPECT_EQ(frames[1].event, "end");
}

TEST_F(SseStreamTest, S20ReplayFromEachIdEqualsTheTailOfTheLog) {
    start();
    const auto run = make_run(30, RunStatus::completed);
    const auto whole = follow(run);
    ASSERT_EQ(whole.size(), 31U);
    const auto log = log_of(run);
    for (std::size_t k = 0; k < log.size(); ++k) {
        EXPECT_EQ(whole[k].id, store::to_string(log[k].id));
        if (k + 1 < log.size()) {
            const auto rest = follow(run, "Last-Event-ID: " + whole[k].id + "\r\n");
            EXPECT_EQ(rest, tail(whole, k + 1)) << k;
        }
    }
}

TEST_F(SseStreamTest, K118LastEventIdBeatsAfterSeq) {
    start();
    const auto run = make_run(5, RunStatus::completed);
    const auto whole = follow(run);
    EXPECT_EQ(
        follow(run, "Last-Event-ID: " + whole[3].id + "\r\n", "?after_seq=" + whole[0].id),
        tail(whole, 4)
    );
    EXPECT_EQ(follow(run, {}, "?after_seq=" + whole[0].id), tail(whole, 1));
}

TEST_F(SseStreamTest, K118WhatThisRunNeverGaveIsNoCursor) {
    start();
    const auto run = make_run(3, RunStatus::completed);
    const auto whole = follow(run);
    for (const char* cursor : {"12", "bad", "1-", "-1-2", "1-2x", "99999999999999-0"}) {
        const RawResponse refused =
            get(events_path(run), std::string("Last-Event-ID: ") + cursor + "\r\n");
        EXPECT_EQ(refused.status, 400) << cursor;
        EXPECT_EQ(refused.code(), "bad_cursor");
    }
    for (const char* start : {"-1", "0-0"}) {
        EXPECT_EQ(follow(run, std::string("Last-Event-ID: ") + start + "\r\n"), whole) << start;
    }
    // The header wins, whatever the query says.
    EXPECT_EQ(follow(run, "Last-Event-ID: -1\r\n", "?after_seq=" + whole[1].id), whole);
}

TEST_F(SseStreamTest, S19S22AReaderWhoseEventsExpiredIsToldOfTheGap) {
    start();
    const auto run = make_run(20, RunStatus::completed);
    const auto whole = follow(run);
    const auto expired = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        EXPECT_FALSE(txn.expire_log(run.no, 5));
        return {};
    });
    ASSERT_TRUE(expired);
    for (const std::size_t seen : {std::size_t{0}, std::size_t{7}}) {
        const std::string cursor = seen == 0 ? "-1" : whole[seen - 1].id;
        const auto frames = follow(run, "Last-Event-ID: " + cursor + "\r\n");
        ASSERT_EQ(frames.size(), 2U);
        EXPECT_EQ(frames[0].event, "gap");
        EXPECT_EQ(frames[0].id, whole.back().id) << "who comes back with it is told once";
        const auto payload = boost::json::parse(frames[0].data).at("payload").as_object();
        EXPECT_EQ(payload.at("reason").as_string(), "retention");
        EXPECT_EQ(payload.at("after").as_string(), seen == 0 ? "0-0" : whole[seen - 1].id);
        EXPECT_EQ(payload.at("through").as_string(), whole.back().id);
        EXPECT_EQ(frames[1].event, "end");
    }
    const auto rest = follow(run, "Last-Event-ID: " + whole.back().id + "\r\n");
    ASSERT_EQ(rest.size(), 1U) << "nothing was missed";
    EXPECT_EQ(rest[0].event, "end");
}

// Takes the store's readers, one at each level, and calls `then` when there is none left.
void without_readers(const store::Store& store, const std::function<void()>& then) {
    bool taken = false;
    try {
        store.read([&](const store::ReadTxn&) {
            taken = true;
            without_readers(store, then);
        });
    } catch (const std::exception&) {
        if (taken) {
            throw;
        }
        then();
    }
}

TEST_F(SseStreamTest, K119AStoreThatCantBeReadEndsTheStreamWithOneError) {
    start();
    const auto run = make_run(1, RunStatus::running);
    RawClient client = connect();
    client.request("GET " + events_path(run));
    ASSERT_EQ(client.read_head().status, 200);
    EXPECT_EQ(parse_frames(client.read_chunk()).size(), 1U);
    ASSERT_TRUE(eventually([this] { return runs_->waiting == 1; }));
    std::vector<Frame> last;
    without_readers(*store_, [&] {
        on_server([this] { runs_->notify(); });
        last = parse_frames(client.read_chunk());
    });
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(last[0].event, "error");
    EXPECT_NE(last[0].data.find("db_error"), std::string::npos);
    EXPECT_EQ(client.read_chunk(), "");
    EXPECT_TRUE(client.at_end());
}

TEST_F(SseStreamTest, K121ABriefStreamSkipsEmptyStatesAndKeepsToolsArguments) {
    start();
    const auto run = make_run(0, RunStatus::running);
    const std::string chunk =
        R"("chunk":{"request_id":"r","thread_id":"t","response":"x","status":"loading",)";
    add_event(
        run.no, "metadata", R"({"request_id":"r","run_type":"chat","source":"chat","uid":"u"})"
    );
    add_event(run.no, "custom", "{" + chunk + R"("n":1},"agent_state":{"todos":[],"files":{}}})");
    add_event(run.no, "custom", "{" + chunk + R"("n":2},"agent_state":{"todos":["a"]}})");
    const std::string input =
        R"({"response":"r","thread_id":"mine","metadata":1,"namespace":2,"request_id":"own"})";
    add_event(
        run.no,
        "custom",
        "{" + chunk + R"("event":{"namespace":[],"data":{"input":)" + input + "}}}}"
    );
    add_event(run.no, "end", R"({"status":"completed","request_id":"r"})", RunStatus::completed);
    const auto frames = follow(run, {}, "?verbose=false");
    ASSERT_EQ(frames.size(), 4U);
    const auto payload = [&frames](std::size_t i) {
        return boost::json::parse(frames[i].data).at("payload");
    };
    EXPECT_EQ(payload(0), boost::json::parse(R"({"run_type":"chat","source":"chat"})"));
    EXPECT_EQ(
        payload(1),
        boost::json::parse(R"({"chunk":{"n":2,"status":"loading"},"agent_state":{"todos":["a"]}})")
    );
    EXPECT_EQ(
        payload(2),
        boost::json::parse(
            R"({"chunk":{"event":{"data":{"input":)" + input + R"(}},"status":"loading"}})"
        )
    );
    EXPECT_EQ(payload(3), boost::json::parse(R"({"status":"completed"})"));
    // A reader that is spared the last event so far waits for the next one.
    EXPECT_EQ(follow(run, {}, "?verbose=true").size(), 5U);
}

TEST_F(SseStreamTest, S17ACursorAtTheEndOfAFinishedRunEndsAtOnce) {
    start();
    const auto run = make_run(3, RunStatus::completed);
    const auto whole = follow(run);
    const auto rest = follow(run, "Last-Event-ID: " + whole.back().id + "\r\n");
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].event, "end");
    EXPECT_EQ(rest[0].id, "");
    const auto payload = boost::json::parse(rest[0].data).at("payload").as_object();
    EXPECT_EQ(payload.at("status").as_string(), "completed");
    EXPECT_EQ(payload.at("request_id").as_string(), run.request_id);
}

TEST_F(SseStreamTest, K120ATerminalRunWithoutAStoredEndGetsOne) {
    start();
    const auto run = make_run(2, RunStatus::failed, "alice", false);
    const auto frames = follow(run);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[2].event, "end");
    EXPECT_EQ(boost::json::parse(frames[2].data).at("payload").at("status").as_string(), "failed");
}

TEST_F(SseStreamTest, S27ARunAtRestEndsTheStreamToo) {
    start();
    const auto run = make_run(2, RunStatus::interrupted);
    const auto frames = follow(run);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[2].event, "end");
    EXPECT_NE(frames[2].data.find("interrupted"), std::string::npos);
}

TEST_F(SseStreamTest, ALiveRunIsFollowedToItsEnd) {
    start();
    const auto run = make_run(1, RunStatus::running);
    RawClient client = connect();
    client.request("GET " + events_path(run));
    ASSERT_EQ(client.read_head().status, 200);
    EXPECT_EQ(parse_frames(client.read_chunk()).size(), 1U);
    for (int i = 0; i < 20; ++i) {
        add_event(run.no, "messages", "{\"live\":" + std::to_string(i) + "}");
        const auto frames = parse_frames(client.read_chunk());
        ASSERT_EQ(frames.size(), 1U);
        EXPECT_NE(frames[0].data.find("\"live\":" + std::to_string(i)), std::string::npos);
    }
    add_event(run.no, "end", R"({"status":"completed"})", RunStatus::completed);
    EXPECT_EQ(parse_frames(client.read_chunk())[0].event, "end");
    EXPECT_EQ(client.read_chunk(), "");
    EXPECT_TRUE(client.at_end());
}

TEST_F(SseStreamTest, ALongLogWithLargeEventsArrivesWhole) {
    start();
    const auto run = make_run(0, RunStatus::running);
    const std::string large(100'000, 'x');
    const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        for (int i = 0; i < 1000; ++i) {
            store::EventRecord event;
            event.run = run.no;
            event.type = i == 999 ? "end" : "custom";
            event.payload = i % 50 == 0 ? "{\"large\":\"" + large + "\"}" : "{}";
            txn.add_event(event);
        }
        return {};
    });
    ASSERT_TRUE(done);
    const auto frames = follow(run);
    const auto log = log_of(run);
    ASSERT_EQ(frames.size(), log.size());
    for (std::size_t i = 0; i < log.size(); ++i) {
        ASSERT_EQ(frames[i].id, store::to_string(log[i].id));
    }
}

TEST_F(SseStreamTest, APayloadWithLineBreaksStaysOneLine) {
    start();
    const auto run = make_run(0, RunStatus::running);
    add_event(run.no, "custom", "{\n\"a\":\r\n1}");
    add_event(run.no, "end", "{}", RunStatus::completed);
    const auto frames = follow(run);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(boost::json::parse(frames[0].data).at("payload").at("a").as_int64(), 1);
}

TEST_F(SseStreamTest, SilenceIsFilledWithHeartbeats) {
    HttpLimits limits;
    limits.heartbeat = milliseconds(20);
    start(limits);
    const auto run = make_run(0, RunStatus::running);
    RawClient client = connect();
    client.request("GET " + events_path(run));
    ASSERT_EQ(client.read_head().status, 200);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(client.read_chunk(), ": heartbeat\n\n");
    }
}

TEST_F(SseStreamTest, S24S25AReaderThatLeavesFreesItsSession) {
    start();
    const auto run = make_run(1, RunStatus::running);
    for (int i = 0; i < 5; ++i) {
        RawClient client = connect();
        client.request("GET " + events_path(run));
        ASSERT_EQ(client.read_head().status, 200);
        client.read_chunk();
        ASSERT_TRUE(eventually([this] { return stats_.streams == 1; }));
        client.close();
        ASSERT_TRUE(eventually([this] {
            return stats_.streams == 0 && listener_->connections() == 0 && runs_->waiting == 0;
        }));
    }
}

TEST_F(SseStreamTest, S21AReaderThatNeverReadsIsCutAndCanResume) {
    HttpLimits limits;
    limits.write_timeout = milliseconds(100);
    start(limits);
    const auto run = make_run(0, RunStatus::running);
    RawClient stuck = connect();
    stuck.request("GET " + events_path(run));
    ASSERT_EQ(stuck.read_head().status, 200);
    const std::string large = "\"" + std::string(200'000, 'x') + "\"";
    for (int i = 0; i < 100 && on_server([this] { return stats_.streams == 1; }); ++i) {
        add_event(run.no, "custom", large);
    }
    EXPECT_TRUE(eventually([this] { return stats_.streams == 0; }));
    add_event(run.no, "end", "{}", RunStatus::completed);
    EXPECT_EQ(follow(run).back().event, "end");
}

TEST_F(SseStreamTest, S90AnotherUsersRunLooksUnknown) {
    start({}, two_keys());
    const auto run = make_run(2, RunStatus::completed, "alice");
    const std::string bob = "x-api-key: " + std::string(kBobKey) + "\r\n";
    const std::string alice = "x-api-key: " + std::string(kAliceKey) + "\r\n";
    for (const char* part : {"", "/result", "/events"}) {
        const std::string known = "/api/agent/runs/" + run.id + part;
        const std::string unknown = std::string("/api/agent/runs/unknown") + part;
        EXPECT_EQ(get(known, alice).status, 200) << known;
        EXPECT_EQ(get(known, bob).status, 404) << known;
        EXPECT_EQ(get(known, bob).body, get(unknown, bob).body) << known;
    }
    const std::string cancel = "/api/agent/runs/" + run.id + "/cancel";
    EXPECT_EQ(post(cancel, "{}", bob).status, 404);
    EXPECT_EQ(post(cancel, "{}", bob).body, post("/api/agent/runs/unknown/cancel", "{}", bob).body);
    EXPECT_EQ(post(cancel, "{}", alice).status, 200);
    EXPECT_EQ(get("/api/chat/thread/" + run.thread_id, bob).status, 404);
    EXPECT_EQ(get("/api/chat/thread/" + run.thread_id + "/history", bob).status, 404);
}

TEST_F(SseStreamTest, TwoHundredReadersSeeTheSameEvents) {
    start();
    const auto run = make_run(3, RunStatus::running);
    std::vector<std::unique_ptr<RawClient>> readers;
    for (int i = 0; i < 200; ++i) {
        readers.push_back(std::make_unique<RawClient>(port_));
        readers.back()->request("GET " + events_path(run));
    }
    ASSERT_TRUE(eventually([this] { return runs_->waiting == 200; }));
    for (int i = 0; i < 10; ++i) {
        add_event(run.no, "custom", "{\"i\":" + std::to_string(i) + "}");
    }
    add_event(run.no, "end", "{}", RunStatus::completed);
    const auto expected = follow(run);
    ASSERT_EQ(expected.size(), 14U);
    for (auto& reader : readers) {
        EXPECT_EQ(parse_frames(reader->read_response().body), expected);
    }
    EXPECT_TRUE(eventually([this] { return stats_.streams == 0; }));
}

}  // namespace
}  // namespace ars::server::testing
