// Files in and out of a thread's directory, through the real binary and beside real tools.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include <sys/stat.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Reads what was handed in, says when it is at work, waits to be told to go on, writes its result.
constexpr const char* kWorker = R"(agent: main
turns:
  - tool_calls:
      - id: work
        tool: execute
        args:
          command: "cat in.txt; ls -l in.txt | cut -c1-10; touch begun; until [ -e go ]; do sleep 0.05; done; tr a-z A-Z < in.txt > out/result.txt"
  - text: "{{work}}"
)";

std::string text(const json::value& object, const char* key) {
    return std::string(object.at(key).as_string());
}

struct Thread {
    int port;
    std::string id;

    // When the server is ready.
    explicit Thread(int server_port)
        : port(server_port),
          id(text(http_json(port, "POST", "/api/chat/thread", {{"agent_id", "main"}}).json(), "id")
          ) {
        while (http(port, "GET", "/api/system/ready").status != 200) {
            std::this_thread::sleep_for(5ms);
        }
    }

    [[nodiscard]] std::string target(const std::string& route, const std::string& path) const {
        return "/api/viewer/filesystem/" + route + "?thread_id=" + id + "&path=" + path;
    }
    [[nodiscard]] HttpReply put(const std::string& path, const std::string& bytes) const {
        return http(port, "PUT", target("file", path), bytes);
    }
    [[nodiscard]] HttpReply get(const std::string& path) const {
        return http(port, "GET", target("file", path));
    }
    [[nodiscard]] std::string start_run(const std::string& query) const {
        const HttpReply started = http_json(
            port,
            "POST",
            "/api/agent/runs",
            {{"agent_slug", "main"}, {"thread_id", id}, {"query", query}}
        );
        EXPECT_EQ(started.status, 202) << started.body;
        return text(started.json(), "run_id");
    }
    // The tree's names, when `wanted` is among them within ten seconds.
    [[nodiscard]] bool wait_for(const std::string& wanted) const {
        for (int i = 0; i < 200; ++i) {
            if (get(wanted).status == 200) {
                return true;
            }
            std::this_thread::sleep_for(50ms);
        }
        return false;
    }
};

