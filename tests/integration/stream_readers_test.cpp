// Readers of event streams that misbehave or are unlucky, against the real server: they cost a
// bounded amount, disturb nobody, and lose nothing without a sign.
#include "tests/support/event_reader.hpp"
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

std::string events_of(const json::object& run) {
    return "/api/agent/runs/" + text(run, "run_id") + "/events";
}

// KiB of a line of /proc/<pid>/status; the pages of the store's map are not in RssAnon.
long memory_kib(const Server& server, const std::string& name) {
    std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(name + ":")) {
            return std::stol(line.substr(name.size() + 1));
        }
    }
    return -1;
}

long streams(const Server& server) {
    const std::string metrics = http(server.port(), "GET", "/metrics").body;
    const std::string name = "\nars_sse_streams ";
    return std::stol(metrics.substr(metrics.find(name) + name.size()));
}

template <class Condition>
bool eventually(Condition condition) {
    for (int i = 0; i < 3000; ++i) {
        if (condition()) {
            return true;
        }
        std::this_thread::sleep_for(20ms);
    }
    return false;
}

// A long answer, which makes events of up to 33 KB.
ScriptedReply long_answer(std::size_t pieces) {
    return text_reply(std::vector<std::string>(pieces, std::string(1023, 'x') + ' '));
}
constexpr std::size_t kPieces = 4000;  // 8 MB of events

// Stands still in its tool until the file `go` is there.
constexpr const char* kGated = R"(agent: main
turns:
  - tool_calls:
      - {id: plan, tool: write_todos, args: {todos: [{content: "plan", status: "pending"}]}}
  - tool_calls:
      - {id: one, tool: execute, args: {command: "while [ ! -e go ]; do sleep 0.02; done; echo one"}}
  - text: "done"
)";

void open_gate(const Server& server, const json::object& run) {
    const HttpReply reply = http(
        server.port(),
        "PUT",
        "/api/viewer/filesystem/file?thread_id=" + text(run, "thread_id") + "&path=/go",
        "x"
    );
    ASSERT_LT(reply.status, 300) << reply.body;
}

EventFrame wait_for(EventReader& reader, const std::string& what) {
    for (;;) {
        EventFrame frame = reader.next().value();
        if (frame.bytes.find(what) != std::string::npos) {
            return frame;
        }
    }
}

TEST(StreamReaders, K76S21TwoHundredThatNeverReadCostABoundedAmountAndDisturbNobody) {
    ModelServer model([](const RecordedRequest& request, std::size_t) {
        return request.last("user") == "short" ? text_reply({"short"}) : long_answer(kPieces);
    });
    Server server;
    server.use_model(model.base_url());
    server.add_server_settings("write_timeout: 30m");
    server.start();
    // What a long run itself leaves in the allocator is not the readers'.
    server.wait_for_end(text(server.submit("main", "long"), "run_id"));
    const long before = memory_kib(server, "RssAnon");

    const json::object run = server.submit("main", "long");
    std::vector<std::unique_ptr<EventReader>> stalled;
    for (int i = 0; i < 200; ++i) {
        stalled.push_back(std::make_unique<EventReader>(
            server.port(), events_of(run), EventReader::Options{.after = {}, .receive_buffer = 4096}
        ));
    }
    EXPECT_EQ(server.wait_for_end(text(run, "run_id")).at("status"), "completed");
    const json::object other = server.submit("main", "short");
    EXPECT_EQ(server.wait_for_end(text(other, "run_id")).at("output"), "short");
    const auto log = read_frames(server.port(), events_of(run));
    EXPECT_EQ(log.back().type, "end");
    EXPECT_GT(log.size(), 200U);
    EXPECT_EQ(streams(server), 200) << "they are still there, and not because they got it all";

    const long grown = memory_kib(server, "RssAnon") - before;
    std::printf(
        "200 stalled readers of %zu events: RssAnon %ld KiB, %+ld KiB; VmRSS %ld KiB\n",
        log.size(),
        before,
        grown,
        memory_kib(server, "VmRSS")
    );
    // Each may hold a slice of 64 KiB and one event, in a string that doubles as it grows, and the
    // run itself comes and goes; without a bound it would be 200 times 8 MB.
    EXPECT_LT(grown, 200 * 400);
    // And each can go on.
    EXPECT_EQ(stalled[0]->rest(), log);
    EXPECT_EQ(stalled[199]->rest(), log);
    stalled.clear();
    EXPECT_TRUE(eventually([&server] { return streams(server) == 0; }));
}

