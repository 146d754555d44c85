// Files that come with messages, through the real binary, with a strict model server that shows
// what a model is told of them.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text(const json::value& object, std::string_view key) {
    return std::string(object.at(key).as_string());
}

// A tool call for the messages that ask for one, else an answer.
ScriptedReply reply_to(const RecordedRequest& request, std::size_t /*n*/) {
    const std::string user = request.last("user");
    const json::array& messages = request.json.as_object().at("messages").as_array();
    if (messages.back().as_object().at("role") == "user") {
        if (user.starts_with("cat")) {
            return call_reply({{"cat", "execute", R"({"command": "cat uploads/*/*"})"}});
        }
        if (user.starts_with("hold")) {
            return call_reply(
                {{"hold", "execute", R"({"command": "until [ -e go ]; do sleep 0.02; done"})"}}
            );
        }
        if (user.starts_with("delegate")) {
            return call_reply(
                {{"help", "task", R"({"subagent_slug": "helper", "description": "read it"})"}}
            );
        }
    }
    return text_reply({"answered: ", request.last("tool")});
}

class Attachments : public ::testing::Test {
  protected:
    Attachments() : model_(reply_to) { server_.use_model(model_.base_url()); }

    void start(const std::string& settings = {}) {
        server_.add_settings(
            "users: [{uid: alice}, {uid: bob}]\n"
            "api_keys: [{name: a, uid: alice, key_env: KEY_A}, {name: b, uid: bob, key_env: "
            "KEY_B}]\n" +
            settings
        );
        start_again();
    }
    void start_again() {
        server_.start({{"KEY_A", "alice-has-a-secret-key"}, {"KEY_B", "bob-has-a-secret-key"}});
        wait_until([this] { return get("/api/system/ready").status == 200; });
    }
    void wait_until(const std::function<bool()>& condition) {
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (!condition()) {
            if (std::chrono::steady_clock::now() > until) {
                throw std::runtime_error("it never came: " + server_.log());
            }
            std::this_thread::sleep_for(5ms);
        }
    }
    HttpReply get(const std::string& target, const Headers& who = kAlice) {
        return http(server_.port(), "GET", target, {}, who);
    }
    HttpReply post(const std::string& target, const json::value& body, Headers who = kAlice) {
        return http_json(server_.port(), "POST", target, body, std::move(who));
    }
    HttpReply send_form(const std::string& form, Headers who = kAlice) {
        who["Content-Type"] = "multipart/form-data; boundary=b";
        return http(server_.port(), "POST", "/api/chat/attachments/tmp", form + "--b--\r\n", who);
    }
    static std::string part(const std::string& name, const std::string& bytes) {
        return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name +
               "\"\r\n\r\n" + bytes + "\r\n";
    }
    // The id.
    std::string upload(
        const std::string& name, const std::string& bytes, const Headers& who = kAlice
    ) {
        const HttpReply reply = send_form(part(name, bytes), who);
        EXPECT_EQ(reply.status, 201) << reply.body;
        return text(reply.json().at("attachment"), "file_id");
    }
    json::value make_thread() { return post("/api/chat/thread", {{"agent_id", "main"}}).json(); }
    HttpReply submit(const std::string& query, const json::array& files, json::object more = {}) {
        more["agent_slug"] = "main";
        more["query"] = query;
        more["meta"] = {{"attachment_file_ids", files}};
        more["tool_approval_mode"] = "always_trust";
        return post("/api/agent/runs", more);
    }
    json::object ended(const HttpReply& submitted) {
        EXPECT_EQ(submitted.status, 202) << submitted.body;
        return server_.wait_for_end(text(submitted.json(), "run_id"), kAlice);
    }
    HttpReply confirm(
        const json::value& thread, const json::array& ids, const Headers& who = kAlice
    ) {
        return post(
            "/api/chat/thread/" + text(thread, "id") + "/attachments/confirm",
            {{"file_ids", ids}},
            who
        );
    }
    json::array listed(const std::string& thread) {
        return get("/api/chat/thread/" + thread + "/attachments")
            .json()
            .at("attachments")
            .as_array();
    }
    HttpReply remove(const std::string& thread, const std::string& id) {
        const std::string target = "/api/chat/thread/" + thread + "/attachments/" + id;
        return http(server_.port(), "DELETE", target, {}, kAlice);
    }
    std::size_t waiting_files() const {
        const std::filesystem::directory_iterator files(server_.data_dir() + "/attachments");
        return static_cast<std::size_t>(std::distance(begin(files), end(files)));
    }
    std::string host_path(const json::value& attachment) const {
        const std::string guest = text(attachment, "path");
        return server_.workspace("alice") + guest.substr(std::string("/home/gem/user-data").size());
    }
    static std::string code(const HttpReply& reply) {
        return text(reply.json().at("detail"), "code");
    }

    static inline const Headers kAlice{{"Authorization", "Bearer alice-has-a-secret-key"}};
    static inline const Headers kBob{{"Authorization", "Bearer bob-has-a-secret-key"}};
    ModelServer model_;
    Server server_;
};

TEST_F(Attachments, K106PresentOnesComeWithTheMessageAndToolsReadThem) {
    start();
    const std::string note = upload("note.txt", "remember the milk\n");
    const std::string data = upload("data.bin", std::string("\0\1\2", 3));
    EXPECT_EQ(waiting_files(), 2U);
    const HttpReply submitted = submit("cat them", {note, data});
    const json::object result = ended(submitted);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_NE(text(result, "output").find("remember the milk"), std::string::npos);
    const std::string thread = text(submitted.json(), "thread_id");
    const json::array all = listed(thread);
    ASSERT_EQ(all.size(), 2U);
    const std::string told = model_.requests().front().last("user");
    for (const json::value& one : all) {
        EXPECT_EQ(one.at("status"), "confirmed");
        EXPECT_EQ(one.at("message_ids").at(0), submitted.json().at("message_id"));
        EXPECT_TRUE(std::filesystem::exists(host_path(one))) << host_path(one);
        EXPECT_NE(told.find(text(one, "path")), std::string::npos) << told;
    }
    EXPECT_TRUE(told.starts_with("cat them\n")) << told;
    EXPECT_NE(told.find("remember the milk"), std::string::npos) << told;
    EXPECT_EQ(waiting_files(), 0U) << "their bytes are the thread's now";
    // The conversation goes on with the same words before it.
    ended(submit("and now", {}, {{"thread_id", thread}}));
    const json::value last = model_.requests().back().json;
    EXPECT_NE(json::serialize(last).find("remember the milk"), std::string::npos);
    const json::value history = get("/api/chat/thread/" + thread + "/history").json();
    EXPECT_EQ(history.at("history").at(0).at("content"), "cat them");
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, K106WhatIsMissingOrAnotherUsersIs422AndLeavesNoRequest) {
    start();
    const std::string mine = upload("mine.txt", "mine");
    const std::string bobs = upload("bobs.txt", "his", kBob);
    const json::value other = make_thread();
    const std::string elsewhere = upload("other.txt", "elsewhere");
    ASSERT_EQ(confirm(other, {elsewhere}).status, 200);
    const json::value thread = make_thread();
    const std::string id = text(thread, "id");
    int n = 0;
    const auto refused = [&](const json::array& files, const std::string& in) {
        json::object more{{"request_id", "refused-" + std::to_string(++n)}};
        if (!in.empty()) {
            more["thread_id"] = in;
        }
        const HttpReply reply = submit("say it", files, more);
        EXPECT_EQ(reply.status, 422) << reply.body;
        EXPECT_EQ(code(reply), "unknown_attachment") << reply.body;
        EXPECT_EQ(get("/api/agent/requests/" + text(more, "request_id")).status, 404);
    };
    refused({mine, "none"}, id);
    refused({mine, bobs}, id);
    refused({mine, bobs}, "");
    refused({mine, elsewhere}, id);
    // The same of a message that would wait its turn.
    const HttpReply held = submit("hold it", {}, {{"thread_id", id}});
    ASSERT_EQ(held.status, 202) << held.body;
    refused({mine, bobs}, id);
    const json::value queue = get("/api/agent/thread/" + id + "/requests?agent_slug=main").json();
    EXPECT_TRUE(queue.at("requests").as_array().empty()) << json::serialize(queue);
    EXPECT_TRUE(listed(id).empty()) << "the good one is still nobody's";
    post("/api/agent/runs/" + text(held.json(), "run_id") + "/cancel", json::object());
    server_.wait_for_end(text(held.json(), "run_id"), kAlice);
    EXPECT_EQ(ended(submit("say it", {mine}, {{"thread_id", id}})).at("status"), "completed");
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, ConfirmingTakesAllOfThemOrNone) {
    start();
    const std::string mine = upload("a file's name", "mine");
    const std::string bobs = upload("bobs.txt", "his", kBob);
    const json::value thread = make_thread();
    const HttpReply foreign = confirm(thread, {mine, bobs});
    EXPECT_EQ(foreign.status, 403) << foreign.body;
    EXPECT_EQ(code(foreign), "attachment_of_another_user");
    EXPECT_EQ(confirm(thread, {mine, "none"}).status, 404);
    EXPECT_EQ(confirm(thread, {mine, "../../etc"}).status, 404);
    EXPECT_EQ(confirm(thread, {bobs}, kBob).status, 404) << "not his thread";
    EXPECT_TRUE(listed(text(thread, "id")).empty());
    for (int i = 0; i < 2; ++i) {  // again is fine
        const HttpReply done = confirm(thread, {mine});
        EXPECT_EQ(done.status, 200) << done.body;
        std::ifstream placed(host_path(done.json().at("attachments").at(0)));
        EXPECT_EQ(std::string(std::istreambuf_iterator<char>(placed), {}), "mine");
    }
    EXPECT_EQ(confirm(make_thread(), {mine}).status, 409);
    // One that came with no message is named in the system prompt, and for sub-agents too.
    ended(submit("delegate it", {}, {{"thread_id", thread.at("id")}}));
    const std::string path = text(listed(text(thread, "id")).at(0), "path");
    std::size_t told = 0;
    for (const RecordedRequest& request : model_.requests()) {
        told += request.last("system").find(path) != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(told, 3U) << "two calls of the root and one of its sub-agent";
    const json::value state = get("/api/chat/thread/" + text(thread, "id") + "/state").json();
    const std::string child =
        text(state.at("agent_state").at("subagent_runs").at(0), "child_thread_id");
    EXPECT_EQ(listed(child), listed(text(thread, "id")));
    EXPECT_EQ(remove(child, mine).status, 409);
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, WhatIsNoUploadIsRefusedAndLeavesNothing) {
    start();
    EXPECT_EQ(send_form(part("big.bin", std::string(5U << 20U, 'x'))).status, 201);
    const HttpReply big = send_form(part("big.bin", std::string((5U << 20U) + 1, 'x')));
    EXPECT_EQ(big.status, 413) << big.body;
    EXPECT_EQ(send_form(part("a", "1") + part("b", "2")).status, 413);
    EXPECT_EQ(send_form("").status, 422);
    EXPECT_EQ(send_form(part(std::string(256, 'n'), "x")).status, 422);
    EXPECT_EQ(post("/api/chat/attachments/tmp", json::object()).status, 415);
    EXPECT_EQ(
        post(
            "/api/chat/thread", {{"agent_id", "main"}, {"metadata", {{"attachments", {}}}}}
        ).status,
        400
    );
    for (int i = 1; i < 32; ++i) {
        upload("one.txt", "1");
    }
    const HttpReply full = send_form(part("one.txt", "1"));
    EXPECT_EQ(full.status, 429) << full.body;
    EXPECT_EQ(code(full), "too_many_attachments");
    EXPECT_EQ(waiting_files(), 32U);
    upload("his.txt", "of another user", kBob);
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, ATextIsKeptTo32000Characters) {
    start();
    std::string long_text;
    for (int i = 0; i < 40'000; ++i) {
        long_text += "€";
    }
    const std::string id = upload("long.txt", long_text);
    const HttpReply parsed = post("/api/chat/attachments/tmp/parse", {{"file_id", id}});
    ASSERT_EQ(parsed.status, 200) << parsed.body;
    EXPECT_EQ(text(parsed.json(), "text").size(), 3 * 32'000U);
    EXPECT_EQ(parsed.json().at("is_cut"), true);
    EXPECT_EQ(post("/api/chat/attachments/tmp/parse", {{"file_id", id}}, kBob).status, 403);
    EXPECT_EQ(post("/api/chat/attachments/tmp/parse", {{"file_id", "none"}}).status, 404);
    const std::string binary = upload("b", std::string("a\0b", 3));
    EXPECT_EQ(post("/api/chat/attachments/tmp/parse", {{"file_id", binary}}).status, 422);
    const std::string second = upload("second.txt", "no room is left for this");
    ended(submit("say it", {id, second}));
    const std::string told = model_.requests().back().last("user");
    std::size_t euros = 0;
    for (std::size_t at = 0; (at = told.find("€", at)) != std::string::npos; ++at) {
        ++euros;
    }
    EXPECT_EQ(euros, 32'000U);
    EXPECT_EQ(told.find("no room"), std::string::npos);
    EXPECT_NE(told.find("second.txt"), std::string::npos);
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, OneThatARunOrAWaitingMessageUsesIsNotDeleted) {
    start();
    const std::string first = upload("first.txt", "1");
    const std::string second = upload("second.txt", "2");
    const HttpReply held = submit("hold it", {first});
    ASSERT_EQ(held.status, 202) << held.body;
    const std::string thread = text(held.json(), "thread_id");
    const HttpReply queued = submit("say it", {second}, {{"thread_id", thread}});
    ASSERT_EQ(text(queued.json(), "status"), "queued") << queued.body;
    EXPECT_EQ(code(remove(thread, first)), "attachment_in_use");
    EXPECT_EQ(code(remove(thread, second)), "attachment_in_use");
    post("/api/agent/runs/" + text(held.json(), "run_id") + "/cancel", json::object());
    server_.wait_for_end(text(held.json(), "run_id"), kAlice);
    const HttpReply waiting = remove(thread, second);  // its queue is paused now
    EXPECT_EQ(waiting.status, 409) << waiting.body;
    const json::array all = listed(thread);
    EXPECT_EQ(remove(thread, first).status, 200);
    EXPECT_EQ(remove(thread, first).status, 404);
    EXPECT_FALSE(std::filesystem::exists(host_path(all.at(0)))) << host_path(all.at(0));
    ASSERT_EQ(
        post("/api/agent/requests/" + text(queued.json(), "request_id") + "/cancel", json::object())
            .status,
        200
    );
    EXPECT_EQ(remove(thread, second).status, 200);
    EXPECT_TRUE(listed(thread).empty());
    EXPECT_EQ(waiting_files(), 0U) << "it was never put in its place";
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, AnUploadSurvivesKill9AndAForkShowsIt) {
    start();
    const std::string id = upload("note.txt", "it was accepted\n");
    const std::string forgotten = upload("forgotten.txt", "nobody asks");
    server_.kill();
    std::ofstream(server_.data_dir() + "/attachments/of-a-killed-upload") << "no record";
    start_again();
    EXPECT_EQ(waiting_files(), 2U) << "what has no record goes at the boot";
    const HttpReply submitted = submit("cat it", {id});
    const json::object result = ended(submitted);
    EXPECT_NE(text(result, "output").find("it was accepted"), std::string::npos);
    const std::string thread = text(submitted.json(), "thread_id");
    const HttpReply forked = post("/api/chat/thread/" + thread + "/fork", json::object());
    ASSERT_EQ(forked.status, 200) << forked.body;
    const std::string fork = text(forked.json(), "id");
    ended(submit("and now", {}, {{"thread_id", fork}}));
    EXPECT_NE(
        json::serialize(model_.requests().back().json).find("it was accepted"), std::string::npos
    );
    // A fork's is the origin's file.
    const json::array copies = listed(fork);
    ASSERT_EQ(copies.size(), 1U);
    EXPECT_EQ(remove(fork, text(copies.at(0), "file_id")).status, 200);
    EXPECT_TRUE(std::filesystem::exists(host_path(copies.at(0))));
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Attachments, WhatNobodyTakesExpiresAlsoAcrossAKill) {
    start("runs: {attachment_expiry: 1s}\n");
    const std::string id = upload("one.txt", "1");
    server_.kill();
    start_again();
    wait_until([this] { return waiting_files() == 0; });
    EXPECT_EQ(confirm(make_thread(), {id}).status, 404);
    EXPECT_EQ(code(submit("say it", {id})), "unknown_attachment");
    EXPECT_EQ(server_.stop(), 0);
}

}  // namespace
}  // namespace ars::tests
