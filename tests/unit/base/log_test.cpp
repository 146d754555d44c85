#include "base/log.hpp"

#include "base/fd.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ars::base {
namespace {

// What `write` logs, as lines.
template <class Write>
std::vector<std::string> lines_of(LogLevel least, Write write) {
    Pipe pipe = make_pipe().value();
    write(Log(pipe.write.get(), least));
    pipe.write.reset();
    const std::string text = read_to_end(pipe.read.get(), 1'000'000).value();
    std::vector<std::string> lines;
    std::string line;
    for (const char c : text) {
        if (c == '\n') {
            lines.push_back(std::move(line));
            line.clear();
        } else {
            line += c;
        }
    }
    EXPECT_EQ(line, "") << "the last line has no end";
    return lines;
}

TEST(Log, WritesOneJsonObjectALine) {
    const auto lines = lines_of(LogLevel::debug, [](const Log& log) {
        log.info("run_started", {{"run_id", "r-1"}, {"text", "two\nlines"}});
        log.error("store_full");
    });
    ASSERT_EQ(lines.size(), 2U);
    const auto first = boost::json::parse(lines[0]).as_object();
    EXPECT_EQ(first.at("level"), "info");
    EXPECT_EQ(first.at("event"), "run_started");
    EXPECT_EQ(first.at("run_id"), "r-1");
    EXPECT_EQ(first.at("text"), "two\nlines");
    EXPECT_EQ(first.at("time").as_string().size(), std::string("2023-11-14T22:13:20.123Z").size());
    EXPECT_EQ(boost::json::parse(lines[1]).as_object().at("level"), "error");
}

TEST(Log, HasNoSecretInAnyLine) {
    const std::string key = "sk-\"quoted\"-12345678";
    Redactor secrets;
    secrets.add("KEY", key);
    Pipe pipe = make_pipe().value();
    const Log log(pipe.write.get(), LogLevel::debug, &secrets);
    const std::string before(4090, 'x');  // the cut at 4 KiB would be inside the key
    log.error("refused", {{"reason", "the key " + key}, {"long", before + key}, {"n", 1}});
    log.info("nested", {{"list", boost::json::array{boost::json::object{{"body", key}}}}});
    pipe.write.reset();
    const std::string text = read_to_end(pipe.read.get(), 1'000'000).value();
    EXPECT_EQ(text.find("quoted"), std::string::npos) << text;
    EXPECT_EQ(text.find("sk-"), std::string::npos) << text;
    const auto first = boost::json::parse(text.substr(0, text.find('\n'))).as_object();
    EXPECT_EQ(first.at("reason"), "the key [redacted:KEY]");
    EXPECT_EQ(first.at("n"), 1);
}

TEST(Log, LeavesOutWhatIsBelowTheLeastLevel) {
    const auto log_all = [](const Log& log) {
        log.debug("a");
        log.info("b");
        log.warning("c");
        log.error("d");
    };
    EXPECT_EQ(lines_of(LogLevel::debug, log_all).size(), 4U);
    EXPECT_EQ(lines_of(LogLevel::warning, log_all).size(), 2U);
    EXPECT_EQ(lines_of(LogLevel::off, log_all).size(), 0U);
}

TEST(Log, CutsLongTextsAtFourKibibytesWithoutSplittingACharacter) {
    std::string euros;
    while (euros.size() < 10'000) {
        euros += "\xE2\x82\xAC";
    }
    const auto lines =
        lines_of(LogLevel::info, [&](const Log& log) { log.info("long", {{"text", euros}}); });
    ASSERT_EQ(lines.size(), 1U);
    const auto cut = boost::json::parse(lines[0]).as_object().at("text").as_string();
    EXPECT_EQ(cut.size(), 4095U);  // the last multiple of three up to 4096
}

TEST(Log, KeepsLinesOfSeveralThreadsWhole) {
    constexpr int kThreads = 4;
    constexpr int kLines = 50;
    const auto lines = lines_of(LogLevel::info, [](const Log& log) {
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&log, t] {
                for (int i = 0; i < kLines; ++i) {
                    log.info("tick", {{"thread", t}, {"i", i}});
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
    });
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(kThreads * kLines));
    for (const auto& line : lines) {
        EXPECT_EQ(boost::json::parse(line).as_object().at("event"), "tick");
    }
}

TEST(Log, DoesNotStopTheProgramWhenItCannotBeWritten) {
    const Log log(-1, LogLevel::debug);
    EXPECT_NO_THROW(log.error("nobody_reads_this"));
}

}  // namespace
}  // namespace ars::base
