// What a run was asked with is what it is served with, whatever becomes of its agent meanwhile.
#include "tests/support/model_server.hpp"
#include "tests/support/served_runs.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

json::object context(const std::string& prompt, json::array tools) {
    return {{"config_json", {{"context", {{"system_prompt", prompt}, {"tools", std::move(tools)}}}}}
    };
}

class RunConfig : public ServedRuns {};

TEST_F(RunConfig, K82IsRecordedOnceAndLaterChangesDoNotAlterIt) {
    const ModelServer model([](const RecordedRequest& request, std::size_t) {
        const json::array& messages = request.json.as_object().at("messages").as_array();
        return messages.back().as_object().at("role") == "user"
                   ? call_reply({{"hold", "execute", R"({"command": "touch begun; sleep 7212"})"}})
                   : text_reply({"done"});
    });
    server_.use_model(model.base_url());
    server_.start();
    const auto call = [&](const std::string& method, const std::string& path, json::object body) {
        const HttpReply reply = http_json(server_.port(), method, "/api/agent" + path, body);
        EXPECT_LT(reply.status, 300) << reply.body;
        return reply.json();
    };
    json::object wanted = context("The first prompt.", {"execute", "ls"});
    wanted["name"] = "changing";
    call("POST", "", wanted);
    const json::object run = server_.submit("changing", "go");
    const json::value before = record(text(run, "run_id"));
    wait_for_file(workdir(text(run, "thread_id")) + "/begun");
    call("PUT", "/changing", context("The second prompt.", {"execute", "grep"}));
    server_.kill();
    server_.start();
    const json::object result = server_.wait_for_end(text(run, "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result) << server_.log();
    const json::value after = record(text(run, "run_id"));
    EXPECT_EQ(after.at("agent_version"), 1);
    EXPECT_EQ(after.at("agent_version"), before.at("agent_version"));
    EXPECT_EQ(after.at("config_digest"), before.at("config_digest"));
    const std::vector<RecordedRequest> asked = model.requests();
    ASSERT_GE(asked.size(), 2U);
    for (const RecordedRequest& request : asked) {
        EXPECT_NE(request.last("system").find("The first prompt."), std::string::npos);
        EXPECT_EQ(request.body.find("The second prompt."), std::string::npos);
        EXPECT_NE(request.body.find("\"ls\""), std::string::npos);
        EXPECT_EQ(request.body.find("\"grep\""), std::string::npos);
    }
    // The next one is served with what the agent is by then.
    const json::object next = server_.submit("changing", "go");
    EXPECT_EQ(record(text(next, "run_id")).at("agent_version"), 2);
    ASSERT_TRUE(model.wait_for_requests(asked.size() + 1, 30s));
    const RecordedRequest last = model.requests().back();
    EXPECT_NE(last.last("system").find("The second prompt."), std::string::npos);
    EXPECT_NE(last.body.find("\"grep\""), std::string::npos);
}

}  // namespace
}  // namespace ars::tests
