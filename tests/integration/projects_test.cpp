// Projects: threads that work in a directory of the user's own, through the real binary.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Says where it works and what is there, and lets a sub-agent say the same.
constexpr const char* kMain = R"(agent: main
turns:
  - tool_calls:
      - {id: look, tool: execute, args: {command: "pwd; cat given.txt; echo main >> seen"}}
      - {id: help, tool: task, args: {subagent_slug: helper, description: "look"}}
  - text: "{{look}} {{help}}"
)";
constexpr const char* kHelper = R"(agent: helper
turns:
  - tool_calls: [{id: look, tool: read_file, args: {path: "given.txt"}}]
  - text: "helper: {{look}}"
)";

std::string text(const json::value& object, const char* key) {
    return std::string(object.at(key).as_string());
}

class Projects : public ::testing::Test {
  protected:
    Projects() {
        server_.write("scripts/main.yaml", kMain);
        server_.write("scripts/helper.yaml", kHelper);
        start();
    }
    // Files are there when the host was looked at.
    void start() {
        server_.start();
        while (http(server_.port(), "GET", "/api/system/ready").status != 200) {
            std::this_thread::sleep_for(5ms);
        }
    }
    [[nodiscard]] fs::path at(const std::string& path) const {
        return server_.workspace("local") + "/" + path;
    }
    void make(const std::string& parent, const std::string& name) {
        const HttpReply made = http_json(
            server_.port(),
            "POST",
            "/api/workspace/directory",
            {{"parent_path", parent}, {"name", name}}
        );
        ASSERT_EQ(made.status, 201) << made.body;
    }
    HttpReply post(
        const std::string& request_id, const std::string& name, const std::string& path
    ) {
        return http_json(
            server_.port(),
            "POST",
            "/api/projects",
            {{"request_id", request_id},
             {"name", name},
             {"workdir", {{"mode", "linked"}, {"path", path}}}}
        );
    }
    // Of an answer that is a refusal.
    static std::string code(const HttpReply& reply) {
        return text(reply.json().at("detail"), "code");
    }
    HttpReply post_thread(const std::string& project, const std::string& request_id = "t1") {
        return http_json(
            server_.port(),
            "POST",
            "/api/chat/thread",
            {{"agent_id", "main"}, {"project_id", project}, {"request_id", request_id}}
        );
    }
    json::object run_in(const std::string& thread) {
        const HttpReply sent = http_json(
            server_.port(),
            "POST",
            "/api/agent/runs",
            {{"agent_slug", "main"}, {"thread_id", thread}, {"query", "go"}}
        );
        EXPECT_EQ(sent.status, 202) << sent.body;
        return server_.wait_for_end(text(sent.json(), "run_id"));
    }

    Server server_;
};

TEST_F(Projects, K152LinksADirectoryThatIsThereAndNoOther) {
    make("/", "reports");
    make("/reports", "2024");
    const HttpReply made = post("r1", " Annual report ", "/reports/2024/");
    ASSERT_EQ(made.status, 200) << made.body;
    const json::value project = made.json();
    EXPECT_EQ(project.at("name"), "Annual report");
    EXPECT_EQ(project.at("workdir_path"), "reports/2024");
    EXPECT_EQ(project.at("directory_mode"), "linked");
    // Another one may have the same directory; the same request is the same project.
    const json::value second = post("r2", "Again", "reports/2024").json();
    EXPECT_NE(second.at("id"), project.at("id"));
    EXPECT_EQ(post("r1", "Annual report", "reports/2024").json(), project);
    EXPECT_EQ(code(post("r1", "Other", "reports/2024")), "request_id_conflict");
    EXPECT_EQ(code(post("r1", "Annual report", "reports")), "request_id_conflict");
    fs::create_directory_symlink("reports", at("link"));
    fs::create_directory_symlink("/etc", at("etc"));
    fs::create_directory_symlink("2024", at("reports/now"));
    ASSERT_EQ(http(server_.port(), "PUT", "/api/workspace/file?path=file.txt", "x").status, 201);
    for (const auto& [path, status] : std::initializer_list<std::pair<const char*, int>>{
             {"/", 400},
             {".", 400},
             {"file.txt", 400},
             {"missing", 404},
             {"/etc/ssl", 403},
             {"link", 403},
             {"link/2024", 403},
             {"etc", 403},
             {"reports/now", 403},
             {"../reports", 403},
             {"reports/../reports", 403},
             {"/home/gem/user-data/reports", 403},
             {"/home/gem/skills", 403}
         }) {
        EXPECT_EQ(post(std::string("of ") + path, "p", path).status, status) << path;
    }
    EXPECT_EQ(post("r3", "  ", "reports").status, 422);
    EXPECT_EQ(post("r3", "p", R"($'\xff')").status, 422);
    const json::object body{
        {"request_id", "r4"}, {"name", "p"}, {"workdir", {{"mode", "managed"}, {"path", "reports"}}}
    };
    EXPECT_EQ(http_json(server_.port(), "POST", "/api/projects", body).status, 422);
    server_.kill();
    start();
    EXPECT_EQ(http(server_.port(), "GET", "/api/projects").json(), (json::array{project, second}));
    // What was made once stays so, also when its directory is gone.
    EXPECT_EQ(http(server_.port(), "DELETE", "/api/workspace/file?path=reports").status, 200);
    EXPECT_EQ(post("r1", "Annual report", "reports/2024").json(), project);
}

