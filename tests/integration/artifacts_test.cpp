// What agents hand over, through the real binary: presented, downloaded, saved.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <unistd.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text(const json::value& object, std::string_view key) {
    return std::string(object.at(key).as_string());
}

constexpr const char* kMake =
    R"({"command": "echo one > b.txt; echo two > a.txt; mkdir d; ln -s /etc/passwd out"})";

ScriptedReply reply_to(const RecordedRequest& request, std::size_t /*n*/) {
    const json::array& messages = request.json.as_object().at("messages").as_array();
    const auto results = std::ranges::count_if(messages, [](const json::value& message) {
        return message.at("role") == "tool";
    });
    if (request.last("user").starts_with("present")) {
        switch (results) {
            case 0:
                return call_reply({{"make", "execute", kMake}});
            case 1:
                return call_reply(
                    {{"first", "present_artifacts", R"({"filepaths": ["b.txt", "a.txt"]})"}}
                );
            case 2:
                return call_reply(
                    {{"again", "present_artifacts", R"({"filepaths": ["a.txt"]})"},
                     {"bad", "present_artifacts", R"({"filepaths": ["b.txt", "d", "out"]})"}}
                );
            case 4:
                return call_reply(
                    {{"help", "task", R"({"subagent_slug": "helper", "description": "look"})"}}
                );
            default:
                break;
        }
    }
    return text_reply({"done"});
}

bool offers(const RecordedRequest& request, std::string_view name) {
    return std::ranges::any_of(
        request.json.at("tools").as_array(),
        [name](const json::value& tool) { return text(tool.at("function"), "name") == name; }
    );
}

class Artifacts : public ::testing::Test {
  protected:
    Artifacts() : model_(reply_to) {
        server_.use_model(model_.base_url());
        server_.start();
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (http(server_.port(), "GET", "/api/system/ready").status != 200) {
            if (std::chrono::steady_clock::now() > until) {
                throw std::runtime_error("it never was ready: " + server_.log());
            }
            std::this_thread::sleep_for(5ms);
        }
        const HttpReply made =
            http_json(server_.port(), "POST", "/api/chat/thread", {{"agent_id", "main"}});
        thread_ = text(made.json(), "id");
        workdir_ = text(made.json(), "workdir_path");
        // The server makes the directory: it may be another user.
        const std::string seed = "/api/viewer/filesystem/file?path=seed&thread_id=" + thread_;
        EXPECT_EQ(http(server_.port(), "PUT", seed, "seed").status, 201);
    }
    std::string guest(const std::string& name) const {
        return "/home/gem/user-data/" + workdir_ + "/" + name;
    }
    std::string host(const std::string& name) const {
        return server_.workspace("local") + "/" + workdir_ + "/" + name;
    }
    HttpReply get(const std::string& path) const {
        return http(server_.port(), "GET", "/api/chat/thread/" + thread_ + "/artifacts" + path);
    }
    HttpReply save(const std::string& path) const {
        return http_json(
            server_.port(),
            "POST",
            "/api/chat/thread/" + thread_ + "/artifacts/save",
            {{"path", path}}
        );
    }
    static std::string content(const std::string& path) {
        std::ifstream file(path);
        return std::string(std::istreambuf_iterator<char>(file), {});
    }

    ModelServer model_;
    Server server_;
    std::string thread_;
    std::string workdir_;
};

