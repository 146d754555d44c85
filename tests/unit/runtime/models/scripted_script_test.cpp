#include "runtime/models/scripted_script.hpp"

#include "base/digest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace ars::models {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Faults without the path of the file, or none.
std::vector<std::string> faults_of(std::string_view yaml) {
    const std::string path = ::testing::TempDir() + base::random_uuid() + ".yaml";
    std::ofstream(path) << yaml;
    const auto book = load_scripts({path});
    std::remove(path.c_str());
    std::vector<std::string> out;
    if (!book) {
        for (const std::string& line : book.error()) {
            out.push_back(line.substr(path.size() + 1));
        }
    }
    return out;
}

TEST(ScriptedScript, AFileIsReadWithItsTurnsAndTheirLines) {
    const std::string path = ::testing::TempDir() + base::random_uuid() + ".yaml";
    std::ofstream(path) << R"(agent: analyst
when: {user_contains: "by region"}
pace: 20ms
turns:
  - text: "I look."
    delay: 1s
    tool_calls:
      - {id: head, tool: execute, args: {command: "head sales.csv", timeout: 5}}
      - {id: list, tool: ls, args: {path: /}}
  - text: "It starts with {{head | line \"a\"}}."
    pace: 0ms
)";
    const auto book = load_scripts({path});
    std::remove(path.c_str());
    ASSERT_TRUE(book.has_value()) << book.error().front();
    const Script& script = (*book)->scripts().at(0);
    EXPECT_EQ(script.agent, "analyst");
    EXPECT_EQ(script.pace, 20ms);
    ASSERT_EQ(script.turns.size(), 2U);
    EXPECT_EQ(script.turns[0].delay, 1s);
    EXPECT_EQ(script.turns[0].tool_calls.at(1).tool, "ls");
    EXPECT_EQ(script.turns[0].tool_calls[0].args.at("timeout").as_int64(), 5);
    EXPECT_EQ(script.turns[1].pace, 0ms);
    EXPECT_EQ(script.turns[1].place, path + ":10");
}

TEST(ScriptedScript, EveryFaultIsReportedWithItsLine) {
    EXPECT_THAT(
        faults_of("agent: a\nturns:\n  - txt: hello\n    pace: 5\n"),
        ElementsAre(
            HasSubstr("4: turns[0].pace: must be a duration, found the number 5"),
            HasSubstr("3: turns[0].txt: unknown key; did you mean \"text\"?")
        )
    );
    EXPECT_THAT(
        faults_of("turns: []\n"), ElementsAre("1: agent: is missing", "1: turns: must not be empty")
    );
}

TEST(ScriptedScript, PlaceholdersMayOnlyNameEarlierCalls) {
    EXPECT_THAT(
        faults_of(R"(agent: a
turns:
  - text: "{{one}}"
    tool_calls:
      - {id: one, tool: execute, args: {list: ["{{two}}"]}}
      - {id: one, tool: execute}
  - tool_calls:
      - {id: one, tool: execute, args: {command: "echo {{one | shout}}"}}
  - text: ""
)"),
        ElementsAre(
            HasSubstr("3: turns[0].text: the placeholder {{one}} names no call of an earlier turn"),
            HasSubstr("5: turns[0].tool_calls[0].args.list[0]: the placeholder {{two}}"),
            HasSubstr("6: turns[0].tool_calls[1].id: another call of this script has the id \"one\""
            ),
            HasSubstr("8: turns[1].tool_calls[0].args.command: the placeholder {{one | shout}} has "
                      "the unknown"),
            HasSubstr("8: turns[1].tool_calls[0].id: another call"),
            HasSubstr("9: turns[2]: says nothing and calls nothing")
        )
    );
}

TEST(ScriptedScript, AMissingFileIsAFault) {
    const auto book = load_scripts({"/nonexistent/script.yaml"});
    ASSERT_FALSE(book.has_value());
    EXPECT_THAT(book.error(), ElementsAre(HasSubstr("/nonexistent/script.yaml")));
}

Script script(std::string agent, std::string user_contains, std::string file) {
    Script out;
    out.agent = std::move(agent);
    out.when.user_contains = std::move(user_contains);
    out.file = std::move(file);
    return out;
}

TEST(ScriptedScript, TheBestFittingScriptIsChosen) {
    const ScriptBook book({
        script("*", "", "any"),
        script("a", "", "plain"),
        script("a", "region", "region"),
        script("a", "by region", "by region"),
        script("*", "by region and month", "any, longer"),
        script("a", "", "plain again"),
    });
    EXPECT_EQ(book.find("a", "revenue by region and month")->file, "by region");
    EXPECT_EQ(book.find("a", "one region")->file, "region");
    EXPECT_EQ(book.find("a", "hello")->file, "plain");
    EXPECT_EQ(book.find("b", "hello")->file, "any");
    EXPECT_EQ(ScriptBook({script("a", "x", "")}).find("a", "hello"), nullptr);
}

}  // namespace
}  // namespace ars::models
