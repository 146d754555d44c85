// Sub-agents as their callers see them: what the five tools answer, what is stored of a child, and
// what a cancel takes with it.
#include "tests/support/model_server.hpp"
#include "tests/support/served_runs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// A child that answers at once, one that works until it is cancelled, and one that fails.
constexpr const char* kHelper = R"(agent: helper
turns:
  - text: "helper: {{user}}"
)";
constexpr const char* kSleeper = R"(agent: helper
when: {user_contains: "sleep"}
turns:
  - tool_calls:
      - {id: nap, tool: execute, args: {command: "echo begun > begun; sleep 7283"}}
  - text: "never said"
)";
constexpr const char* kFailing = R"(agent: helper
when: {user_contains: "fail"}
turns:
  - tool_calls: [{id: look, tool: ls, args: {}}]
  - text: "{{look.json.such}}"
)";
constexpr const char* kOther = R"(slug: other
name: Other
description: Is not on the list.
backend_id: SubAgentBackend
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json: {context: {system_prompt: "You are not called."}}
)";

class Subagents : public ServedRuns {
  protected:
    Subagents() {
        server_.write("scripts/helper.yaml", kHelper);
        server_.write("scripts/sleeper.yaml", kSleeper);
        server_.write("scripts/failing.yaml", kFailing);
        server_.write("agents/other.yaml", kOther);
    }

    void start_with(const std::string& turns) {
        server_.write("scripts/main.yaml", "agent: main\nturns:\n" + turns);
        server_.start();
    }
    // A run of these turns that is over: the answer to its submission.
    json::object ended_run(const std::string& turns) {
        start_with(turns);
        json::object run = server_.submit("main", "go");
        result_ = server_.wait_for_end(text(run, "run_id"));
        return run;
    }
    // What the model was told of each call, in the order of the calls.
    std::vector<std::string> outputs(const json::object& run) {
        expect_no_open_calls(text(run, "thread_id"));
        return ServedRuns::outputs(text(run, "thread_id"));
    }
    // The only child of a run, when it is stored.
    json::value child_of(const json::object& run) {
        for (int i = 0; i < 3000; ++i) {
            const json::value found = state(text(run, "thread_id"));
            const json::array& entries = found.at("agent_state").at("subagent_runs").as_array();
            if (!entries.empty()) {
                return entries[0];
            }
            std::this_thread::sleep_for(10ms);
        }
        ADD_FAILURE() << "no child: " << server_.log();
        return {};
    }
    void wait_for_file(const json::object& run, const std::string& name) {
        ServedRuns::wait_for_file(workdir(text(run, "thread_id")) + "/" + name);
    }

    json::object result_;
};

TEST_F(Subagents, K23K49ASlugThatIsNotOnTheListStartsNothing) {
    const json::object run = ended_run(
        "  - tool_calls:\n"
        "      - {id: a, tool: task, args: {subagent_slug: other, description: x}}\n"
        "      - {id: b, tool: subagent_start, args: {subagent_slug: nobody, description: x}}\n"
        "      - {id: c, tool: subagent_start, args: {subagent_slug: main, description: x}}\n"
        "  - text: done\n"
    );
    EXPECT_EQ(result_.at("status"), "completed");
    for (const std::string& output : outputs(run)) {
        EXPECT_NE(output.find("Call one of: helper."), std::string::npos) << output;
    }
    EXPECT_TRUE(
        state(text(run, "thread_id")).at("agent_state").at("subagent_runs").as_array().empty()
    );
}

