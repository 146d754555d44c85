// Messages that meet a busy thread, through the real binary: they wait in order, also across
// kill -9, are refused, or steer. The model server is strict: a history out of order ends a run.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// "hold ...": two tools, one of which waits for the file `go` in the thread's directory; "fail
// ...": the provider refuses. Everything is answered with "done: <message>".
ScriptedReply answer(const RecordedRequest& request, std::size_t /*n*/) {
    const std::string user = request.last("user");
    const json::array& messages = request.json.as_object().at("messages").as_array();
    const bool first_call = messages.back().as_object().at("role").as_string() == "user";
    if (user.starts_with("fail")) {
        return error_reply(400, R"({"error":{"message":"refused by the test"}})");
    }
    if (user.starts_with("hold") && first_call) {
        return call_reply(
            {{"hold",
              "execute",
              R"({"command": "echo held >> held; until [ -e go ]; do sleep 0.02; done; echo released"})"
             },
             {"side", "execute", R"({"command": "echo beside"})"}}
        );
    }
    return text_reply({"done: " + user});
}

class Queue : public ::testing::Test {
  protected:
    Queue() : model_(answer) {}

    void start(const std::string& settings = {}) {
        if (!std::filesystem::exists(server_.config_path())) {
            server_.write(
                "appliance.yaml",
                "server: {listen: \"127.0.0.1:0\"}\n"
                "data_dir: data\n"
                "mounts: {users: data/users}\n"
                "agents: [\"agents/*.yaml\"]\n"
                "models:\n"
                "  default: \"main:test-model\"\n"
                "  providers:\n"
                "    main: {type: openai, base_url: \"" +
                    model_.base_url() +
                    "\", api_key_env: OPENAI_API_KEY}\n"
                    "sandbox: {tool_approval_mode: always_trust}\n" +
                    settings
            );
        }
        server_.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
    }
    void restart() {
        server_.kill();
        start();
    }

    void make_thread() {
        const json::object thread =
            http_json(
                server_.port(), "POST", "/api/chat/thread", json::object{{"agent_id", "main"}}
            )
                .json()
                .as_object();
        thread_ = text(thread, "id");
        workdir_ = server_.workspace("local") + "/" + text(thread, "workdir_path");
    }
    HttpReply send(const std::string& query, json::object more = {}) const {
        json::object body{{"agent_slug", "main"}, {"query", query}, {"thread_id", thread_}};
        for (const auto& [key, value] : more) {
            body[key] = value;
        }
        return http_json(server_.port(), "POST", "/api/agent/runs", body);
    }
    json::object accepted(const std::string& query, json::object more = {}) const {
        const HttpReply reply = send(query, std::move(more));
        EXPECT_EQ(reply.status, 202) << reply.body;
        return reply.json().as_object();
    }
    // A run of the thread that is inside its tool until release().
    json::object hold() {
        json::object run = accepted("hold the thread");
        const auto until = std::chrono::steady_clock::now() + 20s;
        while (!std::filesystem::exists(workdir_ + "/held")) {
            if (std::chrono::steady_clock::now() > until) {
                throw std::runtime_error("the run never held: " + server_.log());
            }
            std::this_thread::sleep_for(5ms);
        }
        return run;
    }
    void release() const { std::ofstream(workdir_ + "/go") << "go"; }

