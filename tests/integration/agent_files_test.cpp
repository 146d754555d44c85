// Agent files beside the API: who wins, and what a reload does while the server works.
#include "tests/integration/agents_api_fixture.hpp"

#include <csignal>
#include <thread>
#include <vector>

namespace ars::tests {
namespace {

using AgentFiles = AgentsApi;

TEST_F(AgentFiles, ALockedFileWinsAtEveryStartAndReload) {
    server_.write("agents/fixed.yaml", "slug: fixed\nname: One\n");
    start();
    const HttpReply refused = call("root", "PUT", "/fixed", {{"name", "Mine"}});
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(code_of(refused), "agent_locked");
    EXPECT_NE(refused.body.find("agents/fixed.yaml"), std::string::npos);
    EXPECT_EQ(call("root", "DELETE", "/fixed").status, 409);
    server_.write("agents/fixed.yaml", "slug: fixed\nname: Two\n");
    server_.kill();
    start_again();
    EXPECT_EQ(text(get("alice", "/fixed").json().at("agent"), "name"), "Two");
    server_.write("agents/fixed.yaml", "slug: fixed\nname: Three\n");
    server_.write("agents/new.yaml", "slug: new\n");
    const json::value report = reload().json();
    EXPECT_EQ(
        json::serialize(report.at("agents")),
        R"({"added":["new"],"changed":["fixed"],"removed":[]})"
    );
    const json::value third = get("alice", "/fixed").json().at("agent");
    EXPECT_EQ(text(third, "name"), "Three");
    EXPECT_EQ(third.at("version"), 3);
    // The same again changes nothing.
    EXPECT_EQ(
        json::serialize(reload().json().at("agents")), R"({"added":[],"changed":[],"removed":[]})"
    );
    // The agent goes with its file; a name that people took meanwhile is the file's when it is
    // back.
    remove("agents/fixed.yaml");
    EXPECT_EQ(json::serialize(reload().json().at("agents").at("removed")), R"(["fixed"])");
    EXPECT_EQ(get("alice", "/fixed").status, 404);
    ASSERT_EQ(make("alice", {{"name", "x"}, {"slug", "fixed"}}).status, 201);
    server_.write("agents/fixed.yaml", "slug: fixed\nname: Back\n");
    EXPECT_EQ(json::serialize(reload().json().at("agents").at("changed")), R"(["fixed"])");
    EXPECT_EQ(text(get("bob", "/fixed").json().at("agent"), "name"), "Back");
}

TEST_F(AgentFiles, AnUnlockedFileOnlySeedsWhatIsMissing) {
    server_.write("agents/seed.yaml", "slug: seed\nname: One\nlock: false\n");
    start();
    ASSERT_EQ(call("root", "PUT", "/seed", {{"name", "Mine"}}).status, 200);
    server_.write("agents/seed.yaml", "slug: seed\nname: Two\nlock: false\n");
    EXPECT_EQ(reload().status, 200);
    server_.kill();
    start_again();
    EXPECT_EQ(text(get("alice", "/seed").json().at("agent"), "name"), "Mine");
    const HttpReply deleted = call("root", "DELETE", "/seed");
    ASSERT_EQ(deleted.status, 200);
    EXPECT_NE(text(deleted.json(), "note").find("agents/seed.yaml"), std::string::npos);
    EXPECT_EQ(get("alice", "/seed").status, 404);
    EXPECT_EQ(reload().status, 200);
    EXPECT_EQ(text(get("alice", "/seed").json().at("agent"), "name"), "Two");
    server_.write("agents/seed.yaml", "slug: seed\nname: Three\nlock: true\n");
    EXPECT_EQ(reload().status, 200);
    EXPECT_EQ(text(get("alice", "/seed").json().at("agent"), "name"), "Three");
    EXPECT_EQ(call("root", "PUT", "/seed", {{"name", "Mine"}}).status, 409);
    server_.write("agents/seed.yaml", "slug: seed\nname: Four\nlock: false\n");
    EXPECT_EQ(reload().status, 200);
    EXPECT_EQ(text(get("alice", "/seed").json().at("agent"), "name"), "Three");
    EXPECT_EQ(call("root", "PUT", "/seed", {{"name", "Mine"}}).status, 200);
}

TEST_F(AgentFiles, ABrokenFileLeavesTheOldAgentsServingAndTheErrorReadable) {
    start();
    EXPECT_EQ(reload("alice").status, 403);
    server_.write("agents/fine.yaml", "slug: fine\n");
    server_.write(
        "agents/broken.yaml", "slug: broken\nnmae: x\nconfig_json: {context: {tools: [x]}}\n"
    );
    const HttpReply refused = reload();
    EXPECT_EQ(refused.status, 422);
    EXPECT_EQ(code_of(refused), "invalid_config");
    EXPECT_NE(refused.body.find("broken.yaml:2: nmae: unknown key"), std::string::npos);
    EXPECT_NE(refused.body.find("broken.yaml:3: config_json.context.tools[0]"), std::string::npos);
    EXPECT_EQ(listed("alice"), (std::set<std::string>{"default-chatbot", "main"}))
        << "all or nothing";
    ::kill(server_.pid(), SIGHUP);
    const auto last = [this] {
        return http(server_.port(), "GET", "/api/system/reload", {}, as("carol"))
            .json()
            .at("reload");
    };
    for (int i = 0;
         i < 3000 && server_.log().find("reload_refused") == server_.log().rfind("reload_refused");
         ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(text(last(), "status"), "refused");
    EXPECT_EQ(last().at("faults").as_array().size(), 2U);
    remove("agents/broken.yaml");
    ::kill(server_.pid(), SIGHUP);
    for (int i = 0; i < 3000 && text(last(), "status") != "reloaded"; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(listed("alice").contains("fine"));
}

TEST_F(AgentFiles, AReloadTakesOverUsersAndKeysAndIsAudited) {
    start();
    std::string config = read_text(server_.config_path());
    const std::string bob = "  - {name: b, uid: bob, key_env: KEY_BOB}\n";
    config.replace(config.find(bob), bob.size(), "");
    const std::string carol = "{uid: carol, role: admin}";
    config.replace(config.find(carol), carol.size(), "{uid: carol, role: superadmin}");
    server_.write("appliance.yaml", config);
    server_.write("agents/new.yaml", "slug: new\n");
    ASSERT_EQ(make("alice", {{"name", "private"}}).status, 201);
    EXPECT_EQ(get("carol", "/private").status, 404);
    EXPECT_EQ(get("bob", "").status, 200);
    ASSERT_EQ(reload().status, 200);
    EXPECT_EQ(get("bob", "").status, 401);
    EXPECT_EQ(get("carol", "/private").status, 200);
    const HttpReply audit = http(server_.port(), "GET", "/api/system/audit", {}, as("carol"));
    EXPECT_NE(audit.body.find(R"("action":"agent.create","actor":"alice")"), std::string::npos)
        << audit.body;
    EXPECT_NE(audit.body.find(R"("action":"config.reload","actor":"carol")"), std::string::npos);
    EXPECT_NE(audit.body.find(R"("added":["new"])"), std::string::npos);
    EXPECT_EQ(http(server_.port(), "GET", "/api/system/audit", {}, as("alice")).status, 403);
}

TEST_F(AgentFiles, AReloadSaysWhatTakesARestart) {
    start();
    std::string config = read_text(server_.config_path());
    config.insert(config.find("sandbox: {") + 10, "policies: {wide: {processes: 77}}, ");
    config += "runs: {max_concurrent: 3}\n";
    server_.write("appliance.yaml", config);
    const HttpReply report = reload();
    ASSERT_EQ(report.status, 200) << report.body;
    EXPECT_EQ(json::serialize(report.json().at("needs_restart")), R"(["sandbox","runs"])");
    server_.write("agents/new.yaml", "slug: new\nconfig_json: {context: {policy: wide}}\n");
    const HttpReply refused = reload();
    EXPECT_EQ(refused.status, 422);
    EXPECT_NE(refused.body.find("restart the server"), std::string::npos) << refused.body;
}

TEST_F(AgentFiles, FiftyReloadsDisturbNoneOfTwoHundredRuns) {
    server_.write("agents/fixed.yaml", "slug: fixed\nname: Version 0\n");
    start();
    std::vector<std::string> runs;
    for (int i = 0; i < 200; ++i) {
        runs.push_back(text(server_.submit("main", "slow", as("root")), "run_id"));
    }
    for (int i = 1; i <= 50; ++i) {
        server_.write(
            "agents/fixed.yaml", "slug: fixed\nname: Version " + std::to_string(i) + "\n"
        );
        if (i % 2 == 0) {
            ASSERT_EQ(reload().status, 200);
        } else {
            ::kill(server_.pid(), SIGHUP);
        }
    }
    for (const std::string& run : runs) {
        const json::object result = server_.wait_for_end(run, as("root"));
        EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
        EXPECT_EQ(result.at("output"), "did it");
    }
    EXPECT_EQ(server_.effects("root")["done"], 200);
    EXPECT_EQ(text(get("root", "/fixed").json().at("agent"), "name"), "Version 50");
}

}  // namespace
}  // namespace ars::tests
