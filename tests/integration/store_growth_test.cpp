// What the store costs, seen from outside: static text is stored once, tokens share commits, and
// readers that were killed with their server pin nothing.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;

std::string text(const json::object& from, const char* key) {
    return std::string(from.at(key).as_string());
}

class StoreGrowth : public ::testing::Test {
  protected:
    long metric(const std::string& name) {
        const std::string all = "\n" + http(server_.port(), "GET", "/metrics").body;
        const std::size_t at = all.find("\n" + name + " ");
        EXPECT_NE(at, std::string::npos) << all;
        return std::atol(all.c_str() + at + name.size() + 2);
    }
    [[nodiscard]] std::uintmax_t file_size() const {
        return std::filesystem::file_size(server_.data_dir() + "/store/data.mdb");
    }

    Server server_;
};

TEST_F(StoreGrowth, S61StaticTextIsStoredOnceForARunAndNotWithEachStep) {
    constexpr std::size_t kPrompt = 100'000;
    constexpr int kSteps = 100;
    server_.write(
        "agents/main.yaml",
        "slug: main\nname: Main\ndescription: Has much to read.\nbackend_id: ChatbotAgent\n"
        "share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}\n"
        "config_json:\n  context: {system_prompt: \"" +
            std::string(kPrompt, 'p') + "\"}\n"
    );
    std::string script = "agent: main\nturns:\n";
    for (int i = 0; i < kSteps; ++i) {
        script += "  - tool_calls: [{id: t" + std::to_string(i) +
                  ", tool: write_todos, args: {todos: [{content: \"step " + std::to_string(i) +
                  "\", status: \"pending\"}]}}]\n";
    }
    server_.write("scripts/main.yaml", script + "  - text: \"done\"\n");
    server_.start();
    const std::uintmax_t before = file_size();
    const json::object run = server_.submit("main", "go");
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("output"), "done") << json::serialize(result);
    // With each step it would be ten megabytes.
    EXPECT_LT(file_size() - before, 20 * kPrompt);
}

TEST_F(StoreGrowth, S65ManyTokensShareCommits) {
    constexpr std::size_t kTokens = 2000;
    std::vector<std::string> pieces;
    std::string all;
    for (std::size_t i = 0; i < kTokens; ++i) {
        pieces.push_back(std::to_string(i) + " ");
        all += pieces.back();
    }
    ModelServer model([&](const RecordedRequest&, std::size_t) { return text_reply(pieces); });
    server_.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
        "agents: [\"agents/*.yaml\"]\nmodels:\n  default: \"main:test-model\"\n  providers:\n"
        "    main: {type: openai, base_url: \"" +
            model.base_url() + "\", api_key_env: OPENAI_API_KEY}\n"
    );
    server_.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
    const long before = metric("ars_store_commits_total");
    const json::object run = server_.submit("main", "go");
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), json::value(all));
    const long commits = metric("ars_store_commits_total") - before;
    std::printf("%ld commits for %zu tokens\n", commits, kTokens);
    EXPECT_LT(commits, static_cast<long>(kTokens / 4));
}

TEST_F(StoreGrowth, S63ReadersOfAKilledServerPinNothing) {
    server_.write("scripts/main.yaml", "agent: main\nturns:\n  - text: \"{{user}}\"\n");
    server_.start();
    const json::object run = server_.submit("main", std::string(100'000, 'x'));
    server_.wait_for_end(text(run, "run_id"));
    const std::string events = "/api/agent/runs/" + text(run, "run_id") + "/events";
    const std::string history = "/api/chat/thread/" + text(run, "thread_id") + "/history";
    for (int boot = 0; boot < 3; ++boot) {
        std::vector<std::thread> readers;
        const int port = server_.port();
        for (int i = 0; i < 150; ++i) {
            readers.emplace_back([&, port] {
                try {
                    http(port, "GET", history);
                    read_events(port, events);
                } catch (const std::exception&) {
                    // the server was killed over it
                }
            });
        }
        server_.kill();
        for (std::thread& reader : readers) {
            reader.join();
        }
        server_.start();
    }
    EXPECT_EQ(http(server_.port(), "GET", history).status, 200);
    // A slot that pins a snapshot makes every later commit take new pages.
    const std::uintmax_t before = file_size();
    for (int i = 0; i < 200; ++i) {
        const HttpReply made = http_json(
            server_.port(), "POST", "/api/chat/thread", json::object{{"agent_id", "main"}}
        );
        ASSERT_EQ(made.status, 200) << made.body;
    }
    EXPECT_LT(file_size() - before, 2'000'000U);
}

}  // namespace
}  // namespace ars::tests
