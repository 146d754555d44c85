// The same request at the same moment, many times over: explicit keys decide who wins, also after
// kill -9.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;

constexpr std::size_t kAtOnce = 20;
constexpr const char* kScript = R"(agent: main
turns:
  - tool_calls: [{id: act, tool: execute, args: {command: "echo '{{user}}' >> effects"}}]
  - text: "done: {{user}}"
)";

class Duplicates : public ::testing::Test {
  protected:
    Duplicates() {
        server_.write("scripts/main.yaml", kScript);
        server_.start();
    }

    static std::string text(const json::object& from, const char* key) {
        return std::string(from.at(key).as_string());
    }
    HttpReply post(const std::string& path, const json::object& body) const {
        return http_json(server_.port(), "POST", path, body);
    }
    HttpReply send(json::object more) const {
        json::object body{{"agent_slug", "main"}, {"query", "go"}};
        for (const auto& [key, value] : more) {
            body[key] = value;
        }
        return post("/api/agent/runs", body);
    }
    std::string new_thread(const std::string& request_id) const {
        const HttpReply made =
            post("/api/chat/thread", {{"agent_id", "main"}, {"request_id", request_id}});
        EXPECT_EQ(made.status, 200) << made.body;
        return text(made.json().as_object(), "id");
    }
    template <class T>
    static std::vector<T> all_at_once(const std::function<T(std::size_t)>& one) {
        std::vector<T> out(kAtOnce);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            threads.emplace_back([&out, &one, i] { out[i] = one(i); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return out;
    }
    void restart() {
        server_.kill();
        server_.start();
    }

    Server server_;
};

TEST_F(Duplicates, K110S3OneKeyIsOneRunAlsoAfterAKill) {
    const std::function<HttpReply(std::size_t)> one = [this](std::size_t) {
        return send({{"request_id", "one-key"}});
    };
    std::set<std::string> runs;
    for (int boot = 0; boot < 2; ++boot) {
        for (const HttpReply& reply : all_at_once(one)) {
            ASSERT_EQ(reply.status, 202) << reply.body;
            runs.insert(text(reply.json().as_object(), "run_id"));
        }
        restart();
    }
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(server_.wait_for_end(*runs.begin()).at("status"), "completed");
    EXPECT_LE(server_.effects("local")["go"], 1);
    const json::value threads = http(server_.port(), "GET", "/api/chat/threads").json();
    EXPECT_EQ(threads.at("threads").as_array().size(), 1U) << json::serialize(threads);
}

TEST_F(Duplicates, S4WithoutAKeyEachRequestIsARun) {
    const std::string first = text(send({}).json().as_object(), "run_id");
    const std::string second = text(send({}).json().as_object(), "run_id");
    EXPECT_NE(first, second);
    EXPECT_EQ(server_.wait_for_end(first).at("status"), "completed");
    EXPECT_EQ(server_.wait_for_end(second).at("status"), "completed");
    EXPECT_EQ(server_.effects("local")["go"], 2);
}

// A key is global: it belongs to the first body, whatever thread the others name.
TEST_F(Duplicates, K89K110AKeyWithManyBodiesHasOneWinner) {
    std::vector<std::string> threads;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
        threads.push_back(new_thread("thread-" + std::to_string(i)));
    }
    const std::function<HttpReply(std::size_t)> one = [&](std::size_t i) {
        return send({{"request_id", "one-key"}, {"thread_id", threads[i]}});
    };
    std::string winner;
    for (const HttpReply& reply : all_at_once(one)) {
        if (reply.status == 202) {
            EXPECT_EQ(winner, "");
            winner = text(reply.json().as_object(), "run_id");
            continue;
        }
        EXPECT_EQ(reply.status, 409) << reply.body;
        EXPECT_EQ(reply.json().at("detail").at("code"), "request_id_conflict") << reply.body;
    }
    EXPECT_EQ(server_.wait_for_end(winner).at("status"), "completed");
    EXPECT_EQ(server_.effects("local")["go"], 1);
}

TEST_F(Duplicates, K110AThreadHasOneActiveRunUnderEveryPolicy) {
    const std::string thread = new_thread("t");
    const char* const policies[] = {"enqueue", "reject", "steer"};
    const std::function<HttpReply(std::size_t)> one = [&](std::size_t i) {
        return send(
            {{"thread_id", thread},
             {"query", "message " + std::to_string(i)},
             {"request_id", "r" + std::to_string(i)},
             {"queue_policy", policies[i % 3]}}
        );
    };
    const std::vector<HttpReply> replies = all_at_once(one);
    std::vector<std::pair<std::string, std::string>> times;  // of each run, begin and end
    for (std::size_t i = 0; i < kAtOnce; ++i) {
        if (replies[i].status != 202) {
            EXPECT_EQ(replies[i].status, 409) << replies[i].body;
            EXPECT_NE(i % 3, 0U) << "a message that may wait is never refused";
            const json::value detail = replies[i].json().at("detail");
            const std::set<std::string> codes{
                "run_busy", "queue_paused", "steer_already_pending", "run_not_steerable"
            };
            EXPECT_TRUE(codes.contains(text(detail.as_object(), "code"))) << replies[i].body;
            if (i % 3 == 1) {
                EXPECT_EQ(detail.at("code"), "run_busy") << replies[i].body;
                EXPECT_TRUE(detail.at("active_run_id").is_string()) << replies[i].body;
            }
            continue;
        }
        const std::string path = "/api/agent/requests/r" + std::to_string(i);
        read_events(server_.port(), path + "/events");  // until it is a run
        const std::string run = text(
            http(server_.port(), "GET", path).json().at("request").as_object(), "dispatched_run_id"
        );
        EXPECT_EQ(server_.wait_for_end(run).at("status"), "completed");
        const json::object view =
            http(server_.port(), "GET", "/api/agent/runs/" + run).json().at("run").as_object();
        times.emplace_back(text(view, "started_at"), text(view, "finished_at"));
    }
    EXPECT_GE(times.size(), (kAtOnce + 2) / 3);
    std::ranges::sort(times);
    for (std::size_t i = 0; i + 1 < times.size(); ++i) {
        EXPECT_LE(times[i].second, times[i + 1].first) << "two were at work at once";
    }
}

TEST_F(Duplicates, OneRequestIdMakesOneThread) {
    const std::function<std::string(std::size_t)> one = [this](std::size_t) {
        return new_thread("same");
    };
    const std::vector<std::string> made = all_at_once(one);
    EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), 1U);
    restart();
    EXPECT_EQ(new_thread("same"), made.front());
}

}  // namespace
}  // namespace ars::tests
