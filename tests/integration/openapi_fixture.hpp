// A real server whose operations are called by its own document: agents, keys and a strict model
// server that does what a message asks for.
#pragma once

#include "tests/support/api_walk.hpp"
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace ars::tests {

namespace json = boost::json;
using namespace std::chrono_literals;

// What a message asks for by its first word; else it is answered.
inline ScriptedReply answer_as_asked(const RecordedRequest& request, std::size_t /*n*/) {
    const std::string user = request.last("user");
    const json::array& messages = request.json.as_object().at("messages").as_array();
    const bool first_call = messages.back().as_object().at("role") == "user";
    if (user.starts_with("fail")) {
        return error_reply(400, R"({"error":{"message":"refused by the test"}})");
    }
    if (user.starts_with("hold") && first_call) {
        return call_reply(
            {{"hold",
              "execute",
              R"({"command": "echo held >> held; until [ -e go ]; do sleep 0.02; done"})"}}
        );
    }
    if (user.starts_with("delegate") && first_call) {
        return call_reply(
            {{"plan",
              "write_todos",
              R"({"todos": [{"content": "ask the helper", "status": "in_progress"}]})"},
             {"help", "task", R"({"subagent_slug": "helper", "description": "look it up"})"}}
        );
    }
    if (user.starts_with("ask") && first_call) {
        return call_reply(
            {{"change", "execute", R"({"command": "echo changed"})"},
             {"question",
              "ask_user_question",
              R"({"questions": [{"question_id": "colour", "question": "Which?", "options": ["red", "blue"]}]})"
             }},
            "Before I go on:"
        );
    }
    return text_reply({"done: ", user});
}

inline std::string text(const json::value& value, std::string_view key) {
    return std::string(value.at(key).as_string());
}

class OpenApiFixture : public ::testing::Test {
  protected:
    OpenApiFixture() : model_(answer_as_asked) {
        server_.use_model(model_.base_url());
        server_.add_settings(
            "users: [{uid: alice, role: admin, department: a}]\n"
            "api_keys: [{name: a, uid: alice, key_env: KEY_A}]\n"
        );
        server_.start({{"KEY_A", "alice-has-a-secret-key"}});
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (http(server_.port(), "GET", "/api/system/ready").status != 200) {
            if (std::chrono::steady_clock::now() > until) {
                throw std::runtime_error("it never was ready: " + server_.log());
            }
            std::this_thread::sleep_for(5ms);
        }
        walk_ = std::make_unique<ApiWalk>(server_.port(), kAlice);
    }

    // A thread and where its tools work.
    std::string make_thread() {
        const json::value thread = walk_->call(
            {.operation = "createThread",
             .body = {{"agent_id", "main"}, {"title", "a walk"}, {"metadata", {{"k", 1}}}}}
        );
        workdir_ = server_.workspace("alice") + "/" + text(thread, "workdir_path");
        return text(thread, "id");
    }
    json::value start(const std::string& query, json::object more = {}) {
        more["agent_slug"] = "main";
        more["query"] = query;
        return walk_->call({.operation = "startRun", .body = more, .status = 202});
    }
    // The run, when it has that status; it fails loudly when it never gets there.
    json::value wait_for(const std::string& run, std::string_view status) {
        const auto until = std::chrono::steady_clock::now() + 60s;
        for (;;) {
            const json::value shown =
                walk_->call({.operation = "getRun", .path = {{"id", run}}}).at("run");
            if (text(shown, "status") == status) {
                return shown;
            }
            if (std::chrono::steady_clock::now() > until) {
                throw std::runtime_error(json::serialize(shown) + server_.log());
            }
            std::this_thread::sleep_for(10ms);
        }
    }
    json::value ended(const std::string& query, json::object more = {}) {
        json::value run = start(query, std::move(more));
        wait_for(text(run, "run_id"), query.starts_with("fail") ? "failed" : "completed");
        return run;
    }
    // A run of this thread that is inside its tool until release().
    std::string hold(const std::string& thread) {
        const json::value run = start("hold the thread", {{"thread_id", thread}});
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (!std::filesystem::exists(workdir_ + "/held")) {
            if (std::chrono::steady_clock::now() > until) {
                throw std::runtime_error("the run never held: " + server_.log());
            }
            std::this_thread::sleep_for(5ms);
        }
        return text(run, "run_id");
    }
    void release() const { std::ofstream(workdir_ + "/go") << "go"; }

    const Headers kAlice{{"Authorization", "Bearer alice-has-a-secret-key"}};
    ModelServer model_;
    Server server_;
    std::string workdir_;
    std::unique_ptr<ApiWalk> walk_;
};

}  // namespace ars::tests
