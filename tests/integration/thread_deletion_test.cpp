// What goes with a thread that is deleted: its queue, its runs, its sandbox and what runs in it.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kSleeper = R"(agent: main
turns:
  - tool_calls:
      - {id: nap, tool: execute, args: {command: "echo begun > begun; sleep 7193"}}
  - text: "never said"
)";

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

std::string metric(Server& server, const std::string& name) {
    const std::string all = "\n" + http(server.port(), "GET", "/metrics").body;
    const std::size_t at = all.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << all;
    const std::size_t from = at + name.size() + 2;
    return all.substr(from, all.find('\n', from) - from);
}

TEST(ThreadDeletion, S13S40TakesQueueRunsAndSandboxWithIt) {
    Server server;
    server.write("scripts/main.yaml", kSleeper);
    server.start();
    const json::object begun = server.submit("main", "go");
    const std::string thread = text(begun, "thread_id");
    const std::string path = "/api/chat/thread/" + thread;
    const json::object message{
        {"agent_slug", "main"},
        {"query", "and then"},
        {"thread_id", thread},
        {"request_id", "second"},
        {"queue_policy", "enqueue"}
    };
    EXPECT_EQ(http_json(server.port(), "POST", "/api/agent/runs", message).status, 202);
    while (metric(server, "ars_scopes") != "1") {
        std::this_thread::sleep_for(5ms);
    }
    const HttpReply deleted = http(server.port(), "DELETE", path);
    EXPECT_EQ(deleted.status, 200) << deleted.body;
    EXPECT_EQ(metric(server, "ars_scopes"), "0");
    EXPECT_EQ(server.wait_for_end(text(begun, "run_id")).at("status"), "cancelled");
    const HttpReply queued = http(server.port(), "GET", "/api/agent/requests/second");
    EXPECT_NE(queued.body.find(R"("status":"cancelled")"), std::string::npos) << queued.body;
    EXPECT_EQ(run({"pgrep", "-f", "sleep 7193"}).exit_code, 1);
    for (const char* method : {"GET", "DELETE"}) {
        EXPECT_EQ(http(server.port(), method, path).status, 404) << method;
    }
    EXPECT_TRUE(
        http(server.port(), "GET", "/api/chat/threads").json().at("threads").as_array().empty()
    );
    json::object late = message;
    late["request_id"] = "third";
    EXPECT_EQ(http_json(server.port(), "POST", "/api/agent/runs", late).status, 404);
    server.kill();
    server.start();
    EXPECT_EQ(http(server.port(), "GET", path).status, 404);
    EXPECT_EQ(metric(server, "ars_requests_queued"), "0");
}

}  // namespace
}  // namespace ars::tests
