// Runs on the real streaming client against the strict model server: what the run loop sends must
// always be a history that a strict provider takes.
#include "tests/support/model_server.hpp"
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

// A server whose default model is `model`.
void use(Server& server, const ModelServer& model) {
    server.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\n"
        "data_dir: data\n"
        "mounts: {users: data/users}\n"
        "agents: [\"agents/*.yaml\"]\n"
        "models:\n"
        "  default: \"main:test-model\"\n"
        "  providers:\n"
        "    main: {type: openai, base_url: \"" +
            model.base_url() +
            "\", api_key_env: OPENAI_API_KEY}\n"
            "sandbox: {tool_approval_mode: always_trust}\n"
    );
    server.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
}

json::object finish(Server& server, const std::string& query) {
    const json::object run = server.submit("main", query);
    return server.wait_for_end(std::string(run.at("run_id").as_string()));
}

void expect_no_faults(const ModelServer& model) {
    for (const RecordedRequest& request : model.requests()) {
        EXPECT_EQ(request.fault, "") << request.body;
    }
}

TEST(Model, ParallelToolCallsAreStreamedRunAndAnswered) {
    ModelServer model;
    model.push(call_reply(
        {{"a", "execute", R"({"command": "echo from a"})"},
         {"b", "execute", R"({"command": "echo from b"})"}},
        "Let me look."
    ));
    model.push(text_reply({"All ", "done."}));
    Server server;
    use(server, model);
    const json::object result = finish(server, "please");
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(result.at("output"), "All done.");
    expect_no_faults(model);
    const auto requests = model.requests();
    ASSERT_EQ(requests.size(), 2U);
    const json::array& messages = requests[1].json.as_object().at("messages").as_array();
    ASSERT_EQ(messages.size(), 5U);  // system, user, assistant, two results in call order
    EXPECT_NE(json::serialize(messages[3]).find("from a"), std::string::npos);
    EXPECT_NE(json::serialize(messages[4]).find("from b"), std::string::npos);
    EXPECT_EQ(server.log().find("a-key-for-the-test"), std::string::npos);
}

TEST(S48Model, RepeatedAndEmptyCallIdsStayPaired) {
    ModelServer model;
    model.push(call_reply(
        {{"", "execute", R"({"command": "echo one"})"},
         {"", "execute", R"({"command": "echo two"})"}}
    ));
    model.push(call_reply({{"call_0", "execute", R"({"command": "echo three"})"}}));
    model.push(call_reply({{"call_0", "execute", R"({"command": "echo four"})"}}));
    model.push(text_reply({"ok"}));
    Server server;
    use(server, model);
    EXPECT_EQ(finish(server, "go").at("output"), "ok");
    expect_no_faults(model);
}

TEST(S44S45Model, UnreadableArgumentsAndUnknownToolsAreErrorsThatTheModelMends) {
    ModelServer model;
    model.push(call_reply({{"a", "execute", R"([1])"}, {"b", "nope", "{}"}}));
    model.push(text_reply({"mended"}));
    Server server;
    use(server, model);
    EXPECT_EQ(finish(server, "go").at("output"), "mended");
    expect_no_faults(model);
    const std::string sent = model.requests().at(1).body;
    EXPECT_NE(sent.find("not a JSON object"), std::string::npos);
    EXPECT_NE(sent.find("The tools are:"), std::string::npos);
}

TEST(S43Model, ThreeTurnsOfOnlyMalformedCallsEndTheRunWithAReason) {
    ModelServer model;
    for (int i = 0; i < 3; ++i) {
        model.push(call_reply({{"a", "execute", "{\"a\":"}}));
    }
    Server server;
    use(server, model);
    const json::object result = finish(server, "go");
    EXPECT_EQ(result.at("status"), "failed");
    EXPECT_NE(json::serialize(result).find("malformed_tool_calls"), std::string::npos);
    EXPECT_EQ(model.requests().size(), 3U);
}

TEST(S53Model, ARefusalEndsTheRunAtOnceWithItsText) {
    ModelServer model;
    model.push(error_reply(400, R"({"error": {"message": "no such model", "type": "invalid"}})"));
    Server server;
    use(server, model);
    const json::object result = finish(server, "go");
    EXPECT_EQ(result.at("status"), "failed");
    EXPECT_NE(json::serialize(result).find("no such model"), std::string::npos);
    EXPECT_EQ(model.requests().size(), 1U);
}

TEST(Model, A500IsTriedAgain) {
    ModelServer model;
    model.push(error_reply(500, "oops"));
    model.push(text_reply({"second time lucky"}));
    Server server;
    use(server, model);
    EXPECT_EQ(finish(server, "go").at("output"), "second time lucky");
}

TEST(S33Model, ACancelledTurnLeavesAHistoryThatAStrictProviderTakes) {
    ModelServer model;
    model.push(call_reply({{"a", "execute", R"({"command": "sleep 9091"})"}}));
    model.push(text_reply({"fine"}));
    Server server;
    use(server, model);
    const json::object first = server.submit("main", "go");
    const std::string id(first.at("run_id").as_string());
    for (int i = 0; i < 500 && processes_with("9091") == 0; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    http(server.port(), "POST", "/api/agent/runs/" + id + "/cancel");
    EXPECT_EQ(server.wait_for_end(id).at("status"), "cancelled");
    const HttpReply next = http_json(
        server.port(),
        "POST",
        "/api/agent/runs",
        json::object{
            {"agent_slug", "main"}, {"query", "hello again"}, {"thread_id", first.at("thread_id")}
        }
    );
    ASSERT_EQ(next.status, 202) << next.body;
    const std::string next_id(next.json().as_object().at("run_id").as_string());
    EXPECT_EQ(server.wait_for_end(next_id).at("output"), "fine");
    expect_no_faults(model);
}

TEST(Model, ASubAgentRunsOnItsOwnHistory) {
    ModelServer model([](const RecordedRequest& request, std::size_t) {
        const std::string user = request.last("user");
        const std::string tool = request.last("tool");
        if (user == "the child's task") {
            return text_reply({"the child's answer"});
        }
        if (tool.empty()) {
            return call_reply(
                {{"t", "task", R"({"subagent_slug": "helper", "description": "the child's task"})"}}
            );
        }
        return text_reply({"got: ", tool});
    });
    Server server;
    use(server, model);
    const json::object result = finish(server, "the parent's question");
    EXPECT_NE(json::serialize(result).find("the child's answer"), std::string::npos)
        << json::serialize(result);
    for (const RecordedRequest& request : model.requests()) {
        EXPECT_EQ(request.fault, "");
        if (request.last("user") == "the child's task") {
            EXPECT_EQ(request.body.find("the parent's question"), std::string::npos);
            EXPECT_EQ(request.body.find("subagent_start"), std::string::npos) << "no nesting";
        }
    }
}

}  // namespace
}  // namespace ars::tests