TEST_F(Subagents, K24K39K47K48ATaskRunsAChildOfTheSameUserAndScopeAndGivesItsText) {
    const json::object run = ended_run(
        "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: hi}}]\n"
        "  - text: done\n"
    );
    const json::value entry = child_of(run);
    const std::string child = text(entry, "run_id");
    const std::string thread = text(entry, "child_thread_id");
    const std::vector<std::string> told = outputs(run);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_NE(told[0].find("Sub-agent thread ID: " + thread), std::string::npos) << told[0];
    EXPECT_NE(told[0].find("helper: hi"), std::string::npos) << told[0];
    const json::value stored = record(child);
    const json::value parent = record(text(run, "run_id"));
    EXPECT_EQ(stored.at("run_type"), "subagent");
    EXPECT_EQ(stored.at("uid"), parent.at("uid"));
    EXPECT_EQ(stored.at("created_by_run_id"), run.at("run_id"));
    EXPECT_EQ(stored.at("runtime_scope_id"), run.at("thread_id"));
    EXPECT_EQ(
        stored.at("input_payload").at("tool_approval_mode"),
        parent.at("input_payload").at("tool_approval_mode")
    );
    EXPECT_EQ(text(entry, "id"), text(run, "run_id") + ":1:0");
    EXPECT_EQ(history(thread).at(0).at("content"), "hi");
    EXPECT_EQ(state(thread).at("parent_thread_id"), run.at("thread_id"));
}

TEST_F(Subagents, K26AFailedChildIsSaidSo) {
    const json::object run = ended_run(
        "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: fail}}]\n"
        "  - text: done\n"
    );
    EXPECT_EQ(result_.at("status"), "completed");
    const json::value entry = child_of(run);
    EXPECT_EQ(entry.at("status"), "failed");
    const std::string why = text(record(text(entry, "run_id")), "error_message");
    ASSERT_FALSE(why.empty());
    EXPECT_EQ(text(entry, "error"), why);
    EXPECT_NE(outputs(run)[0].find(why), std::string::npos) << outputs(run)[0];
}

TEST_F(Subagents, K28K40AThreadIsContinuedWithItsHistory) {
    const json::object run = ended_run(
        "  - tool_calls:\n"
        "      - {id: a, tool: subagent_start, args: {subagent_slug: helper, description: one}}\n"
        "  - tool_calls: [{id: w, tool: subagent_await, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - tool_calls:\n"
        "      - id: b\n"
        "        tool: subagent_start\n"
        "        args: {subagent_slug: helper, description: two, thread_id: "
        "\"{{a.json.thread_id}}\"}\n"
        "  - tool_calls: [{id: v, tool: subagent_await, args: {run_id: \"{{b.json.run_id}}\"}}]\n"
        "  - text: done\n"
    );
    ASSERT_EQ(result_.at("status"), "completed") << json::serialize(result_);
    const std::vector<std::string> told = outputs(run);
    const json::value first = json::parse(told[0]);
    const json::value second = json::parse(told[2]);
    EXPECT_EQ(first.at("continuing"), false);
    EXPECT_EQ(second.at("continuing"), true);
    EXPECT_EQ(first.at("thread_id"), second.at("thread_id"));
    EXPECT_NE(first.at("run_id"), second.at("run_id"));
    const json::array said = history(text(first, "thread_id"));
    ASSERT_EQ(said.size(), 4U);
    EXPECT_EQ(said[2].at("content"), "two");
    EXPECT_EQ(said[3].at("content"), "helper: two");
}

TEST_F(Subagents, K29K41K45AThreadThatIsNotThisConversationsIsRefusedAsText) {
    start_with(
        "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: hi}}]\n"
        "  - text: done\n"
    );
    const json::object other = server_.submit("main", "go");
    server_.wait_for_end(text(other, "run_id"));
    const std::string foreign = text(child_of(other), "child_thread_id");
    server_.kill();
    const json::object run = ended_run(
        "  - tool_calls:\n"
        "      - {id: a, tool: task, args: {subagent_slug: helper, description: x, thread_id: " +
        foreign +
        "}}\n"
        "      - {id: b, tool: task, args: {subagent_slug: helper, description: x, thread_id: " +
        text(other, "thread_id") +
        "}}\n"
        "      - {id: c, tool: subagent_start, args: {subagent_slug: helper, description: x, "
        "thread_id: none}}\n"
        "  - text: done\n"
    );
    EXPECT_EQ(result_.at("status"), "completed") << json::serialize(result_);
    for (const std::string& output : outputs(run)) {
        EXPECT_NE(output.find("This conversation has no thread"), std::string::npos) << output;
    }
    EXPECT_EQ(history(foreign).size(), 2U);
}

