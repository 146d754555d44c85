#include "server/run_dialog.hpp"

#include "base/fd.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <unistd.h>

namespace ars::server {
namespace {

namespace json = boost::json;

struct Asked {
    std::optional<json::object> answers;
    std::string shown;
};

// What the dialog makes of `interrupts` when `typed` is all that is ever typed.
Asked ask(const char* interrupts, const std::string& typed) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    const base::Fd input(ends[0]);
    {
        const base::Fd output(ends[1]);
        EXPECT_TRUE(base::write_all(output.get(), typed));
    }
    std::FILE* screen = std::tmpfile();
    Asked out;
    {
        base::asio::io_context io(1);
        RunDialog dialog(input.get(), screen);
        base::asio::co_spawn(
            io,
            dialog.ask(json::parse(interrupts).as_array()),
            [&](std::exception_ptr error, std::optional<json::object> answers) {
                EXPECT_FALSE(error);
                out.answers = std::move(answers);
            }
        );
        io.run();
    }
    std::rewind(screen);
    for (int c = std::fgetc(screen); c != EOF; c = std::fgetc(screen)) {
        out.shown += static_cast<char>(c);
    }
    std::fclose(screen);
    return out;
}

constexpr const char* kApproval =
    R"([{"id": "r:1:0", "tool_name": "execute", "arguments": {"command": "make \u001b[2J"}}])";
constexpr const char* kQuestion =
    R"([{"id": "r:1:0", "questions": [{"question_id": "q1", "question": "Which\u001b[2J?",
        "options": [{"label": "Red", "value": "r"}, {"label": "Blue", "value": "b"}],
        "multi_select": false, "allow_other": false}]}])";

TEST(RunDialog, APersonApprovesRejectsOrSaysWhyNot) {
    const Asked yes = ask(kApproval, "y\n");
    EXPECT_EQ(json::serialize(yes.answers.value()), R"({"r:1:0":{"decision":"approve"}})");
    EXPECT_NE(yes.shown.find("execute"), std::string::npos);
    EXPECT_EQ(yes.shown.find('\033'), std::string::npos) << "a model writes no escape sequences";
    for (const char* no : {"n\n", "\n", "no\n"}) {
        EXPECT_EQ(
            json::serialize(ask(kApproval, no).answers.value()),
            R"({"r:1:0":{"decision":"reject"}})"
        );
    }
    EXPECT_EQ(
        json::serialize(ask(kApproval, "too early\n").answers.value()),
        R"({"r:1:0":{"decision":"reject","reason":"too early"}})"
    );
}

TEST(RunDialog, WhatIsNoAnswerIsAskedAgain) {
    const Asked asked = ask(kQuestion, "3\ngreen\n2\n");
    EXPECT_EQ(json::serialize(asked.answers.value()), R"({"r:1:0":{"answers":{"q1":"b"}}})");
    EXPECT_EQ(asked.shown.find('\033'), std::string::npos);
}

TEST(RunDialog, TheEndOfTheInputIsNoAnswer) {
    EXPECT_FALSE(ask(kApproval, "").answers);
    EXPECT_FALSE(ask(kQuestion, "green\n").answers);
}

}  // namespace
}  // namespace ars::server
