// Keys of the configuration are in no answer, no event and no line of the log, whoever quotes them.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

constexpr const char* kKey = "sk-key-\"of\"-the-provider";

std::string error_quoting(const RecordedRequest& request, const std::string& before) {
    return json::serialize(json::object{
        {"error", {{"message", before + request.header("authorization") + " is no good key"}}}
    });
}

// A provider that quotes the key it was called with: first in a stream that had begun, which is
// tried again, then in a final refusal, where the key lies on the byte at which it is cut.
ScriptedReply quoting(const RecordedRequest& request, std::size_t n) {
    return n == 0 ? raw_reply(
                        frame(chunk({{"content", "Well, "}})) + frame(error_quoting(request, ""))
                    )
                  : error_reply(401, error_quoting(request, std::string(2005, '.')));
}

TEST(Secrets, AProviderThatQuotesItsKeyTellsNobody) {
    ModelServer model(quoting);
    Server server;
    server.use_model(model.base_url(), "retries: 1, api_key_env: PROVIDER_KEY");
    server.start({{"PROVIDER_KEY", kKey}});
    const json::object run = server.submit("main", "hello");
    const std::string id(run.at("run_id").as_string());
    const json::object result = server.wait_for_end(id);
    EXPECT_EQ(result.at("status"), "failed");
    ASSERT_EQ(model.requests().size(), 2U);
    ASSERT_EQ(model.requests()[1].header("authorization"), std::string("Bearer ") + kKey);
    const std::string error = json::serialize(result.at("error"));
    EXPECT_NE(error.find("[redacted:"), std::string::npos) << error;

    const std::string path = "/api/agent/runs/" + id;
    const std::string events = http(server.port(), "GET", path + "/events").body;
    EXPECT_NE(events.find("[redacted:models.providers.demo] is no good key"), std::string::npos)
        << events;
    EXPECT_EQ(server.stop(), 0);
    const std::string log = server.log();
    EXPECT_NE(log.find("model_retry"), std::string::npos) << log;
    EXPECT_NE(log.find("run_ended"), std::string::npos) << log;
    for (const std::string& text : {error, events, log}) {
        EXPECT_EQ(text.find("sk-key"), std::string::npos) << text;
        EXPECT_EQ(text.find("-the-provider"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace ars::tests
