// Event streams of the real server: whoever comes back at any event, after any cut, across a
// kill, has in the end exactly what the log holds.
#include "tests/support/event_reader.hpp"
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Text, todos, a sub-agent, and two tools that wait for a file: there the run stands still until
// its test lets it go on.
constexpr const char* kGated = R"(agent: main
turns:
  - text: "Let me think about that for a moment."
    tool_calls:
      - {id: plan, tool: write_todos, args: {todos: [{content: "wait", status: "in_progress"}]}}
  - tool_calls:
      - {id: one, tool: execute, args: {command: "while [ ! -e go1 ]; do sleep 0.02; done; echo one"}}
  - tool_calls:
      - {id: ask, tool: task, args: {subagent_slug: helper, description: "help"}}
  - tool_calls:
      - {id: two, tool: execute, args: {command: "while [ ! -e go2 ]; do sleep 0.02; done; echo two"}}
  - text: "Now it is done."
)";
constexpr const char* kHelper = R"(agent: helper
turns:
  - text: "helped"
)";

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

class GatedRun {
  public:
    explicit GatedRun(Server& server) : server_(server), run_(server.submit("main", "go")) {}

    [[nodiscard]] std::string id() const { return text(run_, "run_id"); }
    [[nodiscard]] std::string thread() const { return text(run_, "thread_id"); }
    [[nodiscard]] std::string events() const { return "/api/agent/runs/" + id() + "/events"; }

    // Lets the tool that waits for the file `go<n>` end.
    void open_gate(int n) const {
        const std::string target =
            "/api/viewer/filesystem/file?thread_id=" + thread() + "&path=/go" + std::to_string(n);
        HttpReply reply;
        for (int i = 0; i < 3000; ++i) {
            reply = http(server_.port(), "PUT", target, "x");
            if (reply.status != 503) {
                break;
            }
            std::this_thread::sleep_for(10ms);  // a server that has just started
        }
        ASSERT_LT(reply.status, 300) << reply.body;
    }
    // The gate at which this event says that the run has come to, else 0.
    static int gate_of(const EventFrame& frame) {
        if (frame.bytes.find("tool-started") == std::string::npos) {
            return 0;
        }
        return frame.bytes.find("-e go1 ") != std::string::npos   ? 1
               : frame.bytes.find("-e go2 ") != std::string::npos ? 2
                                                                  : 0;
    }
    // Opens the gate that this event shows, if it does.
    void let_through(const EventFrame& frame) const {
        if (const int gate = gate_of(frame); gate != 0) {
            open_gate(gate);
        }
    }

  private:
    Server& server_;
    json::object run_;
};

void use_gated(Server& server) {
    server.write("scripts/main.yaml", kGated);
    server.write("scripts/helper.yaml", kHelper);
}

std::vector<EventFrame> tail(const std::vector<EventFrame>& log, std::size_t from) {
    return {log.begin() + static_cast<std::ptrdiff_t>(from), log.end()};
}

void expect_sound(const std::vector<EventFrame>& log) {
    ASSERT_GE(log.size(), 12U);
    EXPECT_EQ(log.front().type, "metadata");
    EXPECT_EQ(log.back().type, "end");
    EXPECT_EQ(std::ranges::count(log, "end", &EventFrame::type), 1);
}

TEST(EventStream, S17S20EveryEventOfAFinishedRunIsAPlaceToGoOn) {
    Server server;
    use_gated(server);
    server.start();
    const GatedRun run(server);
    run.open_gate(1);
    run.open_gate(2);
    EXPECT_EQ(server.wait_for_end(run.id()).at("status"), "completed");
    const auto log = read_frames(server.port(), run.events());
    expect_sound(log);
    for (std::size_t k = 0; k + 1 < log.size(); ++k) {
        EXPECT_EQ(read_frames(server.port(), run.events(), log[k].id), tail(log, k + 1)) << k;
        EXPECT_EQ(
            read_frames(server.port(), run.events() + "?after_seq=" + log[k].id), tail(log, k + 1)
        ) << k;
    }
    // Behind the last event there is only the news that nothing follows.
    const auto rest = read_frames(server.port(), run.events(), log.back().id);
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].type, "end");
    EXPECT_EQ(rest[0].id, "");
}

