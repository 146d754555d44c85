// One parent, 64 sub-agents at once, three tool calls each in the sandbox they share: with as many
// slots as there may be and with one, however the parent waits.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <set>

namespace ars::tests {
namespace {

namespace json = boost::json;

constexpr int kChildren = 64;
constexpr int kCalls = 3;
constexpr std::chrono::milliseconds kBetweenLooks{200};  // of a parent that polls
constexpr int kTokens = 15;                              // a model call of the test server

struct Case {
    const char* tool;  // how the parent waits
    int max_concurrent;
    int max_children;
};

std::string text(const json::value& object, std::string_view key) {
    const json::value* found = object.as_object().if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

json::value object_in(const std::string& result) {
    boost::system::error_code error;
    json::value value = json::parse(result, error);
    return !error && value.is_object() ? value : json::object{};
}

// A child does one call a turn and then says which it is.
ScriptedReply child_turn(const std::string& name, std::size_t turn) {
    if (turn == kCalls) {
        return text_reply({name + " did it"});
    }
    const std::string line = name + "-" + std::to_string(turn);
    return call_reply({{line, "execute", R"({"command": "echo )" + line + R"( >> effects"})"}});
}

ScriptedReply start_all(const std::string& tool) {
    std::vector<ScriptedCall> calls;
    for (int i = 0; i < kChildren; ++i) {
        const std::string name = "child" + std::to_string(i);
        calls.push_back(
            {name, tool, R"({"subagent_slug": "helper", "description": ")" + name + R"("})"}
        );
    }
    return call_reply(calls);
}

// The parent asks for each child that it has seen no end of, until there is none.
ScriptedReply parent_turn(
    const std::string& tool, const std::vector<std::string>& results, std::size_t turn
) {
    if (turn == 0) {
        return start_all(tool == "task" ? "task" : "subagent_start");
    }
    int done = 0;
    std::vector<std::string> started;
    std::set<std::string> ended;
    for (const std::string& result : results) {
        done += result.find("did it") != std::string::npos ? 1 : 0;
        const json::value answer = object_in(result);
        const std::string id = text(answer, "run_id");
        if (answer.as_object().contains("result") && text(answer, "status") != "running") {
            ended.insert(id);
        } else if (!id.empty()) {
            started.push_back(id);
        }
    }
    std::vector<ScriptedCall> calls;
    for (const std::string& id : std::set<std::string>(started.begin(), started.end())) {
        if (!ended.contains(id)) {
            calls.push_back(
                {"t" + std::to_string(turn) + "-" + std::to_string(calls.size()),
                 tool,
                 R"({"run_id": ")" + id + R"("})"}
            );
        }
    }
    if (calls.empty()) {
        return text_reply({std::to_string(done) + " done"});
    }
    ScriptedReply reply = call_reply(calls);
    reply.delay_before_head = kBetweenLooks;
    return reply;
}

ModelServer::Handler player(const std::string& tool) {
    return [tool](const RecordedRequest& request, std::size_t) {
        std::size_t turn = 0;
        std::string asked;
        std::vector<std::string> results;
        for (const json::value& message : request.json.at("messages").as_array()) {
            const std::string role = text(message, "role");
            turn += role == "assistant" ? 1 : 0;
            if (role == "user") {
                asked = text(message, "content");
            } else if (role == "tool") {
                results.push_back(text(message, "content"));
            }
        }
        return asked.starts_with("child") ? child_turn(asked, turn)
                                          : parent_turn(tool, results, turn);
    };
}

class FanOut : public testing::TestWithParam<Case> {};

TEST_P(FanOut, S70AllChildrenEndAndNothingIsLostOrDoneTwice) {
    ModelServer model(player(GetParam().tool));
    Server server;
    server.write(
        "appliance.yaml",
        "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
        "agents: [\"agents/*.yaml\"]\nmodels:\n  default: \"main:test-model\"\n  providers:\n"
        "    main: {type: openai, base_url: \"" +
            model.base_url() +
            "\", api_key_env: OPENAI_API_KEY}\n"
            "sandbox: {tool_approval_mode: always_trust}\n"
            "runs: {max_concurrent: " +
            std::to_string(GetParam().max_concurrent) +
            ", max_children: " + std::to_string(GetParam().max_children) + "}\n"
    );
    server.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
    const auto before = std::chrono::steady_clock::now();
    const json::object run = server.submit("main", "go");
    const json::object result =
        server.wait_for_end(text(run, "run_id"), {}, std::chrono::seconds(240));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
    EXPECT_EQ(text(result, "output"), std::to_string(kChildren) + " done")
        << json::serialize(result);
    const std::map<std::string, int> effects = server.effects("local");
    EXPECT_EQ(effects.size(), std::size_t{kChildren * kCalls});
    for (const auto& [line, count] : effects) {
        EXPECT_EQ(count, 1) << line;
    }
    // S71: the parent's figures hold what its children used.
    EXPECT_EQ(
        result.at("token_usage").at("subagents").at("total_tokens").to_number<int>(),
        kChildren * (kCalls + 1) * kTokens
    ) << json::serialize(result);
    std::printf(
        "%s, %d root and %d child slots: %d children with %d tool calls each in %.2f s\n",
        GetParam().tool,
        GetParam().max_concurrent,
        GetParam().max_children,
        kChildren,
        kCalls,
        seconds.count()
    );
}

INSTANTIATE_TEST_SUITE_P(
    Waits,
    FanOut,
    testing::Values(
        Case{"task", 256, 256},
        Case{"subagent_await", 256, 256},
        Case{"subagent_await", 1, 1},
        Case{"subagent_await", 1, 2},
        Case{"task", 1, 1},
        Case{"subagent_status", 1, 1},
        Case{"subagent_status", 1, 2}
    ),
    [](const testing::TestParamInfo<Case>& info) {
        return std::string(info.param.tool) + "_" + std::to_string(info.param.max_concurrent) +
               "_" + std::to_string(info.param.max_children);
    }
);

}  // namespace
}  // namespace ars::tests