    HttpReply get(const std::string& path) const { return http(server_.port(), "GET", path); }
    HttpReply post(const std::string& path) const { return http(server_.port(), "POST", path); }
    json::object queue() const {
        return get("/api/agent/thread/" + thread_ + "/requests").json().as_object();
    }
    json::object request(const std::string& id) const {
        return get("/api/agent/requests/" + id).json().as_object().at("request").as_object();
    }
    // The run that a request became; waits for it.
    std::string run_of(const std::string& request_id) const {
        const std::vector<SseEvent> events =
            read_events(server_.port(), "/api/agent/requests/" + request_id + "/events");
        if (events.empty() || events.back().type != "run_created") {
            throw std::runtime_error("request " + request_id + " became no run");
        }
        return text(events.back().data.as_object(), "run_id");
    }
    json::object end_of(const json::object& sent) {
        const json::value& run = sent.at("run_id");
        return server_.wait_for_end(
            run.is_null() ? run_of(text(sent, "request_id")) : std::string(run.as_string())
        );
    }
    // The user messages and final answers of the thread, in order.
    std::vector<std::string> said() const {
        std::vector<std::string> out;
        const json::object history =
            get("/api/chat/thread/" + thread_ + "/history").json().as_object();
        for (const json::value& message : history.at("history").as_array()) {
            const std::string content = text(message.as_object(), "content");
            if (!content.empty()) {
                out.push_back(content);
            }
        }
        return out;
    }
    static std::string text(const json::object& object, const char* key) {
        return std::string(object.at(key).as_string());
    }
    static std::string code(const HttpReply& reply) {
        return text(reply.json().as_object().at("detail").as_object(), "code");
    }

    ModelServer model_;
    Server server_;
    std::string thread_;
    std::string workdir_;
};

TEST_F(Queue, K90K108MessagesToABusyThreadWaitTheirTurnAndSayWhenItCame) {
    start();
    make_thread();
    const json::object first = hold();
    const json::object second = accepted("second");
    const json::object third = accepted("third");
    EXPECT_EQ(second.at("status"), "queued");
    EXPECT_EQ(second.at("queue_position"), 1);
    EXPECT_TRUE(second.at("run_id").is_null());
    EXPECT_EQ(third.at("queue_position"), 2);
    json::object shown = queue();
    EXPECT_EQ(shown.at("queue").at("status"), "running");
    EXPECT_EQ(shown.at("queue").at("blocking_run_id"), first.at("run_id"));
    ASSERT_EQ(shown.at("requests").as_array().size(), 2U);
    EXPECT_EQ(shown.at("requests").at(0).at("content"), "second");
    EXPECT_EQ(
        get("/api/agent/thread/" + thread_ + "/active_run").json().at("run").at("id"),
        first.at("run_id")
    );
    EXPECT_EQ(said().size(), 1U) << "what waits is not in the history";

    std::vector<SseEvent> events;
    std::thread reader([&] {
        events = read_events(
            server_.port(), "/api/agent/requests/" + text(third, "request_id") + "/events"
        );
    });
    release();
    EXPECT_EQ(end_of(first).at("output"), "done: hold the thread");
    EXPECT_EQ(end_of(second).at("output"), "done: second");
    EXPECT_EQ(end_of(third).at("output"), "done: third");
    reader.join();
    ASSERT_GE(events.size(), 2U);
    EXPECT_EQ(events.front().type, "queued");
    EXPECT_EQ(std::ranges::count(events, std::string("run_created"), &SseEvent::type), 1);
    EXPECT_EQ(events.back().type, "run_created");
    std::set<std::int64_t> positions;
    for (std::size_t i = 0; i + 1 < events.size(); ++i) {
        EXPECT_TRUE(positions.insert(events[i].data.at("position").as_int64()).second)
            << "a position is told when it changed";
    }
    EXPECT_EQ(
        said(),
        (std::vector<std::string>{
            "hold the thread",
            "done: hold the thread",
            "second",
            "done: second",
            "third",
            "done: third"
        })
    );
    EXPECT_EQ(queue().at("queue").at("status"), "idle");
    EXPECT_EQ(request(text(third, "request_id")).at("status"), "dispatched");
}