TEST(StreamReaders, S21S22OneThatStopsReadingIsCutAndGoesOnWhereItWas) {
    ModelServer model([](const RecordedRequest&, std::size_t) { return long_answer(kPieces); });
    Server server;
    server.use_model(model.base_url());
    server.add_server_settings("write_timeout: 500ms");
    server.start();
    const json::object run = server.submit("main", "long");
    std::vector<std::unique_ptr<EventReader>> readers;
    for (int i = 0; i < 20; ++i) {
        readers.push_back(std::make_unique<EventReader>(
            server.port(), events_of(run), EventReader::Options{.after = {}, .receive_buffer = 4096}
        ));
        readers.back()->next();
    }
    EXPECT_EQ(server.wait_for_end(text(run, "run_id")).at("status"), "completed");
    EXPECT_TRUE(eventually([&server] { return streams(server) == 0; }));
    const auto log = read_frames(server.port(), events_of(run));
    for (const auto& reader : readers) {
        // What is in the pipe, and no end.
        std::vector<EventFrame> seen{log[0]};
        for (EventFrame& frame : reader->rest()) {
            seen.push_back(std::move(frame));
        }
        ASSERT_LT(seen.size(), log.size());
        for (EventFrame& frame : read_frames(server.port(), events_of(run), seen.back().id)) {
            seen.push_back(std::move(frame));
        }
        EXPECT_TRUE(seen == log);
    }
}

TEST(StreamReaders, S22OneThatPausesUnderManyEventsMissesNone) {
    ModelServer model([](const RecordedRequest&, std::size_t) { return long_answer(kPieces); });
    Server server;
    server.use_model(model.base_url());
    server.add_server_settings("write_timeout: 30m");
    server.start();
    const json::object run = server.submit("main", "long");
    EventReader reader(server.port(), events_of(run), {.after = {}, .receive_buffer = 4096});
    std::vector<EventFrame> seen{reader.next().value()};
    server.wait_for_end(text(run, "run_id"));  // the pause
    for (EventFrame& frame : reader.rest()) {
        seen.push_back(std::move(frame));
    }
    EXPECT_TRUE(seen == read_frames(server.port(), events_of(run)));
}

TEST(StreamReaders, K123S65DeltasAreGathered) {
    // 16,000 characters: 32 batches, and one more for each tenth of a second that it took.
    ModelServer model([](const RecordedRequest&, std::size_t) {
        return text_reply(std::vector<std::string>(2000, "eight ch"));
    });
    Server server;
    server.use_model(model.base_url());
    server.start();
    const json::object run = server.submit("main", "go");
    const json::object result = server.wait_for_end(text(run, "run_id"));
    std::string streamed;
    std::size_t deltas = 0;
    for (const EventFrame& frame : read_frames(server.port(), events_of(run))) {
        if (frame.type != "messages") {
            continue;
        }
        ++deltas;
        const json::object data = frame.data();
        for (const json::value& item : data.at("payload").at("items").as_array()) {
            streamed += item.at("stream_event").at("content").as_string();
        }
    }
    EXPECT_EQ(streamed, text(result, "output"));
    EXPECT_LT(deltas, 500U) << "of 2000";
}

TEST(StreamReaders, S25SilenceIsNoDisconnectAndAVanishedReaderIsNoticed) {
    Server server;
    server.write("scripts/main.yaml", kGated);
    server.add_server_settings("heartbeat: 20ms, write_timeout: 300ms");
    server.start();
    const json::object run = server.submit("main", "go");
    EventReader idle(server.port(), events_of(run));
    EventReader lost(server.port(), events_of(run));
    std::vector<EventFrame> seen;
    while (seen.empty() || seen.back().bytes.find("-e go ") == std::string::npos ||
           seen.back().bytes.find("tool-started") == std::string::npos) {
        seen.push_back(idle.next().value());
        lost.next();
    }
    EXPECT_EQ(streams(server), 2);
    lost.vanish();
    // Many times the limit of a write passes in silence: heartbeats are answered by the kernel of
    // the one, and not by that of the other.
    for (const std::size_t until = idle.heartbeats() + 50; idle.heartbeats() < until;) {
        ASSERT_TRUE(idle.take(SIZE_MAX));
    }
    EXPECT_TRUE(eventually([&server] { return streams(server) == 1; }));
    EXPECT_TRUE(idle.taken().empty());
    open_gate(server, run);
    for (EventFrame& frame : idle.rest()) {
        seen.push_back(std::move(frame));
    }
    EXPECT_EQ(seen, read_frames(server.port(), events_of(run)));
}

TEST(StreamReaders, S24OneThatLeavesInMidToolChangesNothing) {
    Server server;
    server.write("scripts/main.yaml", kGated);
    server.start();
    const json::object run = server.submit("main", "go");
    {
        EventReader reader(server.port(), events_of(run));
        wait_for(reader, "tool-started\",\"tool_name\":\"execute");
    }
    EXPECT_TRUE(eventually([&server] { return streams(server) == 0; }));
    open_gate(server, run);
    EXPECT_EQ(server.wait_for_end(text(run, "run_id")).at("output"), "done");
    const HttpReply history =
        http(server.port(), "GET", "/api/chat/thread/" + text(run, "thread_id") + "/history");
    EXPECT_NE(history.body.find("one\\n"), std::string::npos) << history.body;
    EXPECT_EQ(history.body.find("Cancelled"), std::string::npos) << history.body;
}