TEST_F(Subagents, K30K32K46StartAndStatusAnswerWithTheSameKeysAndABusyThreadSaysSo) {
    start_with(
        "  - tool_calls:\n"
        "      - {id: a, tool: subagent_start, args: {subagent_slug: helper, description: "
        "sleep}}\n"
        "  - tool_calls:\n"
        "      - {id: s, tool: subagent_status, args: {run_id: \"{{a.json.run_id}}\"}}\n"
        "      - id: b\n"
        "        tool: subagent_start\n"
        "        args: {subagent_slug: helper, description: two, thread_id: "
        "\"{{a.json.thread_id}}\"}\n"
        "  - tool_calls: [{id: c, tool: subagent_cancel, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - tool_calls: [{id: w, tool: subagent_await, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - tool_calls: [{id: t, tool: subagent_status, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - text: done\n"
    );
    const json::object run = server_.submit("main", "go");
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    ASSERT_EQ(result.at("status"), "completed") << json::serialize(result);
    const std::vector<std::string> told = outputs(run);
    ASSERT_EQ(told.size(), 6U);
    const json::value started = json::parse(told[0]);
    EXPECT_EQ(started.at("status"), "started");
    for (const char* key :
         {"run_id",
          "thread_id",
          "subagent_slug",
          "subagent_name",
          "events_url",
          "result_url",
          "created_by_run_id"}) {
        EXPECT_FALSE(text(started, key).empty()) << key;
    }
    const json::value status = json::parse(told[1]);
    EXPECT_FALSE(status.as_object().contains("result")) << told[1];
    EXPECT_TRUE(status.at("progress").as_object().contains("messages")) << told[1];
    const json::value busy = json::parse(told[2]);
    EXPECT_EQ(busy.at("status"), "busy");
    EXPECT_EQ(busy.at("active_run_id"), started.at("run_id"));
    const json::value over = json::parse(told[5]);
    EXPECT_EQ(over.at("status"), "cancelled");
    EXPECT_EQ(over.at("result").at("status"), "cancelled") << told[5];
    const json::value found = state(text(run, "thread_id"));
    const json::array& entries = found.at("agent_state").at("subagent_runs").as_array();
    ASSERT_EQ(entries.size(), 1U) << json::serialize(entries);
    EXPECT_EQ(entries[0].at("status"), "cancelled");
    EXPECT_EQ(processes_with("7283"), 0);
}

TEST_F(Subagents, K33K51ARunOfAnotherParentLooksUnknown) {
    start_with(
        "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: hi}}]\n"
        "  - text: done\n"
    );
    const json::object other = server_.submit("main", "go");
    server_.wait_for_end(text(other, "run_id"));
    const std::string foreign = text(child_of(other), "run_id");
    server_.kill();
    std::string calls;
    for (const char* tool : {"subagent_status", "subagent_await", "subagent_cancel"}) {
        for (const std::string& id : {foreign, text(other, "run_id"), std::string("nothing")}) {
            calls += "      - {id: c" + std::to_string(calls.size()) + ", tool: " + tool +
                     ", args: {run_id: \"" + id + "\"}}\n";
        }
    }
    const json::object run = ended_run("  - tool_calls:\n" + calls + "  - text: done\n");
    ASSERT_EQ(result_.at("status"), "completed") << json::serialize(result_);
    const std::vector<std::string> told = outputs(run);
    EXPECT_EQ(told.size(), 9U);
    for (const std::string& output : told) {
        EXPECT_NE(output.find("This run started no sub-agent run"), std::string::npos) << output;
    }
    EXPECT_EQ(record(foreign).at("status"), "completed");
}

