// What holds whatever happens, looked at after kills at random moments under work: threads with two
// messages each, effects and sub-agents, against a model server that refuses a history out of
// order.
//   I1  Every accepted run ends or waits for a person.
//   I2  A thread has one active run.
//   I3  Status of the run, status of the thread and last event agree.
//   I4  Every history passes the strict model server.
//   I5  Event ids rise, and each log has one end, last.
//   I6  No child is active under an ended parent.
//   I7  Usage counts every answer of the model, or says that it is not complete.
//   I8  A tool with effects ran at most once for each call.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr int kThreads = 12;
constexpr int kKills = 6;

// "<job>": an effect and a sub-agent at once, then the answer. "help <job>": an effect.
ScriptedReply answer(const RecordedRequest& request, std::size_t /*n*/) {
    const std::string user = request.last("user");
    const json::array& messages = request.json.as_object().at("messages").as_array();
    const bool first_call = messages.back().as_object().at("role").as_string() == "user";
    ScriptedReply reply = text_reply({"done: " + user});
    if (first_call) {
        std::vector<ScriptedCall> calls{
            {"act", "execute", R"({"command": "echo )" + user + R"( >> effects; sleep 0.03"})"}
        };
        if (!user.starts_with("help")) {
            calls.push_back(
                {"ask",
                 "task",
                 R"({"subagent_slug": "helper", "description": "help )" + user + R"("})"}
            );
        }
        reply = call_reply(calls);
    }
    reply.delay_before_head = 20ms;
    return reply;
}

std::string text(const json::object& from, const char* key) {
    return std::string(from.at(key).as_string());
}

class Invariants : public ::testing::Test {
  protected:
    struct World {
        ModelServer model{answer};
        Server server;
        std::vector<std::string> threads;
        std::vector<json::object> accepted;
        std::vector<json::object> runs;  // how they ended
    };
    static inline std::unique_ptr<World> world;

    static void start() { world->server.start({{"OPENAI_API_KEY", "a-key-for-the-test"}}); }
    static HttpReply get(const std::string& path) {
        return http(world->server.port(), "GET", path);
    }
    static void send(const std::string& thread, const std::string& query) {
        const HttpReply reply = http_json(
            world->server.port(),
            "POST",
            "/api/agent/runs",
            json::object{{"agent_slug", "main"}, {"query", query}, {"thread_id", thread}}
        );
        if (reply.status != 202) {
            throw std::runtime_error(reply.body);
        }
        world->accepted.push_back(reply.json().as_object());
    }
    static json::object view(const std::string& run) {
        return get("/api/agent/runs/" + run).json().at("run").as_object();
    }

    static void SetUpTestSuite() {
        world = std::make_unique<World>();
        world->server.write(
            "appliance.yaml",
            "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
            "agents: [\"agents/*.yaml\"]\n"
            "models:\n  default: \"main:test-model\"\n  providers:\n"
            "    main: {type: openai, base_url: \"" +
                world->model.base_url() +
                "\", api_key_env: OPENAI_API_KEY}\n"
                "sandbox: {tool_approval_mode: always_trust}\n"
        );
        start();
        for (int i = 0; i < kThreads; ++i) {
            const HttpReply made = http_json(
                world->server.port(), "POST", "/api/chat/thread", json::object{{"agent_id", "main"}}
            );
            world->threads.push_back(text(made.json().as_object(), "id"));
            send(world->threads.back(), "job-" + std::to_string(i));
            send(world->threads.back(), "job-" + std::to_string(i) + "-again");
        }
        const unsigned seed = std::random_device{}();
        std::printf("seed %u\n", seed);
        std::mt19937 random(seed);
        std::uniform_int_distribution<int> uptime_ms(20, 300);
        for (int kill = 0; kill < kKills; ++kill) {
            std::this_thread::sleep_for(std::chrono::milliseconds(uptime_ms(random)));
            world->server.kill();
            start();
        }
        for (const json::object& sent : world->accepted) {
            const std::string path = "/api/agent/requests/" + text(sent, "request_id");
            const std::vector<SseEvent> events =
                read_events(world->server.port(), path + "/events");
            const json::object request = get(path).json().at("request").as_object();
            if (!request.at("dispatched_run_id").is_string()) {
                throw std::runtime_error("became no run: " + json::serialize(request));
            }
            const std::string run = text(request, "dispatched_run_id");
            world->server.wait_for_end(run, {}, 120s);
            world->runs.push_back(view(run));
        }
    }
    static void TearDownTestSuite() { world.reset(); }