TEST(EventStream, S20EveryEventOfALiveRunIsAPlaceToGoOn) {
    Server server;
    use_gated(server);
    server.start();
    const GatedRun run(server);
    EventReader first(server.port(), run.events());
    std::vector<EventFrame> log;
    std::vector<std::unique_ptr<EventReader>> joined;
    while (auto frame = first.next()) {
        log.push_back(*frame);
        const std::string query = log.size() % 2 == 0 ? "" : "?after_seq=" + frame->id;
        joined.push_back(std::make_unique<EventReader>(
            server.port(),
            run.events() + query,
            EventReader::Options{.after = query.empty() ? frame->id : "", .receive_buffer = 0}
        ));
        // Whoever joined up to here follows a run that lives.
        run.let_through(*frame);
    }
    expect_sound(log);
    EXPECT_EQ(read_frames(server.port(), run.events()), log);
    for (std::size_t k = 0; k + 1 < log.size(); ++k) {
        EXPECT_EQ(joined[k]->rest(), tail(log, k + 1)) << k;
    }
}

TEST(EventStream, S20EveryEventBeforeAKillIsAPlaceToGoOnAfterIt) {
    Server server;
    use_gated(server);
    server.start();
    const GatedRun run(server);
    std::vector<EventFrame> before;
    {
        EventReader reader(server.port(), run.events());
        while (before.empty() || GatedRun::gate_of(before.back()) != 1) {
            before.push_back(reader.next().value());
        }
        server.kill();
    }
    server.start();
    std::vector<std::unique_ptr<EventReader>> joined;
    for (const EventFrame& frame : before) {
        joined.push_back(std::make_unique<EventReader>(
            server.port(),
            run.events(),
            EventReader::Options{.after = frame.id, .receive_buffer = 0}
        ));
    }
    run.open_gate(1);
    run.open_gate(2);
    EXPECT_EQ(server.wait_for_end(run.id()).at("status"), "completed") << server.log();
    const auto log = read_frames(server.port(), run.events());
    expect_sound(log);
    ASSERT_GT(log.size(), before.size());
    EXPECT_EQ(
        std::vector(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(before.size())), before
    ) << "what a reader saw before the kill is what the log holds";
    for (std::size_t k = 0; k < before.size(); ++k) {
        EXPECT_EQ(joined[k]->rest(), tail(log, k + 1)) << k;
    }
}

TEST(EventStream, S20AKillInMidReplyVoidsWhatWasStreamedAndSaysSo) {
    std::vector<std::string> pieces;
    for (int i = 0; i < 40; ++i) {
        pieces.push_back("piece " + std::to_string(i) + std::string(600, '.'));
    }
    ModelServer model([&](const RecordedRequest&, std::size_t n) {
        ScriptedReply reply = text_reply(pieces);
        if (n == 0) {
            reply.body.resize(pieces.size());
            reply.body.push_back(Pause{10min});
        }
        return reply;
    });
    Server server;
    server.use_model(model.base_url());
    server.start();
    const std::string target =
        "/api/agent/runs/" + text(server.submit("main", "go"), "run_id") + "/events";
    std::vector<EventFrame> before;
    {
        EventReader reader(server.port(), target);
        while (before.empty() || before.back().bytes.find("piece 39") == std::string::npos) {
            before.push_back(reader.next().value());
        }
        server.kill();
    }
    server.start();
    const auto log = read_frames(server.port(), target);
    ASSERT_GT(log.size(), before.size());
    EXPECT_EQ(log.back().type, "end");
    EXPECT_EQ(log[before.size()].type, "reset") << log[before.size()].bytes;
    for (std::size_t k = 0; k < before.size(); ++k) {
        EXPECT_EQ(log[k], before[k]);
        EXPECT_EQ(read_frames(server.port(), target, before[k].id), tail(log, k + 1)) << k;
    }
}

// Follows to the end over connections that each end after a random number of bytes.
std::vector<EventFrame> follow_in_pieces(
    Server& server, const GatedRun& run, std::mt19937& random, bool kills
) {
    std::uniform_int_distribution<std::size_t> piece(1, 4000);
    std::vector<EventFrame> log;
    std::size_t cuts = 0;
    while (log.empty() || log.back().type != "end") {
        EventReader reader(
            server.port(),
            run.events(),
            {.after = log.empty() ? "" : log.back().id, .receive_buffer = 0}
        );
        for (std::size_t left = piece(random); left > 0;) {
            const std::size_t size = std::min<std::size_t>(left, 1 + piece(random) / 8);
            if (!reader.take(size)) {
                break;
            }
            left -= size;
        }
        for (EventFrame& frame : reader.taken()) {
            run.let_through(frame);
            log.push_back(std::move(frame));
        }
        if (kills && ++cuts % 5 == 0) {
            server.kill();
            server.start();
        }
    }
    return log;
}

