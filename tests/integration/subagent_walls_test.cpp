// Where a sub-agent's work ends otherwise than with a text, and what a sub-agent may not do.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

std::string text(const json::value& object, const char* key) {
    return std::string(object.at(key).as_string());
}

class SubagentWalls : public testing::Test {
  protected:
    // The run of these turns, and of a sub-agent with those, when it is over.
    void run(const std::string& parent, const std::string& child) {
        server_.write("scripts/main.yaml", "agent: main\nturns:\n" + parent);
        server_.write("scripts/helper.yaml", "agent: helper\nturns:\n" + child);
        server_.start();
        const json::object submitted = server_.submit("main", "go");
        thread_ = text(submitted, "thread_id");
        result_ = server_.wait_for_end(text(submitted, "run_id"));
        EXPECT_EQ(result_.at("status"), "completed") << json::serialize(result_);
    }
    // The calls of a thread, in order: {output, is_error, ...}.
    std::vector<json::object> calls(const std::string& thread) {
        std::vector<json::object> out;
        const json::value history =
            http(server_.port(), "GET", "/api/chat/thread/" + thread + "/history").json();
        for (const json::value& message : history.at("history").as_array()) {
            const json::value* made = message.as_object().if_contains("tool_calls");
            for (const json::value& call : made != nullptr ? made->as_array() : json::array()) {
                out.push_back(call.as_object());
            }
        }
        return out;
    }
    std::string child_thread() {
        const json::value state =
            http(server_.port(), "GET", "/api/chat/thread/" + thread_ + "/state").json();
        return text(state.at("agent_state").at("subagent_runs").at(0), "child_thread_id");
    }

    Server server_;
    std::string thread_;
    json::object result_;
};

constexpr const char* kTask =
    "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: hi}}]\n"
    "  - text: done\n";

TEST_F(SubagentWalls, K43AChildThatDelegatesIsToldThatItHasNoSuchTool) {
    run(kTask,
        "  - tool_calls:\n"
        "      - {id: t, tool: task, args: {subagent_slug: helper, description: deeper}}\n"
        "      - {id: s, tool: subagent_start, args: {subagent_slug: helper, description: x}}\n"
        "  - text: \"alone\"\n");
    const std::vector<json::object> tried = calls(child_thread());
    ASSERT_EQ(tried.size(), 2U);
    for (const json::object& call : tried) {
        EXPECT_NE(text(call, "output").find("The tools are:"), std::string::npos)
            << json::serialize(call);
    }
    const json::value threads = http(server_.port(), "GET", "/api/chat/threads").json();
    EXPECT_EQ(json::serialize(threads).find("_sub_helper_"), std::string::npos);
    EXPECT_NE(text(calls(thread_)[0], "output").find("alone"), std::string::npos);
}

TEST_F(SubagentWalls, K34AnAwaitThatIsOverSaysThatTheChildStillRuns) {
    run("  - tool_calls:\n"
        "      - {id: a, tool: subagent_start, args: {subagent_slug: helper, description: hi}}\n"
        "  - tool_calls:\n"
        "      - id: w\n"
        "        tool: subagent_await\n"
        "        args: {run_id: \"{{a.json.run_id}}\", timeout_seconds: 1}\n"
        "  - text: done\n",
        "  - {delay: 120s, text: \"late\"}\n");
    const std::vector<json::object> made = calls(thread_);
    ASSERT_EQ(made.size(), 2U);
    const json::value answer = json::parse(text(made[1], "output"));
    EXPECT_EQ(answer.at("wait_timed_out"), true) << json::serialize(answer);
    EXPECT_EQ(answer.at("status"), "running");
    EXPECT_EQ(answer.at("result").at("status"), "running") << json::serialize(answer);
}

TEST(SubagentAnswers, S66AChildWithoutAWordIsAnError) {
    ModelServer model([](const RecordedRequest& request, std::size_t n) {
        if (request.last("user") == "hi") {
            return text_reply({});
        }
        return n == 0 ? call_reply(
                            {{"a", "task", R"({"subagent_slug": "helper", "description": "hi"})"}}
                        )
                      : text_reply({"done"});
    });
    Server server;
    server.use_model(model.base_url());
    server.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
    const json::object run = server.submit("main", "go");
    server.wait_for_end(text(run, "run_id"));
    const std::string told = model.requests().back().last("tool");
    EXPECT_NE(told.find("finished without a text"), std::string::npos) << told;
    const json::value history =
        http(server.port(), "GET", "/api/chat/thread/" + text(run, "thread_id") + "/history")
            .json();
    EXPECT_NE(json::serialize(history).find("\"status\":\"error\""), std::string::npos)
        << json::serialize(history);
}

TEST_F(SubagentWalls, S59AChildsLongReportIsCutOnce) {
    run(kTask, "  - text: \"" + std::string(400 * 1024, 'x') + "\"\n");
    const std::string told = text(calls(thread_).at(0), "output");
    EXPECT_LT(told.size(), 300U * 1024);
    const std::size_t mark = told.find("large_tool_results");
    ASSERT_NE(mark, std::string::npos);
    EXPECT_EQ(told.find("large_tool_results", mark + 1), std::string::npos) << "cut twice";
}

TEST_F(SubagentWalls, S74ACancelRightAfterTheStartLeavesNoOrphan) {
    run("  - tool_calls:\n"
        "      - {id: a, tool: subagent_start, args: {subagent_slug: helper, description: hi}}\n"
        "  - tool_calls: [{id: c, tool: subagent_cancel, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - tool_calls: [{id: w, tool: subagent_await, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - text: done\n",
        "  - {delay: 120s, text: \"late\"}\n");
    const json::value answer = json::parse(text(calls(thread_).at(2), "output"));
    EXPECT_EQ(answer.at("status"), "cancelled") << json::serialize(answer);
}

}  // namespace
}  // namespace ars::tests