TEST_F(Queue, S5K107AQueueGoesOnInItsOrderAfterKill) {
    start();
    make_thread();
    const json::object first = hold();
    std::vector<json::object> sent;
    for (const char* query : {"second", "third", "fourth"}) {
        sent.push_back(accepted(query, {{"request_id", std::string("id-") + query}}));
    }
    const json::object late = accepted("last", {{"queue_policy", "steer"}});
    EXPECT_EQ(late.at("queue_position"), 1);
    restart();
    EXPECT_EQ(
        accepted("third", {{"request_id", "id-third"}}).at("message_id"), sent[1].at("message_id")
    ) << "the same request after the kill is the same request";
    release();
    EXPECT_EQ(end_of(first).at("status"), "completed");
    EXPECT_EQ(end_of(late).at("output"), "done: last");
    for (const json::object& one : sent) {
        EXPECT_EQ(end_of(one).at("status"), "completed");
    }
    const std::vector<std::string> history = said();
    std::vector<std::string> asked;
    std::ranges::copy_if(history, std::back_inserter(asked), [](const std::string& line) {
        return !line.starts_with("done: ");
    });
    EXPECT_EQ(
        asked, (std::vector<std::string>{"hold the thread", "last", "second", "third", "fourth"})
    );
    EXPECT_EQ(accepted("third", {{"request_id", "id-third"}}).at("status"), "dispatched");
}

TEST_F(Queue, S5EveryQueuedMessageRunsOnceUnderRepeatedKills) {
    start();
    make_thread();
    std::vector<std::string> ids;
    constexpr int kMessages = 12;
    for (int i = 0; i < kMessages; ++i) {
        ids.push_back("id-" + std::to_string(i));
        accepted("message " + std::to_string(i), {{"request_id", ids.back()}});
    }
    for (int kills = 0; kills < 5; ++kills) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20 * kills));
        restart();
    }
    std::vector<std::string> asked;
    for (int i = 0; i < kMessages; ++i) {
        const std::string run = run_of(ids[static_cast<std::size_t>(i)]);
        EXPECT_EQ(server_.wait_for_end(run).at("status"), "completed");
        asked.push_back("message " + std::to_string(i));
        asked.push_back("done: message " + std::to_string(i));
    }
    EXPECT_EQ(said(), asked);
    for (const RecordedRequest& call : model_.requests()) {
        EXPECT_EQ(call.fault, "") << call.body;
    }
}

TEST_F(Queue, K91S41RejectNamesTheRunInItsWayAndStaysRejected) {
    start();
    make_thread();
    const json::object first = hold();
    const json::object policy{{"queue_policy", "reject"}, {"request_id", "once"}};
    const HttpReply refused = send("second", policy);
    EXPECT_EQ(refused.status, 409) << refused.body;
    EXPECT_EQ(code(refused), "run_busy");
    const json::object detail = refused.json().as_object().at("detail").as_object();
    EXPECT_EQ(detail.at("active_run_id"), first.at("run_id"));
    EXPECT_EQ(detail.at("status"), "rejected");
    restart();
    release();
    end_of(first);
    EXPECT_EQ(send("second", policy).status, 409) << "a replay is the same fact";
    EXPECT_EQ(request("once").at("status"), "rejected");
    EXPECT_EQ(send("second", {{"queue_policy", "reject"}, {"request_id", "twice"}}).status, 202);
}

TEST_F(Queue, K102K104ASteerEndsTheRunAfterItsToolsAndSeesTheirResults) {
    start();
    make_thread();
    const json::object first = hold();
    const json::object older = accepted("older");
    const json::object steer = accepted("steer", {{"queue_policy", "steer"}});
    EXPECT_EQ(steer.at("queue_position"), 1);
    EXPECT_EQ(send("another", {{"queue_policy", "steer"}}).status, 409);
    const HttpReply taken_back =
        post("/api/agent/requests/" + text(steer, "request_id") + "/cancel");
    EXPECT_EQ(code(taken_back), "steer_in_progress");
    release();
    const json::object ended = end_of(first);
    EXPECT_EQ(ended.at("status"), "completed") << json::serialize(ended);
    EXPECT_EQ(ended.at("output"), "") << "it had said nothing but its tool calls";
    EXPECT_FALSE(ended.at("final_message_id").is_null());
    EXPECT_EQ(end_of(steer).at("output"), "done: steer");
    EXPECT_EQ(end_of(older).at("output"), "done: older");
    const std::vector<RecordedRequest> calls = model_.requests();
    ASSERT_EQ(calls.size(), 3U) << "one call for each: the steered run asks no more";
    EXPECT_EQ(calls[1].last("user"), "steer");
    EXPECT_NE(calls[1].body.find("released"), std::string::npos) << calls[1].body;
    EXPECT_NE(calls[1].body.find("beside"), std::string::npos);
    const std::vector<SseEvent> events = read_events(server_.port(), text(first, "stream_url"));
    EXPECT_EQ(std::ranges::count(events, std::string("end"), &SseEvent::type), 1);
}

