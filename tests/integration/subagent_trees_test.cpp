// Random trees of a parent and its sub-agents (ARS_TREES, else 200; ARS_SEED repeats one) against a
// simulation of what must come of them, and the same again while the server is killed (ARS_KILLS).
#include "tests/support/model_plan.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

unsigned number_from(const char* name, unsigned otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<unsigned>(std::atoi(text));
}

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

class SubagentTrees : public testing::Test {
  protected:
    struct Tree {
        Plan plan;
        std::string run;
        std::string thread;
    };

    SubagentTrees() : seed_(number_from("ARS_SEED", std::random_device{}())), random_(seed_) {
        server_.write(
            "appliance.yaml",
            "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
            "agents: [\"agents/*.yaml\"]\nmodels:\n  default: \"main:test-model\"\n  providers:\n"
            "    main: {type: openai, base_url: \"" +
                model_.base_url() +
                "\", api_key_env: OPENAI_API_KEY}\n"
                "sandbox: {tool_approval_mode: always_trust}\n"
        );
        start();
        std::printf("seed %u\n", seed_);
    }

    void start() { server_.start({{"OPENAI_API_KEY", "a-key-for-the-test"}}); }

    Tree submitted(PlanSettings settings) {
        Tree tree;
        tree.plan = random_plan("p" + std::to_string(planned_++), random_, settings);
        const json::object run = server_.submit("main", message_of(tree.plan));
        tree.run = text(run, "run_id");
        tree.thread = text(run, "thread_id");
        return tree;
    }

    // True when it has ended. One that waits for a person is answered.
    bool moved_on(Tree& tree) {
        const json::object run =
            http(server_.port(), "GET", "/api/agent/runs/" + tree.run).json().at("run").as_object();
        const std::string status = text(run, "status");
        if (status != "interrupted") {
            return status == "completed" || status == "failed" || status == "cancelled";
        }
        json::object answers;
        for (const json::value& one : run.at("interrupts").as_array()) {
            answers[one.at("id").as_string()] = json::object{{"answers", {{"colour", "blue"}}}};
        }
        const HttpReply resumed = http_json(
            server_.port(),
            "POST",
            "/api/agent/runs",
            json::object{
                {"agent_slug", "main"}, {"created_by_run_id", tree.run}, {"resume", answers}
            }
        );
        EXPECT_EQ(resumed.status, 202) << resumed.body;
        tree.run = text(resumed.json().as_object(), "run_id");
        return false;
    }

    void expect_as_foreseen(const Tree& tree) {
        const Foreseen foreseen = foresee(tree.plan);
        const json::object result =
            http(server_.port(), "GET", "/api/agent/runs/" + tree.run + "/result")
                .json()
                .as_object();
        EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
        EXPECT_EQ(text(result, "output"), foreseen.output)
            << "seed " << seed_ << ": " << message_of(tree.plan);
        const std::string directory =
            server_.workspace("local") + "/" +
            text(
                http(server_.port(), "GET", "/api/chat/thread/" + tree.thread).json().as_object(),
                "workdir_path"
            );
        for (const std::string& note : foreseen.notes) {
            EXPECT_EQ(read_text(directory + "/" + note), note) << "seed " << seed_;
        }
    }

    // Without kills every model call is made once.
    void expect_calls(const std::deque<Tree>& trees) {
        std::map<std::string, int> calls;
        for (const RecordedRequest& request : model_.requests()) {
            EXPECT_EQ(request.fault, "") << request.body;
            ++calls[plan_id_of(request)];
        }
        for (const Tree& tree : trees) {
            for (const auto& [plan, count] : foresee(tree.plan).model_calls) {
                EXPECT_EQ(calls[plan], count) << plan << ", seed " << seed_;
            }
        }
    }

    unsigned seed_;
    std::mt19937 random_;
    unsigned planned_ = 0;
    ModelServer model_{plan_player()};
    Server server_;
};

TEST_F(SubagentTrees, EndAsTheSimulationSays) {
    constexpr std::size_t kAtOnce = 8;
    const unsigned count = number_from("ARS_TREES", 200);
    std::deque<Tree> open;
    std::deque<Tree> ended;
    const auto limit = std::chrono::steady_clock::now() + 1s * (60 + count);
    while (ended.size() < count) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit) << "seed " << seed_ << server_.log();
        while (open.size() < kAtOnce && planned_ < count) {
            open.push_back(submitted({}));
        }
        Tree tree = std::move(open.front());
        open.pop_front();
        (moved_on(tree) ? ended : open).push_back(std::move(tree));
    }
    for (const Tree& tree : ended) {
        expect_as_foreseen(tree);
    }
    expect_calls(ended);
}

TEST_F(SubagentTrees, EndTheSameWhenTheServerIsKilled) {
    constexpr std::size_t kAtOnce = 6;
    const unsigned kills = number_from("ARS_KILLS", 20);
    std::uniform_int_distribution<int> uptime_ms(20, 300);
    std::deque<Tree> open;
    std::deque<Tree> ended;
    for (unsigned kill = 0; kill < kills; ++kill) {
        while (open.size() < kAtOnce) {
            open.push_back(submitted({}));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(uptime_ms(random_)));
        server_.kill();
        start();
        for (std::size_t i = open.size(); i-- > 0;) {
            Tree tree = std::move(open.front());
            open.pop_front();
            (moved_on(tree) ? ended : open).push_back(std::move(tree));
        }
    }
    const auto limit = std::chrono::steady_clock::now() + 90s;
    while (!open.empty()) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit)
            << "seed " << seed_ << ": " << message_of(open.front().plan) << server_.log();
        Tree tree = std::move(open.front());
        open.pop_front();
        if (moved_on(tree)) {
            ended.push_back(std::move(tree));
        } else {
            open.push_back(std::move(tree));
            std::this_thread::sleep_for(20ms);
        }
    }
    for (const Tree& tree : ended) {
        expect_as_foreseen(tree);
    }
    std::printf("%u kills, %zu trees\n", kills, ended.size());
}

}  // namespace
}  // namespace ars::tests
