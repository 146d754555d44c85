#include "tests/support/served_runs.hpp"

#include <filesystem>
#include <thread>

namespace ars::tests {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

template <class Condition>
bool comes(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(10ms);
    }
    return true;
}

}  // namespace

std::string text(const json::value& object, std::string_view key) {
    return std::string(object.as_object().at(key).as_string());
}

HttpReply ServedRuns::send(const std::string& query, json::object more) {
    more["agent_slug"] = "main";
    more["query"] = query;
    return http_json(server_.port(), "POST", "/api/agent/runs", more);
}

json::object ServedRuns::finish(const std::string& query, const std::string& thread) {
    const HttpReply sent = send(query, {{"thread_id", thread}});
    EXPECT_EQ(sent.status, 202) << sent.body;
    return server_.wait_for_end(text(sent.json(), "run_id"));
}

json::value ServedRuns::record(const std::string& run) {
    return http(server_.port(), "GET", "/api/agent/runs/" + run).json().at("run");
}

std::vector<SseEvent> ServedRuns::events(const std::string& run) {
    return read_events(server_.port(), "/api/agent/runs/" + run + "/events");
}

json::value ServedRuns::thread(const std::string& id) {
    return http(server_.port(), "GET", "/api/chat/thread/" + id).json();
}

json::array ServedRuns::history(const std::string& thread) {
    return http(server_.port(), "GET", "/api/chat/thread/" + thread + "/history")
        .json()
        .at("history")
        .as_array();
}

json::value ServedRuns::state(const std::string& thread) {
    return http(server_.port(), "GET", "/api/chat/thread/" + thread + "/state").json();
}

std::string ServedRuns::workdir(const std::string& id) {
    return server_.workspace("local") + "/" + text(thread(id), "workdir_path");
}

std::vector<std::string> ServedRuns::outputs(const std::string& thread, std::string_view tool) {
    std::vector<std::string> out;
    for (const json::value& message : history(thread)) {
        const json::value* calls = message.as_object().if_contains("tool_calls");
        for (const json::value& call : calls != nullptr ? calls->as_array() : json::array()) {
            if (tool.empty() || text(call, "name") == tool) {
                out.push_back(call.at("output").is_string() ? text(call, "output") : "");
            }
        }
    }
    return out;
}

void ServedRuns::wait_for_status(const std::string& run, std::string_view status) {
    EXPECT_TRUE(comes([&] { return text(record(run), "status") == status; }))
        << json::serialize(record(run)) << server_.log();
}

void ServedRuns::wait_for_file(const std::string& path) {
    EXPECT_TRUE(comes([&] { return std::filesystem::exists(path); })) << path << server_.log();
}

void ServedRuns::expect_no_open_calls(const std::string& thread) {
    const std::string all = json::serialize(history(thread));
    EXPECT_EQ(all.find("\"pending\""), std::string::npos) << all;
}

}  // namespace ars::tests