TEST_F(Subagents, K66K67K117S67ACancelOfTheRootEndsEveryChild) {
    start_with(
        "  - tool_calls:\n"
        "      - {id: a, tool: task, args: {subagent_slug: helper, description: sleep}}\n"
        "      - {id: b, tool: task, args: {subagent_slug: helper, description: sleep too}}\n"
        "  - text: \"never said\"\n"
    );
    const json::object run = server_.submit("main", "go");
    const std::string id = text(run, "run_id");
    wait_for_file(run, "begun");
    const HttpReply cancelled = http(server_.port(), "POST", "/api/agent/runs/" + id + "/cancel");
    ASSERT_EQ(cancelled.status, 200) << cancelled.body;
    EXPECT_EQ(server_.wait_for_end(id).at("status"), "cancelled");
    // Both calls have one result, and every child an end.
    const std::vector<std::string> told = outputs(run);
    EXPECT_EQ(told.size(), 2U);
    std::vector<std::string> children;
    for (const SseEvent& event : read_events(server_.port(), "/api/agent/runs/" + id + "/events")) {
        const json::value& payload = event.data.at("payload");
        const json::value* name = payload.as_object().if_contains("name");
        if (name != nullptr && *name == "ars.subagent_run_update") {
            children.push_back(text(payload, "run_id"));
        }
    }
    EXPECT_FALSE(children.empty());
    for (const std::string& child : children) {
        EXPECT_EQ(server_.wait_for_end(child).at("status"), "cancelled");
        const std::vector<SseEvent> events =
            read_events(server_.port(), "/api/agent/runs/" + child + "/events");
        EXPECT_EQ(events.back().type, "end");
    }
    EXPECT_TRUE(no_process_stays_with("7283"));
}

TEST_F(Subagents, K54S68CancellingOneChildLeavesTheOtherAndTheSharedSandbox) {
    start_with(
        "  - tool_calls: [{id: m, tool: execute, args: {command: \"echo here > /tmp/mark\"}}]\n"
        "  - tool_calls:\n"
        "      - {id: a, tool: subagent_start, args: {subagent_slug: helper, description: "
        "sleep}}\n"
        "      - {id: b, tool: subagent_start, args: {subagent_slug: helper, description: hi}}\n"
        "  - tool_calls: [{id: c, tool: subagent_cancel, args: {run_id: \"{{a.json.run_id}}\"}}]\n"
        "  - tool_calls:\n"
        "      - {id: wa, tool: subagent_await, args: {run_id: \"{{a.json.run_id}}\"}}\n"
        "      - {id: wb, tool: subagent_await, args: {run_id: \"{{b.json.run_id}}\"}}\n"
        "  - tool_calls: [{id: l, tool: execute, args: {command: \"cat /tmp/mark\"}}]\n"
        "  - text: \"{{wa.json.status}} {{wb.json.status}} {{l}}\"\n"
    );
    const json::object run = server_.submit("main", "go");
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(text(result, "output").substr(0, 24), "cancelled completed here")
        << text(result, "output");
}

TEST_F(Subagents, K55AChildsTextIsInItsOwnStreamOnly) {
    const json::object run = ended_run(
        "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: hi}}]\n"
        "  - text: done\n"
    );
    const std::string child = text(child_of(run), "run_id");
    const auto said = [this](const std::string& id) {
        std::string out;
        for (const SseEvent& event :
             read_events(server_.port(), "/api/agent/runs/" + id + "/events")) {
            if (event.type == "messages") {
                out += json::serialize(event.data);
            }
        }
        return out;
    };
    EXPECT_NE(said(child).find("helper: hi"), std::string::npos);
    EXPECT_EQ(said(text(run, "run_id")).find("helper: hi"), std::string::npos);
}

TEST_F(Subagents, K56FilesAndTmpAreSharedBothWays) {
    server_.write(
        "scripts/look.yaml",
        "agent: helper\nwhen: {user_contains: \"look\"}\nturns:\n"
        "  - tool_calls: [{id: l, tool: execute, args: {command: \"cat mine /tmp/mine; echo child "
        "> yours; echo child > /tmp/yours\"}}]\n"
        "  - text: \"{{l}}\"\n"
    );
    const json::object run = ended_run(
        "  - tool_calls: [{id: m, tool: execute, args: {command: \"echo parent > mine; echo "
        "parent > /tmp/mine\"}}]\n"
        "  - tool_calls: [{id: a, tool: task, args: {subagent_slug: helper, description: look}}]\n"
        "  - tool_calls: [{id: l, tool: execute, args: {command: \"cat yours /tmp/yours\"}}]\n"
        "  - text: \"{{l}}\"\n"
    );
    const std::vector<std::string> told = outputs(run);
    ASSERT_EQ(told.size(), 3U);
    EXPECT_NE(told[1].find("parent\nparent"), std::string::npos) << told[1];
    EXPECT_NE(told[2].find("child\nchild"), std::string::npos) << told[2];
}

