// What the commands say to people: usage, checks, and where a configuration is wrong.
#include "tests/support/process.hpp"
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <filesystem>

namespace ars::tests {
namespace {

constexpr const char* kAppliance = R"(data_dir: data
mounts: {users: data/users}
agents: ["agents/*.yaml"]
models:
  default: "demo:scripted"
  providers:
    demo: {type: scripted, scripts: "scripts/*.yaml"}
)";

constexpr const char* kBadAgent = R"(slug: main
name: Main
backend_id: ChatbotAgent
config_json:
  context:
    modle: "demo:scripted"
)";

constexpr const char* kGoodAgent = R"(slug: main
name: Main
backend_id: ChatbotAgent
)";

constexpr const char* kScript = R"(agent: somebody-else
turns:
  - text: "not for you"
)";

TEST(CommandLine, CheckOfTheShippedConfigurationIsFine) {
    const Finished done =
        run({ars_binary(), "check", "--config", source_directory() + "/configs/appliance.yaml"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST(CommandLine, TheShippedSchemaOfAgentFilesIsWhatTheProgramChecksWith) {
    const Finished printed = run({ars_binary(), "check", "--agent-schema"});
    EXPECT_EQ(printed.exit_code, 0) << printed.err;
    const std::string shipped = read_text(source_directory() + "/configs/agent.schema.json");
    EXPECT_EQ(boost::json::parse(printed.out), boost::json::parse(shipped))
        << "write it anew: ars check --agent-schema > configs/agent.schema.json";
    EXPECT_EQ(run({ars_binary(), "check"}).exit_code, 2);
    EXPECT_EQ(run({ars_binary(), "check", "--agent-schema", "--config", "x"}).exit_code, 2);
}

TEST(CommandLine, ABadKeyInAnAgentStopsCheckAndServeWithItsPlaceAndARemedy) {
    const TempDir dir;
    const std::string config = dir.write("appliance.yaml", kAppliance);
    dir.write("agents/main.yaml", kBadAgent);
    for (const char* command : {"check", "serve"}) {
        const Finished done = run({ars_binary(), command, "--config", config});
        EXPECT_EQ(done.exit_code, 2) << command;
        const std::string said = done.err + done.out;
        EXPECT_NE(said.find("agents/main.yaml:6"), std::string::npos) << said;
        EXPECT_NE(said.find("modle"), std::string::npos) << said;
        EXPECT_NE(said.find("did you mean \"model\""), std::string::npos) << said;
        EXPECT_FALSE(std::filesystem::exists(dir.path() + "/data"))
            << "a refused start changes nothing";
    }
}

// Everything that the configuration names must be there: all that is missing is said at once.
TEST(CommandLine, K86AStartWithoutWhatTheConfigurationNamesFails) {
    const TempDir dir;
    const std::string config = dir.write("appliance.yaml", R"(data_dir: data
mounts: {users: data/users}
agents: ["agents/*.yaml"]
models:
  default: "a:m"
  providers:
    a: {type: openai, base_url: "http://127.0.0.1:9/v1", api_key_file: no-such-file}
    b: {type: openai, base_url: "http://127.0.0.1:9/v1", api_key_file: no-such-key}
    c: {type: scripted, scripts: "no-such-scripts/*.yaml"}
users: [{uid: alice}]
api_keys: [{name: k, uid: alice, key_env: NO_SUCH_KEY}]
webhooks: [{name: w, url: "http://127.0.0.1:9/", secret_file: no-such-secret}]
)");
    dir.write("agents/main.yaml", kGoodAgent);
    const Finished done = run({ars_binary(), "serve", "--config", config});
    EXPECT_EQ(done.exit_code, 2);
    for (const char* missing :
         {"no-such-file",
          "no-such-key",
          "models.providers.c.scripts: matches no file",
          "NO_SUCH_KEY",
          "no-such-secret"}) {
        EXPECT_NE(done.err.find(missing), std::string::npos) << missing << "\n" << done.err;
    }
    EXPECT_FALSE(std::filesystem::exists(dir.path() + "/data"));
}

TEST(CommandLine, K86AMissingConfigurationIsExitTwo) {
    const Finished done = run({ars_binary(), "serve", "--config", "/nowhere/appliance.yaml"});
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_NE(done.err.find("/nowhere/appliance.yaml"), std::string::npos) << done.err;
}

TEST(CommandLine, WithoutKeysOnlyLoopbackIsServed) {
    const TempDir dir;
    const std::string config = dir.write("appliance.yaml", kAppliance);
    dir.write("agents/main.yaml", kGoodAgent);
    dir.write("scripts/other.yaml", kScript);
    const Finished done =
        run({ars_binary(), "serve", "--config", config, "--listen", "0.0.0.0:0"},
            {},
            {},
            std::chrono::seconds(5));
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_NE(done.err.find("api_keys"), std::string::npos) << done.err;
}

TEST(CommandLine, UnknownCommandsAndOptionsAreExitTwo) {
    EXPECT_EQ(run({ars_binary(), "dance"}).exit_code, 2);
    EXPECT_EQ(run({ars_binary(), "exec", "--hoover", "--", "true"}).exit_code, 2);
    EXPECT_EQ(run({ars_binary()}).exit_code, 2);
    EXPECT_EQ(run({ars_binary(), "--help"}).exit_code, 0);
}

TEST(CommandLine, VersionNamesTheCompiler) {
    const Finished done = run({ars_binary(), "version"});
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_NE(done.out.find("compiler: "), std::string::npos);
}

TEST(CommandLine, ToolRunsABuiltInToolAsAnAgentWould) {
    const std::string arguments = "{\"command\": \"echo $((40 + 2))\"}";
    const Finished good = run({ars_binary(), "tool", "execute", arguments});
    EXPECT_EQ(good.exit_code, 0) << good.err;
    EXPECT_NE(good.out.find("42"), std::string::npos);
    const Finished missing =
        run({ars_binary(), "tool", "read_file", R"({"file_path": "nothing.txt"})"});
    EXPECT_EQ(missing.exit_code, 1);
    const Finished unknown = run({ars_binary(), "tool", "fly", "{}"});
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_NE(unknown.err.find("read_file"), std::string::npos) << unknown.err;
}

TEST(CommandLine, DoctorNamesTierAndBackend) {
    const Finished done = run({ars_binary(), "doctor", "--json"});
    const boost::json::object report = boost::json::parse(done.out).as_object();
    EXPECT_TRUE(report.contains("tier")) << done.out;
}

TEST(CommandLine, AFailedRunIsExitOne) {
    const TempDir dir;
    const std::string config = dir.write("appliance.yaml", kAppliance);
    dir.write("agents/main.yaml", kGoodAgent);
    dir.write("scripts/other.yaml", kScript);
    const TempDir state;
    const Finished done =
        run({ars_binary(), "run", "default-chatbot", "hello", "--config", config},
            {{"XDG_STATE_HOME", state.path()}});
    EXPECT_EQ(done.exit_code, 1) << done.out << done.err;
    EXPECT_TRUE(std::filesystem::exists(state.path() + "/ars/runs"));
}

}  // namespace
}  // namespace ars::tests
