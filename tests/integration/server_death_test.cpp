// kill -9 of a server whose scopes are busy: nothing that it or its tools ever started is left.
#include "tests/support/process_family.hpp"
#include "tests/support/server.hpp"

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// An agent whose one command is `script`; a double quote in it would end the YAML text.
void add_agent_that_runs(Server& server, const std::string& script) {
    server.write(
        "scripts/main.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: a, tool: execute, args: {command: \"" +
            script + "\"}}]\n  - text: \"{{a}}\"\n"
    );
}

// Until at least `count` processes have the marker.
void wait_for(const std::string& marker, int count) {
    const auto until = std::chrono::steady_clock::now() + 30s;
    // One that is just being executed has no command line for a moment: what was seen once counts.
    int seen = processes_with(marker);
    while (seen < count && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
        seen = processes_with(marker);
    }
    ASSERT_GE(seen, count);
}

class ServerDeath : public testing::TestWithParam<std::string> {
  protected:
    static void start(Server& server) {
        if (GetParam() == "namespaces") {
            server.start();
        } else {
            server.start_without_namespaces();
        }
    }
};

TEST_P(ServerDeath, NothingOfBusyScopesIsLeftASecondLater) {
    Server server;
    const std::string mark = "31" + std::to_string(::getpid()) + "7";
    add_agent_that_runs(
        server,
        "sleep " + mark + " & setsid sleep " + mark + " & (setsid sleep " + mark + " &); sleep " +
            mark
    );
    start(server);
    for (int i = 0; i < 4; ++i) {
        server.submit("main", "busy " + std::to_string(i));
    }
    wait_for(mark, 16);
    const Family family = family_of(server.pid());
    ASSERT_GE(family.size(), 16U);
    server.kill();
    EXPECT_EQ(left_of(family, 1s), "");
    EXPECT_EQ(processes_with(mark), 0);
}

TEST_P(ServerDeath, C08_HealthAnswersBesideAForkBombAndTheBombDiesWithTheServer) {
    Server server;
    const std::string mark = "37" + std::to_string(::getpid()) + "3";
    add_agent_that_runs(server, "bomb() { bomb | bomb & }; bomb; sleep " + mark);
    start(server);
    server.submit("main", "bomb");
    wait_for(mark, 50);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(http(server.port(), "GET", "/api/system/health").status, 200);
    }
    const Family family = family_of(server.pid());
    server.kill();
    // A family of a bomb is never the whole of it: the command lines are looked for as well.
    EXPECT_EQ(left_of(family, 2s), "");
    EXPECT_EQ(processes_with(mark), 0);
}

INSTANTIATE_TEST_SUITE_P(
    In,
    ServerDeath,
    testing::Values("namespaces", "landlock"),
    [](const auto& info) { return info.param; }
);

}  // namespace
}  // namespace ars::tests
