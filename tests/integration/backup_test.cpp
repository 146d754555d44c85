// `ars backup` beside a serving `ars serve`, and `ars restore` into another data_dir.
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace ars::tests {
namespace {

namespace json = boost::json;

constexpr const char* kAnswer = R"(agent: main
turns:
  - text: "the answer"
)";

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

TEST(BackupCommand, ACopyMadeWhileServingHoldsWhatWasAnswered) {
    Server server;
    server.write("scripts/answer.yaml", kAnswer);
    server.start();
    std::vector<std::string> ended;
    for (int i = 0; i < 5; ++i) {
        ended.push_back(text(server.submit("main", "go"), "run_id"));
        server.wait_for_end(ended.back());
    }
    const TempDir elsewhere;
    const std::string copy = elsewhere.path() + "/copy";
    const Finished made = run({ars_binary(), "backup", copy, "--config", server.config_path()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    // It goes on as if nothing had happened.
    server.wait_for_end(text(server.submit("main", "go on"), "run_id"));
    EXPECT_EQ(run({ars_binary(), "restore", copy, "--config", server.config_path()}).exit_code, 1);
    server.kill();

    Server second;
    second.write("scripts/answer.yaml", kAnswer);
    const Finished restored = run({ars_binary(), "restore", copy, "--data", second.data_dir()});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    second.start();
    for (const std::string& run_id : ended) {
        const json::object result = second.wait_for_end(run_id);
        EXPECT_EQ(text(result, "output"), "the answer") << json::serialize(result);
    }
}

TEST(BackupCommand, SaysWhatIsMissing) {
    const Finished nowhere = run({ars_binary(), "backup", "/tmp/ars-copy"});
    EXPECT_EQ(nowhere.exit_code, 2);
    EXPECT_NE(nowhere.err.find("--config or --data"), std::string::npos) << nowhere.err;
    const TempDir empty;
    const Finished none =
        run({ars_binary(), "backup", empty.path() + "/copy", "--data", empty.path() + "/data"});
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_NE(none.err.find(empty.path() + "/data"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace ars::tests