TEST(StreamReaders, S26TheStateIsNeverOlderThanAnEventThatWasSeen) {
    Server server;
    server.write("scripts/main.yaml", kGated);
    server.start();
    for (int i = 0; i < 10; ++i) {
        const json::object run = server.submit("main", "go");
        EventReader reader(server.port(), events_of(run));
        const EventFrame frame = wait_for(reader, "ars.agent_state");
        const json::value state =
            http(server.port(), "GET", "/api/chat/thread/" + text(run, "thread_id") + "/state")
                .json();
        EXPECT_EQ(
            state.at("agent_state").at("todos"),
            frame.data().at("payload").at("agent_state").at("todos")
        ) << json::serialize(state);
        EXPECT_EQ(state.at("agent_state").at("todos").as_array().size(), 1U);
        open_gate(server, run);
        server.wait_for_end(text(run, "run_id"));
    }
}

TEST(StreamReaders, S28AModelThatOnlySendsCommentsEndsTheRunWithAReason) {
    ModelServer model([](const RecordedRequest&, std::size_t n) {
        if (n != 0) {
            return text_reply({"fine"});
        }
        ScriptedReply reply;
        for (int i = 0; i < 3000; ++i) {
            reply.body.push_back(Send{": keep-alive\n\n"});
            reply.body.push_back(Pause{20ms});
        }
        return reply;
    });
    Server server;
    server.use_model(model.base_url(), "retries: 0, first_byte_timeout: 1s, idle_timeout: 1s");
    server.start();
    const json::object run = server.submit("main", "go");
    const auto frames = read_frames(server.port(), events_of(run));
    ASSERT_GE(frames.size(), 3U);
    EXPECT_EQ(frames.back().data().at("payload").at("status"), "failed");
    const EventFrame& error = frames[frames.size() - 2];
    EXPECT_EQ(error.type, "error");
    EXPECT_NE(error.bytes.find("error_message"), std::string::npos) << error.bytes;
    std::printf("%s", error.bytes.c_str());
    // A cancel says what it did: nothing, to a run that has ended.
    const json::object done = server.submit("main", "again");
    server.wait_for_end(text(done, "run_id"));
    const HttpReply cancel =
        http(server.port(), "POST", "/api/agent/runs/" + text(done, "run_id") + "/cancel");
    EXPECT_EQ(cancel.status, 200);
    EXPECT_EQ(cancel.json().at("run").at("status"), "completed");
}

TEST(StreamReaders, S19ALiveRunOutlivesTheRetentionAndAnEndedOneLeavesAGap) {
    Server server;
    server.write("scripts/main.yaml", kGated);
    server.write(
        "scripts/quick.yaml",
        "agent: main\nwhen: {user_contains: quick}\nturns:\n  - text: \"quick\"\n"
    );
    server.add_settings("runs: {event_retention: 1s}\n");
    server.start();
    const json::object live = server.submit("main", "go");
    EventReader reader(server.port(), events_of(live));
    std::vector<EventFrame> seen;
    while (seen.empty() ||
           seen.back().bytes.find("tool-started\",\"tool_name\":\"execute") == std::string::npos) {
        seen.push_back(reader.next().value());
    }
    // Younger, and over: when its log has expired, that of the older one is past its time too.
    const json::object ended = server.submit("main", "quick");
    const auto log = read_frames(server.port(), events_of(ended));
    EXPECT_EQ(log.back().type, "end");
    ASSERT_TRUE(eventually([&] {
        return read_frames(server.port(), events_of(ended)).front().type == "gap";
    }));
    const auto check = [&] {
        const auto gap = read_frames(server.port(), events_of(ended), log[0].id);
        ASSERT_EQ(gap.size(), 2U);
        EXPECT_EQ(gap[0].type, "gap");
        EXPECT_EQ(gap[0].id, log.back().id);
        EXPECT_EQ(gap[0].data().at("payload").at("after").as_string(), log[0].id);
        EXPECT_EQ(gap[1].type, "end");
        EXPECT_EQ(gap[1].data().at("payload").at("status"), "completed");
        const auto rest = read_frames(server.port(), events_of(ended), log.back().id);
        ASSERT_EQ(rest.size(), 1U) << "one who had everything missed nothing";
        EXPECT_EQ(rest[0].type, "end");
    };
    check();
    EXPECT_EQ(
        http(server.port(), "GET", "/api/agent/runs/" + text(ended, "run_id") + "/result")
            .json()
            .at("output"),
        "quick"
    ) << "only events expire";
    EventReader again(server.port(), events_of(live));
    for (const EventFrame& frame : seen) {
        EXPECT_EQ(again.next(), frame);
    }
    server.kill();
    server.start();
    check();
    EventReader after(server.port(), events_of(live));
    for (const EventFrame& frame : seen) {
        EXPECT_EQ(after.next(), frame);
    }
    EXPECT_EQ(after.rest().back().type, "end");
}

}  // namespace
}  // namespace ars::tests