TEST_F(Subagents, S73LiveChildrenAloneCountAndEachHasAnEndToAwait) {
    std::string starts;
    std::string cancels;
    std::string waits;
    for (int i = 0; i < 3; ++i) {
        const std::string n = std::to_string(i);
        starts += "      - {id: s" + n +
                  ", tool: subagent_start, args: {subagent_slug: helper, description: sleep}}\n";
        cancels += "      - {id: c" + n + ", tool: subagent_cancel, args: {run_id: \"{{s" + n +
                   ".json.run_id}}\"}}\n";
        waits += "      - {id: w" + n + ", tool: subagent_await, args: {run_id: \"{{s" + n +
                 ".json.run_id}}\"}}\n";
    }
    const json::object run = ended_run(
        "  - tool_calls:\n" + starts + "  - tool_calls:\n" + cancels + "  - tool_calls:\n" + waits +
        "  - tool_calls: [{id: t, tool: task, args: {subagent_slug: helper, description: hi}}]\n"
        "  - text: \"{{w0.json.status}} {{w1.json.status}} {{w2.json.status}} {{t}}\"\n"
    );
    ASSERT_EQ(result_.at("status"), "completed") << json::serialize(result_);
    const std::string output = text(result_, "output");
    EXPECT_TRUE(output.starts_with("cancelled cancelled cancelled ")) << output;
    EXPECT_NE(output.find("helper: hi"), std::string::npos) << output;
    EXPECT_EQ(processes_with("7283"), 0);
}

// What the models are told needs a provider that keeps what it was asked.
TEST(SubagentPrompts, K22K25K37TheParentIsToldOfItsSubagentsAndAChildHasItsOwnModelAndTools) {
    const auto answer = [](const RecordedRequest& request, std::size_t) {
        const bool is_child = request.last("system").find("You help") != std::string::npos;
        if (is_child) {
            return text_reply({"found it"});
        }
        return request.last("tool").empty()
                   ? call_reply(
                         {{"a", "task", R"({"subagent_slug": "helper", "description": "look"})"}}
                     )
                   : text_reply({"done"});
    };
    ModelServer model(answer);
    Server server;
    server.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
        "agents: [\"agents/*.yaml\"]\n"
        "models:\n  default: \"main:the-default\"\n  providers:\n"
        "    main: {type: openai, base_url: \"" +
            model.base_url() +
            "\", api_key_env: OPENAI_API_KEY}\n"
            "sandbox: {tool_approval_mode: default}\n"
    );
    server.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
    const HttpReply sent = http_json(
        server.port(),
        "POST",
        "/api/agent/runs",
        json::object{{"agent_slug", "main"}, {"query", "go"}, {"model_spec", "main:the-parents"}}
    );
    ASSERT_EQ(sent.status, 202) << sent.body;
    EXPECT_EQ(server.wait_for_end(text(sent.json(), "run_id")).at("output"), "done");
    const std::vector<RecordedRequest> requests = model.requests();
    ASSERT_EQ(requests.size(), 3U);
    const auto has_tool = [](const RecordedRequest& request, std::string_view name) {
        const json::array& tools = request.json.as_object().at("tools").as_array();
        return std::ranges::any_of(tools, [name](const json::value& tool) {
            return text(tool.at("function"), "name") == name;
        });
    };
    for (const std::size_t i : {0U, 2U}) {
        EXPECT_NE(requests[i].body.find("- helper: Helps the test."), std::string::npos);
        EXPECT_EQ(requests[i].json.at("model"), "the-parents");
        EXPECT_TRUE(has_tool(requests[i], "task") && has_tool(requests[i], "execute"));
    }
    EXPECT_EQ(requests[1].json.at("model"), "the-default");
    for (const char* hidden :
         {"task", "subagent_start", "ask_user_question", "execute", "write_file", "edit_file"}) {
        EXPECT_FALSE(has_tool(requests[1], hidden)) << hidden;
    }
    EXPECT_TRUE(has_tool(requests[1], "read_file"));
}

}  // namespace
}  // namespace ars::tests