    static std::vector<json::object> children_of(const json::object& run) {
        std::vector<json::object> out;
        const json::value state =
            get("/api/chat/thread/" + text(run, "thread_id") + "/state").json();
        const json::value* children =
            state.at("agent_state").as_object().if_contains("subagent_runs");
        if (children != nullptr) {
            for (const json::value& child : children->as_array()) {
                out.push_back(view(text(child.as_object(), "run_id")));
            }
        }
        return out;
    }
    static std::vector<SseEvent> events(const json::object& run) {
        return read_events(world->server.port(), "/api/agent/runs/" + text(run, "id") + "/events");
    }
    // The user messages of a thread.
    static std::vector<std::string> asked(const std::string& thread) {
        std::vector<std::string> out;
        const json::value history = get("/api/chat/thread/" + thread + "/history").json();
        for (const json::value& message : history.at("history").as_array()) {
            if (message.at("role") == "user") {
                out.emplace_back(message.at("content").as_string());
            }
        }
        return out;
    }
};

TEST_F(Invariants, I1EveryAcceptedRunEnds) {
    ASSERT_EQ(world->runs.size(), 2U * kThreads);
    for (const json::object& run : world->runs) {
        EXPECT_EQ(run.at("status"), "completed") << json::serialize(run);
    }
    for (int i = 0; i < kThreads; ++i) {
        const std::string job = "job-" + std::to_string(i);
        EXPECT_EQ(
            asked(world->threads[static_cast<std::size_t>(i)]),
            (std::vector<std::string>{job, job + "-again"})
        ) << "each message is there once, in its order";
    }
}

TEST_F(Invariants, I2AThreadHasOneActiveRun) {
    for (std::size_t i = 0; i + 1 < world->runs.size(); i += 2) {
        EXPECT_GE(text(world->runs[i + 1], "started_at"), text(world->runs[i], "finished_at"));
    }
}

TEST_F(Invariants, I3StatusOfRunAndThreadAndLastEventAgree) {
    for (const json::object& run : world->runs) {
        const std::vector<SseEvent> log = events(run);
        const std::string last = json::serialize(log.back().data);
        EXPECT_NE(last.find(text(run, "status")), std::string::npos) << last;
        const json::value thread = get("/api/chat/thread/" + text(run, "thread_id")).json();
        EXPECT_EQ(thread.at("thread_status"), "ready") << json::serialize(thread);
    }
}

TEST_F(Invariants, I4EveryHistoryPassesTheStrictModelServer) {
    EXPECT_GE(world->model.requests().size(), 6U * kThreads);
    for (const RecordedRequest& request : world->model.requests()) {
        EXPECT_EQ(request.fault, "") << request.body;
    }
}

TEST_F(Invariants, I5EventIdsRiseAndEachLogHasOneEnd) {
    for (const json::object& run : world->runs) {
        const std::vector<SseEvent> log = events(run);
        EXPECT_TRUE(ids_rise(log));
        EXPECT_EQ(std::ranges::count(log, std::string("end"), &SseEvent::type), 1);
        EXPECT_EQ(log.back().type, "end");
    }
}

TEST_F(Invariants, I6NoChildIsActiveUnderAnEndedParent) {
    std::size_t children = 0;
    for (const json::object& run : world->runs) {
        for (const json::object& child : children_of(run)) {
            ++children;
            EXPECT_EQ(child.at("status"), "completed") << json::serialize(child);
            EXPECT_TRUE(child.at("finished_at").is_string());
        }
    }
    EXPECT_GE(children, world->runs.size());
}

TEST_F(Invariants, I7UsageCountsEveryAnswerOrSaysThatItIsNotComplete) {
    std::size_t complete = 0;
    const std::vector<RecordedRequest> all = world->model.requests();
    for (std::size_t i = 0; i < world->runs.size(); ++i) {
        const json::object& run = world->runs[i];
        const std::string job = "job-" + std::to_string(i / 2) + (i % 2 == 0 ? "" : "-again");
        const auto asked = std::ranges::count_if(all, [&](const RecordedRequest& request) {
            return request.last("user") == job;
        });
        const json::object& usage = run.at("token_usage").as_object();
        constexpr std::int64_t kInput = 10;  // what the model server says of each answer
        EXPECT_GE(usage.at("input_tokens").as_int64(), 2 * kInput) << "two steps";
        if (usage.at("complete").as_bool()) {
            ++complete;
            EXPECT_EQ(usage.at("input_tokens").as_int64(), asked * kInput) << json::serialize(run);
        }
    }
    std::printf("%zu of %zu complete\n", complete, world->runs.size());
    EXPECT_GT(complete, 0U);
}

TEST_F(Invariants, I8AnEffectHappensAtMostOnceForEachCall) {
    const auto times = world->server.effects("local");
    EXPECT_GE(times.size(), world->runs.size());
    for (const auto& [line, count] : times) {
        EXPECT_EQ(count, 1) << line;
    }
}

}  // namespace
}  // namespace ars::tests