TEST(EventStream, S20AReaderThatIsCutInMidFrameMissesAndRepeatsNothing) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Server server;
    use_gated(server);
    server.add_server_settings("heartbeat: 20ms");
    server.start();
    const GatedRun run(server);
    const auto live = follow_in_pieces(server, run, random, false);
    expect_sound(live);
    EXPECT_EQ(read_frames(server.port(), run.events()), live);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(follow_in_pieces(server, run, random, false), live);
    }
}

TEST(EventStream, S20AReaderThatIsCutWhileTheServerIsKilledMissesNothing) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Server server;
    use_gated(server);
    server.add_server_settings("heartbeat: 20ms");
    server.start();
    const GatedRun run(server);
    const auto live = follow_in_pieces(server, run, random, true);
    expect_sound(live);
    EXPECT_EQ(read_frames(server.port(), run.events()), live);
}

TEST(EventStream, K118TheHeaderBeatsTheQueryAndWhatIsNoCursorIsRefused) {
    Server server;
    use_gated(server);
    server.start();
    const GatedRun run(server);
    run.open_gate(1);
    run.open_gate(2);
    server.wait_for_end(run.id());
    const auto log = read_frames(server.port(), run.events());
    expect_sound(log);
    EXPECT_EQ(
        read_frames(server.port(), run.events() + "?after_seq=" + log[0].id, log[3].id),
        tail(log, 4)
    );
    EXPECT_EQ(read_frames(server.port(), run.events() + "?after_seq=-1"), log);
    EXPECT_EQ(read_frames(server.port(), run.events() + "?after_seq=0-0"), log);
    EXPECT_EQ(read_frames(server.port(), run.events() + "?after_seq=" + log[3].id, "-1"), log);
    for (const std::string wrong : {"12", "bad", "1-", "-1-2", "1-2x", "99999999999999-0"}) {
        const std::string by_header =
            EventReader(server.port(), run.events(), {.after = wrong, .receive_buffer = 0})
                .refusal();
        EXPECT_TRUE(by_header.starts_with("HTTP/1.1 400")) << by_header;
        EXPECT_NE(by_header.find("bad_cursor"), std::string::npos) << by_header;
        EXPECT_NE(by_header.find("Last-Event-ID"), std::string::npos) << by_header;
        const HttpReply by_query = http(server.port(), "GET", run.events() + "?after_seq=" + wrong);
        EXPECT_EQ(by_query.status, 400);
        EXPECT_NE(by_query.body.find("after_seq"), std::string::npos) << by_query.body;
    }
}

TEST(EventStream, K121ABriefReaderIsSparedWhatItKnows) {
    Server server;
    use_gated(server);
    server.start();
    const GatedRun run(server);
    run.open_gate(1);
    run.open_gate(2);
    server.wait_for_end(run.id());
    EXPECT_EQ(http(server.port(), "GET", run.events() + "?verbose=maybe").status, 422);
    const auto full = read_frames(server.port(), run.events() + "?verbose=true");
    const auto brief = read_frames(server.port(), run.events() + "?verbose=false");
    EXPECT_EQ(full, read_frames(server.port(), run.events()));
    ASSERT_EQ(brief.size(), full.size());
    const json::object metadata = full[0].data().at("payload").as_object();
    std::size_t brief_size = 0;
    std::size_t full_size = 0;
    for (std::size_t i = 0; i < brief.size(); ++i) {
        EXPECT_EQ(brief[i].id, full[i].id);
        EXPECT_EQ(brief[i].type, full[i].type);
        brief_size += brief[i].bytes.size();
        full_size += full[i].bytes.size();
        const json::object data = brief[i].data();
        EXPECT_EQ(data.at("request_id"), metadata.at("request_id"));
        EXPECT_FALSE(data.contains("thread_id"));
        EXPECT_EQ(brief[i].bytes.find("namespace"), std::string::npos) << brief[i].bytes;
        EXPECT_EQ(brief[i].bytes.find("\"response\""), std::string::npos) << brief[i].bytes;
    }
    EXPECT_LT(brief_size, full_size);
    EXPECT_EQ(
        brief[0].data().at("payload"), (json::object{{"run_type", "chat"}, {"source", "chat"}})
    );
    EXPECT_EQ(brief.back().data().at("payload").at("status"), "completed");
}

}  // namespace
}  // namespace ars::tests
