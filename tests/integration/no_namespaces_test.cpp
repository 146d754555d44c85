// A host whose engine refuses namespaces: each command finds the landlock tier by itself, or says
// what it lacks.
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include <unistd.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

class NoNamespaces : public testing::Test {
  protected:
    void SetUp() override {
        const Finished done = run(without_namespaces({ars_binary(), "doctor", "--json"}));
        tier_ = std::string(json::parse(done.out).at("tier").as_string());
        if (tier_ != "landlock") {
            GTEST_SKIP() << "no landlock tier on this machine: " << done.out;
        }
        if (::geteuid() != 0 && ::access("/home/gem/user-data", X_OK) != 0) {
            GTEST_SKIP() << "the landlock tier works in /home/gem/user-data, and only root can "
                            "make that";
        }
    }
    // An agent whose one command is `script`, and whose answer is what that said.
    static void add_agent_that_runs(Server& server, const std::string& script) {
        server.write(
            "scripts/main.yaml",
            "agent: main\nturns:\n"
            "  - tool_calls: [{id: a, tool: execute, args: {command: '" +
                script + "'}}]\n  - text: \"{{a}}\"\n"
        );
    }

    std::string tier_;
};

TEST_F(NoNamespaces, ExecWorksInTheRealWorkspaceBehindLandlock) {
    const Finished done = run(without_namespaces(
        {ars_binary(), "exec", "--", "sh", "-c", "pwd; echo $TMPDIR; ls /tmp || echo closed"}
    ));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_TRUE(done.out.starts_with("/home/gem/user-data\n/tmp/ars-scope-")) << done.out;
    EXPECT_TRUE(done.out.ends_with("\nclosed\n")) << done.out;
}

TEST_F(NoNamespaces, ExecSaysWhyAnotherWorkspaceCannotBeHad) {
    const TempDir workspace;
    const Finished done = run(without_namespaces(
        {ars_binary(), "exec", "--allow-root-owner", "--workspace", workspace.path(), "--", "true"}
    ));
    EXPECT_EQ(done.exit_code, 125);
    EXPECT_NE(done.err.find("User namespaces are refused"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find("leave out --workspace"), std::string::npos) << done.err;
}

TEST_F(NoNamespaces, ToolRunsBehindLandlock) {
    const Finished done = run(without_namespaces(
        {ars_binary(), "tool", "execute", R"({"command": "echo $TMPDIR; ls /tmp || echo closed"})"}
    ));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("/tmp/ars-scope-"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("closed"), std::string::npos) << done.out;
}

TEST_F(NoNamespaces, RunWorksBehindLandlock) {
    Server files;
    add_agent_that_runs(files, "echo $TMPDIR; ls /tmp || echo closed; rmdir \"$PWD\"");
    files.write(
        "appliance.yaml",
        "agents: [\"agents/*.yaml\"]\n"
        "models: {default: \"demo:scripted\", providers: {demo: {type: scripted, scripts: "
        "\"scripts/*.yaml\"}}}\n"
        "sandbox: {tool_approval_mode: always_trust}\n"
    );
    const TempDir state;
    const Finished done = run(
        without_namespaces({ars_binary(), "run", "main", "go", "--config", files.config_path()}),
        {{"XDG_STATE_HOME", state.path()}}
    );
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    EXPECT_NE(done.out.find("/tmp/ars-scope-"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("closed"), std::string::npos) << done.out;
}

TEST_F(NoNamespaces, ServeRunsAgentsBehindLandlock) {
    Server server;
    add_agent_that_runs(
        server, "pwd; echo mine >f && cat f && rm f; echo $TMPDIR; ls /tmp || echo closed"
    );
    server.start_without_namespaces();
    const std::string run_id(server.submit("main", "go").at("run_id").as_string());
    const json::object result = server.wait_for_end(run_id);
    const std::string output(result.at("output").as_string());
    EXPECT_EQ(result.at("status").as_string(), "completed") << output;
    for (const char* const part :
         {"/home/gem/user-data/projects/", "\nmine\n", "\n/tmp/ars-scope-", "\nclosed"}) {
        EXPECT_NE(output.find(part), std::string::npos) << part << " is not in: " << output;
    }
    const json::value told = http(server.port(), "GET", "/api/system/discovery").json();
    EXPECT_EQ(told.at("sandbox").at("tier").as_string(), "landlock");
    EXPECT_EQ(server.stop(), 0) << server.log();
}

TEST_F(NoNamespaces, FilesGoInAndOutOfTheRealWorkspace) {
    Server server;
    add_agent_that_runs(server, "cat in.txt; echo made >out.txt");
    server.start_without_namespaces();
    // Before the tier is settled nobody knows where the files are.
    while (http(server.port(), "GET", "/api/system/ready").status != 200) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const json::value thread =
        http_json(server.port(), "POST", "/api/chat/thread", {{"agent_id", "main"}}).json();
    const std::string id(thread.at("id").as_string());
    const auto file = [&](const std::string& method, const std::string& name) {
        return http(
            server.port(),
            method,
            "/api/viewer/filesystem/file?thread_id=" + id + "&path=" + name,
            method == "PUT" ? "handed in" : ""
        );
    };
    EXPECT_EQ(file("PUT", "in.txt").status, 201);
    const HttpReply started = http_json(
        server.port(),
        "POST",
        "/api/agent/runs",
        {{"agent_slug", "main"}, {"thread_id", id}, {"query", "go"}}
    );
    const json::object result =
        server.wait_for_end(std::string(started.json().at("run_id").as_string()));
    EXPECT_NE(result.at("output").as_string().find("handed in"), json::string::npos);
    EXPECT_EQ(file("GET", "out.txt").body, "made\n");
    EXPECT_EQ(file("DELETE", "in.txt").status, 200);
    EXPECT_EQ(file("DELETE", "out.txt").status, 200);
    const std::string workdir(thread.at("workdir_path").as_string());
    EXPECT_TRUE(std::filesystem::remove("/home/gem/user-data/" + workdir));
}

TEST_F(NoNamespaces, ServeThatRequiresNamespacesStopsWithTheRemedy) {
    Server server;
    add_agent_that_runs(server, "true");
    server.start_without_namespaces("namespaces");
    const Finished ended = server.wait_for_exit();
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_NE(ended.err.find("sandbox.require"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("-> User namespaces are refused"), std::string::npos) << ended.err;
}

TEST_F(NoNamespaces, ServeOfSeveralUsersStopsWithTheReason) {
    Server server;
    add_agent_that_runs(server, "true");
    server.add_settings(
        "users: [{uid: ann, role: user, department: \"\"}, {uid: bob, role: user, department: "
        "\"\"}]\n"
    );
    server.start_without_namespaces();
    const Finished ended = server.wait_for_exit();
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_NE(ended.err.find("for one user"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace ars::tests
