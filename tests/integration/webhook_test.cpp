// Webhooks of the real binary, received by a real HTTP server that fails as it is told.
#include "base/digest.hpp"
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <set>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kSecret = "a-key-that-signs-webhooks";
constexpr const char* kScript = R"(agent: main
turns:
  - text: "The answer."
)";

ModelServer::Options any_request(std::uint16_t port) {
    ModelServer::Options options;
    options.port = port;
    options.strict = false;
    return options;
}

class Receiver {
  public:
    // Answers the n-th delivery with the n-th status, the last one from then on.
    explicit Receiver(std::vector<int> statuses, std::uint16_t port = 0)
        : server_(any_request(port), [statuses](const RecordedRequest&, std::size_t n) {
              return error_reply(statuses[std::min(n, statuses.size() - 1)], "{}");
          }) {}
    [[nodiscard]] std::string settings(const std::string& more = "") const {
        return "webhooks: [{name: orchestrator, url: \"http://127.0.0.1:" +
               std::to_string(server_.port()) + "/hook\", secret_env: HOOK_KEY" + more + "}]\n";
    }
    // What came, once `count` did.
    [[nodiscard]] std::vector<RecordedRequest> wait(std::size_t count) const {
        EXPECT_TRUE(server_.wait_for_requests(count, 60s));
        return server_.requests();
    }
    [[nodiscard]] std::uint16_t port() const { return server_.port(); }

  private:
    ModelServer server_;
};

const std::map<std::string, std::string> kKey = {{"HOOK_KEY", kSecret}};

void expect_signed(const RecordedRequest& request) {
    EXPECT_EQ(request.target, "/hook");
    EXPECT_EQ(
        request.header("x-ars-signature-256"),
        "sha256=" + base::hmac_sha256_hex(kSecret, request.body)
    );
    EXPECT_EQ(request.header("x-ars-delivery"), request.json.at("delivery_id").as_string());
}

TEST(Webhook, TellsHowARunEnded) {
    const Receiver receiver({200});
    Server server;
    server.write("scripts/main.yaml", kScript);
    server.add_settings(receiver.settings());
    server.start(kKey);
    const std::string run(server.submit("main", "go").at("run_id").as_string());
    const json::object result = server.wait_for_end(run);
    const RecordedRequest told = receiver.wait(1).front();
    expect_signed(told);
    EXPECT_EQ(told.header("x-ars-event"), "run.completed");
    EXPECT_EQ(told.json.at("event"), "run.completed");
    EXPECT_EQ(told.json.at("run"), result);
    EXPECT_EQ(server.stop(), 0);
    EXPECT_EQ(receiver.wait(1).size(), 1U);
    EXPECT_EQ(server.log().find(kSecret), std::string::npos);
}

TEST(S93Webhook, K76ARefusedDeliveryComesAgainAlsoAfterAKillWithTheSameIdAndBytes) {
    const Receiver receiver({503, 503, 503, 200});
    Server server;
    server.write("scripts/main.yaml", kScript);
    server.add_settings(receiver.settings());
    server.start(kKey);
    const std::string run(server.submit("main", "go").at("run_id").as_string());
    EXPECT_EQ(server.wait_for_end(run).at("status"), "completed");
    (void)receiver.wait(2);
    server.kill();
    server.start(kKey);
    const std::vector<RecordedRequest> told = receiver.wait(4);
    std::set<std::string> bodies;
    std::set<std::string> ids;
    for (const RecordedRequest& request : told) {
        expect_signed(request);
        bodies.insert(request.body);
        ids.insert(request.header("x-ars-delivery"));
    }
    EXPECT_EQ(bodies.size(), 1U);
    EXPECT_EQ(ids.size(), 1U);
    // What follows is told on its own; the old delivery may come once more, never changed.
    EXPECT_EQ(server.stop(), 0);
    server.start(kKey);
    const std::string other(server.submit("main", "go").at("run_id").as_string());
    server.wait_for_end(other);
    for (std::size_t count = told.size() + 1; ids.size() < 2 && !HasFailure(); ++count) {
        for (const RecordedRequest& request : receiver.wait(count)) {
            bodies.insert(request.body);
            ids.insert(request.header("x-ars-delivery"));
        }
    }
    EXPECT_EQ(bodies.size(), 2U);
}

// The kill comes when the run is over on disk and nobody listens yet: the end is told by a boot
// that knows of the run only from the store.
TEST(S93Webhook, AnEndThatAKillLeftUntoldIsToldByTheNextBoot) {
    std::uint16_t port = 0;
    {
        const Receiver free({200});
        port = free.port();
    }
    Server server;
    server.write("scripts/main.yaml", kScript);
    server.add_settings(
        "webhooks: [{name: orchestrator, url: \"http://127.0.0.1:" + std::to_string(port) +
        "/hook\", secret_env: HOOK_KEY}]\n"
    );
    server.start(kKey);
    std::set<std::string> runs;
    for (int i = 0; i < 5; ++i) {
        const std::string run(server.submit("main", "go").at("run_id").as_string());
        server.wait_for_end(run);
        runs.insert(run);
    }
    server.kill();
    const Receiver receiver({200}, port);
    server.start(kKey);
    std::set<std::string> told;
    while (told.size() < runs.size() && !HasFailure()) {
        for (const RecordedRequest& request : receiver.wait(told.size() + 1)) {
            expect_signed(request);
            told.insert(std::string(request.json.at("run").at("agent_run_id").as_string()));
        }
    }
    EXPECT_EQ(told, runs);
}

TEST(Webhook, OfFailedAndCancelledRunsOnlyWhereItIsWanted) {
    const Receiver receiver({200});
    Server server;
    server.write("scripts/main.yaml", kScript);
    server.write(
        "scripts/slow.yaml",
        "agent: main\nwhen: {user_contains: slow}\nturns:\n"
        "  - tool_calls: [{id: nap, tool: execute, args: {command: \"sleep 7073\"}}]\n"
        "  - text: never\n"
    );
    server.add_settings(receiver.settings(", statuses: [cancelled]"));
    server.start(kKey);
    const std::string done(server.submit("main", "go").at("run_id").as_string());
    server.wait_for_end(done);
    const std::string slow(server.submit("main", "slow").at("run_id").as_string());
    EXPECT_EQ(http(server.port(), "POST", "/api/agent/runs/" + slow + "/cancel").status, 200);
    server.wait_for_end(slow);
    const std::vector<RecordedRequest> told = receiver.wait(1);
    EXPECT_EQ(told.front().header("x-ars-event"), "run.cancelled");
    EXPECT_EQ(told.front().json.at("run").at("agent_run_id").as_string(), slow);
}

TEST(Webhook, AWrongOneIsRefusedAtTheStart) {
    Server server;
    server.write("scripts/main.yaml", kScript);
    server.add_settings(
        "webhooks: [{name: a, url: \"ftp://x\", secret_env: HOOK_KEY, statuses: [done]}, "
        "{name: a, url: \"http://x/\"}]\n"
    );
    EXPECT_THROW(server.start({{"HOOK_KEY", "short"}}), std::runtime_error);
    const std::string log = server.log();
    for (const char* fault :
         {"webhooks[0].url", "no end of a run", "has 5 characters", "stands twice", "signing key"
         }) {
        EXPECT_NE(log.find(fault), std::string::npos) << fault << "\n" << log;
    }
}

}  // namespace
}  // namespace ars::tests
