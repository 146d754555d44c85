// What a model does with its tools when it does it wrong, through the real streaming client.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

class ToolProtocol : public testing::Test {
  protected:
    void start() {
        server_.write(
            "appliance.yaml",
            "server: {listen: \"127.0.0.1:0\"}\ndata_dir: data\nmounts: {users: data/users}\n"
            "agents: [\"agents/*.yaml\"]\nmodels:\n  default: \"main:test-model\"\n  providers:\n"
            "    main: {type: openai, base_url: \"" +
                model_.base_url() +
                "\", api_key_env: OPENAI_API_KEY}\n"
                "sandbox: {tool_approval_mode: always_trust}\n"
        );
        server_.start({{"OPENAI_API_KEY", "a-key-for-the-test"}});
    }
    json::object finish(const std::string& query) {
        const json::object run = server_.submit("main", query);
        thread_ = std::string(run.at("thread_id").as_string());
        return server_.wait_for_end(std::string(run.at("run_id").as_string()));
    }
    void repeat(const ScriptedReply& reply, int times) {
        for (int i = 0; i < times; ++i) {
            model_.push(reply);
        }
    }
    // The text of the last result in the n-th request.
    std::string last_result(std::size_t n) { return model_.requests().at(n).last("tool"); }
    void expect_no_faults() {
        for (const RecordedRequest& request : model_.requests()) {
            EXPECT_EQ(request.fault, "") << request.body;
        }
    }

    ModelServer model_;
    Server server_;
    std::string thread_;
};

TEST_F(ToolProtocol, S46ACallThatFailsAgainAndAgainIsNoticedAndThenEndsTheRun) {
    repeat(call_reply({{"a", "read_file", R"({"file_path": "not-there"})"}}), 50);
    start();
    const json::object result = finish("go");
    EXPECT_EQ(result.at("status"), "failed") << json::serialize(result);
    EXPECT_NE(json::serialize(result).find("repeated_tool_calls"), std::string::npos);
    EXPECT_EQ(model_.requests().size(), 20U);
    EXPECT_EQ(last_result(4).find("times in a row"), std::string::npos) << last_result(4);
    EXPECT_NE(last_result(5).find("5 times in a row"), std::string::npos) << last_result(5);
    expect_no_faults();
}

TEST_F(ToolProtocol, S46ACallThatSucceedsAgainAndAgainIsNoDifferent) {
    repeat(call_reply({{"a", "execute", R"({"command": "echo same"})"}}), 8);
    model_.push(text_reply({"I see, that is all there is."}));
    start();
    const json::object result = finish("go");
    EXPECT_EQ(result.at("status"), "completed") << "told in time: " << json::serialize(result);
    EXPECT_NE(last_result(8).find("8 times in a row"), std::string::npos) << last_result(8);
    const std::string stored =
        http(server_.port(), "GET", "/api/chat/thread/" + thread_ + "/history").body;
    EXPECT_EQ(stored.find("times in a row"), std::string::npos) << "said to the model only";
}

TEST_F(ToolProtocol, S56S89AResultOfFiveMebibytesIsCutBetweenCharactersAndKeptInAFile) {
    model_.push(call_reply({{"a", "execute", R"({"command": "yes 'äöü€😀' | head -c 5242880"})"}}));
    model_.push(text_reply({"Much."}));
    start();
    EXPECT_EQ(finish("go").at("status"), "completed");
    const std::string sent = last_result(1);
    EXPECT_LT(sent.size(), 300U * 1024);
    EXPECT_NE(sent.find("outputs/"), std::string::npos) << sent.substr(sent.size() - 300);
    EXPECT_EQ(sent.find("\xEF\xBF\xBD"), std::string::npos) << "no character was cut in two";
    expect_no_faults();
}

TEST_F(ToolProtocol, S88BytesThatAreNoTextReachNobody) {
    model_.push(call_reply(
        {{"a", "execute", R"({"command": "printf 'a\\377\\376b'; printf '{\"x\": \"\\\\ud83d\"}'"})"
        }}
    ));
    model_.push(text_reply({"Odd."}));
    model_.push(text_reply({"Still here."}));
    start();
    EXPECT_EQ(finish("go").at("status"), "completed");
    EXPECT_NE(
        last_result(1).find("a\xEF\xBF\xBD\xEF\xBF\xBD"
                            "b"),
        std::string::npos
    );
    expect_no_faults();
}

}  // namespace
}  // namespace ars::tests