TEST(Files, AnOrchestratorHandsInInputsAndFetchesResultsWhileARunGoesOn) {
    Server server;
    server.write("scripts/worker.yaml", kWorker);
    server.start();
    const Thread thread(server.port());
    ASSERT_EQ(thread.put("in.txt", "handed in\n").status, 201);
    const HttpReply made = http_json(
        server.port(),
        "POST",
        "/api/viewer/filesystem/directory",
        {{"thread_id", thread.id}, {"parent_path", "/"}, {"name", "out"}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string run = thread.start_run("go");
    ASSERT_TRUE(thread.wait_for("begun")) << server.log();
    // In the middle of the run: what the tool made is there, and what is put there it sees.
    EXPECT_EQ(thread.put("in.txt", "changed meanwhile\n").status, 200);
    const HttpReply tree = http(server.port(), "GET", thread.target("tree", "/"));
    EXPECT_NE(tree.body.find("\"/begun\""), std::string::npos) << tree.body;
    const std::string form = "--b\r\nContent-Disposition: form-data; name=\"thread_id\"\r\n\r\n" +
                             thread.id +
                             "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; "
                             "filename=\"go\"\r\n\r\n\r\n--b--\r\n";
    const HttpReply uploaded = http(
        server.port(),
        "POST",
        "/api/viewer/filesystem/upload",
        form,
        {{"Content-Type", "multipart/form-data; boundary=b"}}
    );
    ASSERT_EQ(uploaded.status, 201) << uploaded.body;
    const json::object result = server.wait_for_end(run);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_NE(text(result, "output").find("handed in\n-rw-------"), std::string::npos)
        << text(result, "output");
    EXPECT_EQ(thread.get("out/result.txt").body, "CHANGED MEANWHILE\n");
    EXPECT_EQ(http(server.port(), "DELETE", thread.target("file", "out")).status, 200);
    EXPECT_EQ(thread.get("out/result.txt").status, 404);
    EXPECT_EQ(server.stop(), 0);
}

TEST(Files, K150WhatAToolPlantsLeadsNobodyOut) {
    Server server;
    server.write(
        "scripts/plant.yaml",
        "agent: main\nturns:\n"
        "  - tool_calls: [{id: plant, tool: execute, args: {command: \"ln -s /etc/passwd a; ln -s "
        "../.. b; ln -s /proc/self/root c; mkfifo d; ln -s /home/gem/skills e; echo done\"}}]\n"
        "  - text: \"{{plant}}\"\n"
    );
    server.start();
    const Thread thread(server.port());
    EXPECT_EQ(server.wait_for_end(thread.start_run("go")).at("status"), "completed");
    for (const char* path : {"a", "b", "b/projects", "c/etc/passwd", "e/x"}) {
        EXPECT_EQ(thread.get(path).status, 403) << path << thread.get(path).body;
        EXPECT_EQ(http(server.port(), "GET", thread.target("tree", path)).status, 403) << path;
    }
    EXPECT_EQ(thread.put("b/x", "x").status, 403);
    EXPECT_EQ(thread.get("d").status, 400);
    EXPECT_EQ(http(server.port(), "DELETE", thread.target("file", "b")).status, 200);
    EXPECT_NE(::access(server.workspace("local").c_str(), F_OK), -1);
}

TEST(Files, K150TheWholeWorkspaceHasTheSameRoutesWithoutAThread) {
    Server server;
    server.write("scripts/worker.yaml", kWorker);
    server.start();
    const Thread thread(server.port());
    ASSERT_EQ(thread.put("in.txt", "of a thread\n").status, 201);
    const auto call = [&](const std::string& method,
                          const std::string& route,
                          const std::string& path,
                          const std::string& body = {}) {
        return http(server.port(), method, "/api/workspace/" + route + "?path=" + path, body);
    };
    const json::value found = http(server.port(), "GET", "/api/chat/thread/" + thread.id).json();
    const std::string directory = "/" + text(found, "workdir_path");
    EXPECT_EQ(call("GET", "file", directory + "/in.txt").body, "of a thread\n");
    EXPECT_EQ(call("PUT", "file", directory + "/in.txt", "changed\n").status, 200);
    EXPECT_EQ(thread.get("in.txt").body, "changed\n");
    ASSERT_EQ(call("PUT", "file", "top.txt", "of the user\n").status, 201);
    const HttpReply made = http_json(
        server.port(), "POST", "/api/workspace/directory", {{"parent_path", "/"}, {"name", "d"}}
    );
    EXPECT_EQ(made.status, 201) << made.body;
    const HttpReply uploaded = http(
        server.port(),
        "POST",
        "/api/workspace/upload?parent_path=/d",
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"up\"\r\n\r\nup\r\n--b--"
        "\r\n",
        {{"Content-Type", "multipart/form-data; boundary=b"}}
    );
    EXPECT_EQ(uploaded.status, 201) << uploaded.body;
    EXPECT_EQ(read_text(server.workspace("local") + "/d/up"), "up");
    const json::value tree = call("GET", "tree", "/").json();
    std::string url;
    for (const json::value& entry : tree.at("entries").as_array()) {
        if (entry.at("name") == "top.txt") {
            url = text(entry, "artifact_url");
        }
    }
    ASSERT_FALSE(url.empty()) << json::serialize(tree);
    EXPECT_EQ(http(server.port(), "GET", url).body, "of the user\n");
    for (const char* out : {"../x", "/home/gem/user-data/top.txt", "/home/gem/skills"}) {
        EXPECT_EQ(call("GET", "file", out).status, 403) << out;
    }
    EXPECT_EQ(call("DELETE", "file", "/").status, 400);
    EXPECT_EQ(call("DELETE", "file", "d").status, 200);
    EXPECT_EQ(call("GET", "file", "d/up").status, 404);
    // A thread's routes still need a thread.
    EXPECT_EQ(http(server.port(), "GET", "/api/viewer/filesystem/file?path=top.txt").status, 422);
}

// Megabytes travel without being gathered: the server's memory stays far below the file's size.
TEST(Files, ALargeFileIsNeverInMemory) {
    Server server;
    server.write("scripts/worker.yaml", kWorker);
    server.start();
    const Thread thread(server.port());
    const auto peak_kib = [&server] {
        std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
        std::string word;
        while (status >> word && word != "VmHWM:") {
        }
        long value = 0;
        status >> value;
        return value;
    };
    const long before = peak_kib();
    const std::string bytes(90UL << 20U, 'x');
    ASSERT_EQ(thread.put("large", bytes).status, 201);
    EXPECT_EQ(thread.get("large").body.size(), bytes.size());
    const long grown = peak_kib() - before;
    std::printf("90 MiB in and out: peak grew by %ld KiB\n", grown);
    EXPECT_LT(grown, 16 * 1024);
}

}  // namespace
}  // namespace ars::tests