TEST_F(Queue, K103ASteerDuringTheLastAnswerKeepsThatAnswer) {
    start();
    make_thread();
    const json::object first = accepted("first");
    // It may come while the run is pending, in its one model call, or after its end.
    const HttpReply steer = send("steer", {{"queue_policy", "steer"}});
    EXPECT_EQ(end_of(first).at("output"), "done: first");
    if (steer.status == 202) {
        EXPECT_EQ(end_of(steer.json().as_object()).at("output"), "done: steer");
    } else {
        EXPECT_EQ(code(steer), "run_not_steerable") << steer.body;
    }
}

TEST_F(Queue, K100AQueuedMessageIsUpgradedToASteer) {
    start();
    make_thread();
    const json::object first = hold();
    const json::object second = accepted("second");
    const json::object third = accepted("third");
    const std::string path = "/api/agent/requests/" + text(third, "request_id") + "/steer";
    const HttpReply steered = post(path);
    EXPECT_EQ(steered.status, 200) << steered.body;
    EXPECT_EQ(steered.json().at("queue_position"), 1);
    EXPECT_EQ(steered.json().at("queue_policy"), "steer");
    EXPECT_EQ(post(path).status, 200) << "idempotent";
    release();
    end_of(first);
    end_of(second);
    const std::vector<std::string> history = said();
    const auto place = [&](const std::string& line) { return std::ranges::find(history, line); };
    EXPECT_LT(place("third"), place("second"));
}

TEST_F(Queue, K93K95AFailurePausesWhatWaitedUntilSomebodyContinues) {
    start();
    make_thread();
    const json::object first = hold();
    const json::object failing = accepted("fail please");
    const json::object older = accepted("older");
    const std::string go_on = "/api/agent/thread/" + thread_ + "/requests/continue";
    EXPECT_EQ(code(post(go_on)), "run_active");
    release();
    end_of(first);
    EXPECT_EQ(end_of(failing).at("status"), "failed");
    restart();
    json::object shown = queue();
    EXPECT_EQ(shown.at("queue").at("status"), "paused");
    EXPECT_EQ(shown.at("queue").at("paused_reason"), "run_failed");
    EXPECT_EQ(shown.at("queue").at("can_continue"), true);
    const HttpReply rejected = send("no", {{"queue_policy", "reject"}});
    EXPECT_EQ(code(rejected), "queue_paused");
    const HttpReply continued = post(go_on);
    EXPECT_EQ(continued.status, 200) << continued.body;
    EXPECT_EQ(continued.json().at("request_id"), older.at("request_id"));
    EXPECT_EQ(end_of(older).at("output"), "done: older");
    EXPECT_EQ(code(post(go_on)), "queue_empty");
}

TEST_F(Queue, S37K97CancelOfAQueuedMessageAndOfTheRunAhead) {
    start();
    make_thread();
    const json::object first = hold();
    const json::object second = accepted("second");
    const json::object third = accepted("third");
    const std::string path = "/api/agent/requests/" + text(second, "request_id");
    EXPECT_EQ(post(path + "/cancel").json().at("status"), "cancelled");
    EXPECT_EQ(post(path + "/cancel").status, 200) << "idempotent";
    const std::vector<SseEvent> events = read_events(server_.port(), path + "/events");
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, "cancelled");
    EXPECT_EQ(post("/api/agent/runs/" + text(first, "run_id") + "/cancel").status, 200);
    EXPECT_EQ(end_of(first).at("status"), "cancelled");
    EXPECT_EQ(queue().at("queue").at("paused_reason"), "run_cancelled");
    const json::object later = accepted("later");
    EXPECT_EQ(later.at("queue_position"), 2) << "it does not overtake what is paused";
    EXPECT_EQ(post("/api/agent/requests/" + text(third, "request_id") + "/cancel").status, 200);
    EXPECT_EQ(end_of(later).at("output"), "done: later") << "newer than the cancel: goes on";
    const HttpReply dispatched =
        post("/api/agent/requests/" + text(later, "request_id") + "/cancel");
    EXPECT_EQ(code(dispatched), "request_already_dispatched");
    EXPECT_FALSE(dispatched.json().at("detail").at("run_id").as_string().empty());
}