TEST_F(Artifacts, K35PresentedOnesAreInTheStateOnceAndInOrderAndNoSubAgentPresentsAny) {
    const HttpReply started = http_json(
        server_.port(),
        "POST",
        "/api/agent/runs",
        {{"agent_slug", "main"},
         {"query", "present them"},
         {"thread_id", thread_},
         {"tool_approval_mode", "always_trust"}}
    );
    ASSERT_EQ(started.status, 202) << started.body;
    const json::object result = server_.wait_for_end(text(started.json(), "run_id"));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    const json::value state =
        http(server_.port(), "GET", "/api/chat/thread/" + thread_ + "/state").json();
    EXPECT_EQ(
        state.at("agent_state").at("artifacts"), (json::array{guest("b.txt"), guest("a.txt")})
    );
    const json::value history =
        http(server_.port(), "GET", "/api/chat/thread/" + thread_ + "/history").json();
    const json::array& calls = history.at("history").at(3).at("tool_calls").as_array();
    ASSERT_EQ(calls.size(), 2U) << json::serialize(history);
    EXPECT_EQ(calls.at(0).at("status"), "success");
    EXPECT_EQ(calls.at(1).at("status"), "error");
    EXPECT_NE(text(calls.at(1), "output").find("not_regular_file"), std::string::npos);
    EXPECT_NE(text(calls.at(1), "output").find("path_escape"), std::string::npos);
    std::size_t offered = 0;
    std::size_t others = 0;
    for (const RecordedRequest& request : model_.requests()) {
        (offers(request, "present_artifacts") ? offered : others) += 1;
    }
    EXPECT_EQ(offered, 5U) << "the root's calls";
    EXPECT_EQ(others, 1U) << "the sub-agent's";
    EXPECT_EQ(get(guest("b.txt")).body, "one\n");
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Artifacts, K151OnlyRuntimePathsInsideTheRootsAreServed) {
    std::ofstream(host("a.txt")) << "a";
    std::filesystem::create_directory(host("d"));
    std::filesystem::create_symlink("/etc/passwd", host("out"));
    EXPECT_EQ(get(guest("a.txt")).body, "a");
    EXPECT_EQ(get(guest("a.txt") + "?download").body, "a");
    EXPECT_EQ(get("/%2Fhome%2Fgem%2Fuser-data/" + workdir_ + "/a.txt").body, "a");
    // As the workspace routes name it, and what leads out.
    EXPECT_EQ(get("/a.txt").status, 403);
    EXPECT_EQ(get("/" + workdir_ + "/a.txt").status, 403);
    EXPECT_EQ(get("/etc/passwd").status, 403);
    EXPECT_EQ(get("/home/gem/user-data-not/x").status, 403);
    EXPECT_EQ(get("/home/gem/user-data/../user-data/x").status, 403);
    EXPECT_EQ(get("/home/gem/user-data/%2e%2e/user-data/x").status, 403);
    EXPECT_EQ(get(guest("out")).status, 403);
    EXPECT_EQ(get(guest("missing")).status, 404);
    EXPECT_EQ(get("/home/gem/skills/missing").status, 404);
    EXPECT_EQ(get("/").status, 404);
    EXPECT_EQ(get(guest("d")).status, 400);
    EXPECT_EQ(get("/home/gem/user-data").status, 400);
    for (const char* bad : {"a.txt", "/etc/passwd", "/home/gem/user-data/../../etc/passwd"}) {
        EXPECT_EQ(save(bad).status, 403) << bad;
    }
    EXPECT_EQ(save(guest("out")).status, 403);
    EXPECT_EQ(save(guest("d")).status, 400);
    EXPECT_EQ(save(guest("missing")).status, 404);
    EXPECT_EQ(
        http(server_.port(), "GET", "/api/chat/thread/none/artifacts" + guest("a.txt")).status, 404
    );
    // Sparse: over a GiB to read, nothing on the disk.
    std::ofstream(host("big")) << "x";
    ASSERT_EQ(::truncate(host("big").c_str(), (off_t{1} << 30U) + 1), 0);
    EXPECT_EQ(get(guest("big")).status, 413);
    EXPECT_EQ(save(guest("big")).status, 413);
    EXPECT_FALSE(std::filesystem::exists(server_.workspace("local") + "/saved_artifacts"));
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Artifacts, K151ANameIsSafeInTheHeader) {
    const std::string name = "r\r\nSet-Cookie: a=b\"; é.txt";
    std::ofstream(host(name)) << "named";
    std::string target;
    for (const char c : guest("") + name) {
        char escaped[4];
        std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(c));
        target += c == '/' ? "/" : escaped;
    }
    const HttpReply reply = get(target);
    EXPECT_EQ(reply.body, "named");
    EXPECT_EQ(
        reply.headers.at("content-disposition"),
        "attachment; filename*=UTF-8''r%0D%0ASet-Cookie%3A%20a%3Db%22%3B%20%C3%A9.txt"
    );
    EXPECT_EQ(reply.headers.count("set-cookie"), 0U);
    const HttpReply saved = save(guest(name));
    EXPECT_EQ(saved.status, 201) << saved.body;
    EXPECT_EQ(http(server_.port(), "GET", text(saved.json(), "artifact_url")).body, "named");
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Artifacts, K151ConcurrentSavesGetDistinctNamesAndAThousandAreEnough) {
    std::ofstream(host("report.tar.gz")) << std::string(3'000'000, 'x');
    constexpr int kSavers = 8;
    std::vector<std::string> paths(kSavers);
    std::vector<std::thread> savers;
    for (std::string& path : paths) {
        savers.emplace_back([&] {
            const HttpReply saved = save(guest("report.tar.gz"));
            path = saved.status == 201 ? text(saved.json(), "path") : saved.body;
        });
    }
    for (std::thread& saver : savers) {
        saver.join();
    }
    std::set<std::string> expected{"/home/gem/user-data/saved_artifacts/report.tar.gz"};
    for (int i = 1; i < kSavers; ++i) {
        expected.insert(
            "/home/gem/user-data/saved_artifacts/report.tar (" + std::to_string(i) + ").gz"
        );
    }
    EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()), expected);
    const std::string directory = server_.workspace("local") + "/saved_artifacts/";
    EXPECT_EQ(content(directory + "report.tar (7).gz"), std::string(3'000'000, 'x'));
    std::ofstream(host(".hidden")) << "h";
    save(guest(".hidden"));
    EXPECT_EQ(text(save(guest(".hidden")).json(), "name"), ".hidden (1)");
    // All names taken, the last by a link: it is kept as it is.
    std::ofstream(host("n")) << "n";
    std::ofstream(directory + "n") << "0";
    for (int i = 1; i < 1000; ++i) {
        std::ofstream(directory + "n (" + std::to_string(i) + ")") << i;
    }
    std::filesystem::create_symlink("nowhere", directory + "n (1000)");
    const HttpReply full = save(guest("n"));
    EXPECT_EQ(full.status, 409) << full.body;
    EXPECT_TRUE(std::filesystem::is_symlink(directory + "n (1000)"));
    EXPECT_EQ(content(directory + "n (1)"), "1");
    EXPECT_EQ(server_.stop(), 0);
}

}  // namespace
}  // namespace ars::tests