TEST_F(Projects, K105AProjectsDirectoryIsUsedAndNeverMade) {
    make("/", "shared");
    const std::string project = text(post("r1", "Shared", "shared").json(), "id");
    ASSERT_EQ(
        http(server_.port(), "PUT", "/api/workspace/file?path=shared/given.txt", "given").status,
        201
    );
    const json::value thread = post_thread(project).json();
    const std::string id = text(thread, "id");
    EXPECT_EQ(thread.at("project_id"), project.c_str());
    EXPECT_EQ(thread.at("workdir_path"), "shared");
    EXPECT_EQ(post_thread(project).json(), thread);
    const std::string other = text(post("r2", "Same place", "shared").json(), "id");
    EXPECT_EQ(code(post_thread(other)), "thread_exists");  // the same request, another project
    EXPECT_EQ(code(post_thread("none", "t2")), "project_not_found");
    const json::value beside = post_thread(other, "t3").json();
    EXPECT_EQ(beside.at("project_id"), other.c_str());

    const json::object first = run_in(id);
    EXPECT_EQ(first.at("status"), "completed") << json::serialize(first) << server_.log();
    const std::string output = text(first, "output");
    EXPECT_NE(output.find("/home/gem/user-data/shared\ngiven"), std::string::npos) << output;
    EXPECT_NE(output.find("helper: "), std::string::npos) << output;
    EXPECT_EQ(run_in(text(beside, "id")).at("status"), "completed");
    EXPECT_EQ(read_text(at("shared/seen").string()), "main\nmain\n");
    const HttpReply fork =
        http_json(server_.port(), "POST", "/api/chat/thread/" + id + "/fork", json::object());
    ASSERT_EQ(fork.status, 200) << fork.body;
    EXPECT_EQ(fork.json().at("project_id"), project.c_str());

    // Gone: a run is taken and says what is wrong; nobody makes the directory.
    fs::rename(at("shared"), at("moved"));
    server_.kill();
    start();
    const std::string form =
        "--b\r\nContent-Disposition: form-data; name=\"thread_id\"\r\n\r\n" + id +
        "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\na\r\n--b--"
        "\r\n";
    const std::string files = "/api/viewer/filesystem/";
    EXPECT_EQ(
        http(
            server_.port(),
            "POST",
            files + "upload",
            form,
            {{"Content-Type", "multipart/form-data; boundary=b"}}
        )
            .status,
        404
    );
    EXPECT_EQ(http(server_.port(), "PUT", files + "file?path=a&thread_id=" + id, "a").status, 404);
    for (const std::string& one : {id, text(fork.json(), "id")}) {
        const json::object failed = run_in(one);
        EXPECT_EQ(failed.at("status"), "failed") << json::serialize(failed);
        EXPECT_EQ(failed.at("error").at("type"), "workdir_missing") << json::serialize(failed);
    }
    EXPECT_FALSE(fs::exists(at("shared")));
    // A link in its place is no directory of the user's own.
    fs::create_directory_symlink("moved", at("shared"));
    EXPECT_EQ(run_in(id).at("error").at("type"), "workdir_missing");
    fs::remove(at("shared"));
    fs::rename(at("moved"), at("shared"));
    EXPECT_EQ(run_in(id).at("status"), "completed");
}

}  // namespace
}  // namespace ars::tests
