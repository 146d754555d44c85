// The demo job with the shipped configuration: its answer against figures computed here on their
// own, on the command line and through a server that is killed in the middle of it.
#include "tests/support/demo_figures.hpp"
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

// sales.csv as `dev demo` makes it, in `directory`, which gem owns afterwards when we are root.
std::string make_sales(const std::string& directory) {
    const Finished made =
        run({"awk", "-f", source_directory() + "/configs/demo/make_sales.awk"}, {}, {}, 60s);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    const std::string path = directory + "/sales.csv";
    std::ofstream(path) << made.out;
    if (::geteuid() == 0) {
        EXPECT_EQ(::chown(directory.c_str(), 1000, 1000), 0);
        EXPECT_EQ(::chown(path.c_str(), 1000, 1000), 0);
    }
    return path;
}

std::string prompt() { return read_text(source_directory() + "/configs/demo/prompt.txt"); }

void expect_right_figures(const std::string& answer, const std::string& csv) {
    const DemoFigures figures = demo_figures(csv);
    EXPECT_GE(figures.rows, 49'000);
    for (const std::string& missing : figures_missing_from(answer, figures)) {
        ADD_FAILURE() << "the answer lacks " << missing << "\n" << answer;
    }
}

TEST(Demo, TheAnswerQuotesTheRightFigures) {
    const TempDir work;
    const TempDir state;
    const std::string csv = make_sales(work.path());
    const Finished done =
        run({ars_binary(),
             "run",
             "assistant",
             prompt(),
             "--config",
             source_directory() + "/configs/appliance.yaml",
             "--workdir",
             work.path()},
            {{"XDG_STATE_HOME", state.path()}});
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    const std::size_t answer = done.out.find("Answer:\n");
    ASSERT_NE(answer, std::string::npos) << done.out;
    expect_right_figures(done.out.substr(answer), csv);
    EXPECT_NE(done.out.find("scripted"), std::string::npos);
    EXPECT_NE(done.out.find("report-region.md"), std::string::npos);
    EXPECT_TRUE(fs::exists(work.path() + "/review.md"));
    const std::size_t log = done.out.find("Event log: ");
    ASSERT_NE(log, std::string::npos);
    const std::string log_path = done.out.substr(log + 11, done.out.find('\n', log) - log - 11);
    EXPECT_GT(read_text(log_path).size(), 1000U) << log_path;
}

TEST(Demo, JsonGivesTheEventsOfAllRunsAsLines) {
    const TempDir work;
    const TempDir state;
    make_sales(work.path());
    const Finished done =
        run({ars_binary(),
             "run",
             "assistant",
             prompt(),
             "--json",
             "--config",
             source_directory() + "/configs/appliance.yaml",
             "--workdir",
             work.path()},
            {{"XDG_STATE_HOME", state.path()}});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    std::set<std::string> runs;
    int ends = 0;
    std::istringstream lines(done.out);
    for (std::string line; std::getline(lines, line);) {
        const json::object event = json::parse(line).as_object();
        runs.insert(text(event, "run_id"));
        ends += event.at("event") == "end" ? 1 : 0;
    }
    EXPECT_EQ(runs.size(), 5U);
    EXPECT_EQ(ends, 5);
}

TEST(S8Demo, KilledInTheMiddleItIsTakenOverAndEndsRight) {
    Server server;
    for (const char* folder : {"agents", "scripts"}) {
        for (const auto& entry :
             fs::directory_iterator(source_directory() + "/configs/" + folder)) {
            server.write(
                std::string(folder) + "/" + entry.path().filename().string(),
                read_text(entry.path())
            );
        }
    }
    server.start();
    const HttpReply thread = http_json(
        server.port(), "POST", "/api/chat/thread", json::object{{"agent_id", "assistant"}}
    );
    ASSERT_EQ(thread.status, 200) << thread.body;
    const json::object made = thread.json().as_object();
    const std::string workdir = server.workspace("local") + "/" + text(made, "workdir_path");
    fs::create_directories(workdir);
    for (fs::path path = workdir;
         path != fs::path(server.workspace("local")).parent_path().parent_path();
         path = path.parent_path()) {
        if (::geteuid() == 0) {
            EXPECT_EQ(::chown(path.c_str(), 1000, 1000), 0);
        }
    }
    const std::string csv = make_sales(workdir);
    const HttpReply submitted = http_json(
        server.port(),
        "POST",
        "/api/agent/runs",
        json::object{
            {"agent_slug", "assistant"}, {"query", prompt()}, {"thread_id", text(made, "id")}
        }
    );
    ASSERT_EQ(submitted.status, 202) << submitted.body;
    const std::string id = text(submitted.json().as_object(), "run_id");
    const std::string target = "/api/agent/runs/" + id + "/events";
    std::vector<SseEvent> before;
    for (int restart = 0; restart < 3; ++restart) {
        std::this_thread::sleep_for(600ms);
        before = read_events(server.port(), target, {}, 3);
        server.kill();
        server.start();
    }
    const json::object result = server.wait_for_end(id, {}, 60s);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result) << server.log();
    expect_right_figures(text(result, "output"), csv);
    const std::vector<SseEvent> events = read_events(server.port(), target);
    ASSERT_GE(events.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(events[i].id, before[i].id) << "what was seen before the kill stays";
    }
    EXPECT_TRUE(ids_rise(events));
    int ends = 0;
    for (const SseEvent& event : events) {
        ends += event.type == "end" ? 1 : 0;
    }
    EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace ars::tests