TEST_F(Queue, AFullQueueAnswers429AndAFullPoolQueuesBusyThreads) {
    start("runs: {max_queued: 1, max_concurrent: 1}\n");
    make_thread();
    const json::object first = hold();
    const json::object second = accepted("second", {{"max_steps", 3}, {"timeout", "5m"}});
    const HttpReply full = send("third");
    EXPECT_EQ(full.status, 429) << full.body;
    EXPECT_EQ(code(full), "queue_full");
    EXPECT_FALSE(full.headers.at("retry-after").empty());
    const std::string busy = thread_;
    make_thread();
    const HttpReply no_slot = send("elsewhere");
    EXPECT_EQ(no_slot.status, 429);
    EXPECT_EQ(code(no_slot), "runs_full");
    thread_ = busy;
    const json::object thread = get("/api/chat/thread/" + thread_).json().as_object();
    workdir_ = server_.workspace("local") + "/" + text(thread, "workdir_path");
    release();
    end_of(first);
    const json::object run =
        get("/api/agent/runs/" + run_of(text(second, "request_id"))).json().at("run").as_object();
    EXPECT_EQ(run.at("max_steps"), 3) << "the bounds of the request are kept while it waits";
    EXPECT_EQ(end_of(second).at("output"), "done: second");
}

TEST_F(Queue, S3ManyAtOnceHaveOneWinnerAndLoseNothing) {
    start();
    make_thread();
    constexpr int kAtOnce = 24;
    std::vector<HttpReply> replies(kAtOnce);
    const auto all = [&](auto body) {
        std::vector<std::thread> threads;
        for (int i = 0; i < kAtOnce; ++i) {
            threads.emplace_back([&, i] { replies[static_cast<std::size_t>(i)] = body(i); });
        }
        for (std::thread& one : threads) {
            one.join();
        }
    };
    all([&](int) { return send("same", {{"request_id", "one-key"}}); });
    std::set<std::string> runs;
    for (const HttpReply& reply : replies) {
        ASSERT_EQ(reply.status, 202) << reply.body;
        runs.insert(text(reply.json().as_object(), "run_id"));
    }
    EXPECT_EQ(runs.size(), 1U);
    server_.wait_for_end(*runs.begin());

    all([&](int i) { return send("message " + std::to_string(i)); });
    for (const HttpReply& reply : replies) {
        ASSERT_EQ(reply.status, 202) << reply.body;
        EXPECT_EQ(end_of(reply.json().as_object()).at("status"), "completed");
    }
    const std::vector<std::string> history = said();
    ASSERT_EQ(history.size(), 2U * (kAtOnce + 1));
    for (std::size_t i = 0; i < history.size(); i += 2) {
        EXPECT_EQ(history[i + 1], "done: " + history[i]) << "each is answered before the next";
    }

    make_thread();
    hold();
    all([&](int) { return send("no", {{"queue_policy", "reject"}}); });
    for (const HttpReply& reply : replies) {
        EXPECT_EQ(reply.status, 409);
    }
    all([&](int) { return send("steer", {{"queue_policy", "steer"}}); });
    EXPECT_EQ(std::ranges::count(replies, 202, &HttpReply::status), 1);
    EXPECT_EQ(queue().at("requests").as_array().size(), 1U);
    release();
}

}  // namespace
}  // namespace ars::tests
