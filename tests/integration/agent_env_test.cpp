// A user's own environment variables: every command of his runs has them, and nobody is shown their
// values: no model, no event, no history, no log.
#include "tests/support/model_script.hpp"
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kPath = "/api/user/agent-env";
constexpr const char* kToken = "tok-5f1d/c0ffee\"quoted\"";
constexpr const char* kPem = "-begin pem-\nMIIEvQIBADANBgkqhkiG\nyz\n-end of pem-\n";

std::string text(const json::value& object, const char* key) {
    return std::string(object.at(key).as_string());
}

std::string file_text(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

// One tool call of a scripted answer.
json::object call(const std::string& name, json::object arguments) {
    return {{"name", name}, {"arguments", std::move(arguments)}};
}
json::object execute(const std::string& command) { return call("execute", {{"command", command}}); }

// The answers to a message with `word` in it, turn by turn; the last one is a text.
void add_talk(json::array& rules, const std::string& word, const std::vector<json::array>& turns) {
    int turn = 0;
    for (const json::array& calls : turns) {
        rules.push_back(
            {{"match", {{"last_user_contains", word}, {"turn", ++turn}}},
             {"reply", {{"tool_calls", calls}}}}
        );
    }
    rules.push_back(
        {{"match", {{"last_user_contains", word}}}, {"reply", {{"text", "{{last_tool}}"}}}}
    );
}

class AgentEnv : public ::testing::Test {
  protected:
    void start(const json::array& rules) {
        model_ = std::make_unique<ModelServer>(handler_of_script(json::serialize(rules)));
        server_.use_model(model_->base_url());
        server_.start();
    }
    HttpReply put(const json::value& env, Headers headers = {}) {
        return http_json(server_.port(), "PUT", kPath, {{"env", env}}, std::move(headers));
    }
    json::value get(const Headers& headers = {}) {
        return http(server_.port(), "GET", kPath, {}, headers).json().at("env");
    }
    json::object ended(const json::object& run) {
        const json::object result = server_.wait_for_end(text(run, "run_id"));
        EXPECT_EQ(result.at("status"), "completed") << json::serialize(result) << server_.log();
        return result;
    }
    std::string in_workspace(const std::string& name) {
        return server_.workspace("local") + "/" + name;
    }
    void wait_for_file(const std::string& name) {
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (!std::filesystem::exists(in_workspace(name))) {
            ASSERT_LT(std::chrono::steady_clock::now(), until) << name << server_.log();
            std::this_thread::sleep_for(5ms);
        }
    }
    // Every answer that shows something of the run, its thread and its sub-agents'.
    std::string shown_of(const json::object& run) {
        std::string out;
        const auto add = [&](const std::string& path) {
            const HttpReply reply = http(server_.port(), "GET", path);
            EXPECT_EQ(reply.status, 200) << path << reply.body;
            out += reply.body + "\n";
            return reply.body;
        };
        const std::string of_run = "/api/agent/runs/" + text(run, "run_id");
        const std::string of_thread = "/api/chat/thread/" + text(run, "thread_id");
        add(of_run);
        add(of_run + "/result");
        add(of_run + "/events");
        add(of_run + "/events?verbose=false");
        add(of_thread);
        add(of_thread + "/history");
        add(of_thread + "/checkpoints");
        add("/api/chat/threads");
        const json::value state = json::parse(add(of_thread + "/state"));
        if (const auto* children =
                state.at("agent_state").as_object().if_contains("subagent_runs")) {
            for (const json::value& child : children->as_array()) {
                out += shown_of(
                    {{"run_id", child.at("run_id")}, {"thread_id", child.at("child_thread_id")}}
                );
            }
        }
        return out;
    }
    void expect_no_values(const std::string& where, const std::string& shown) {
        for (const char* part : {"tok-5f1d", "c0ffee", "begin pem", "MIIEvQIBADAN", "end of pem"}) {
            const std::size_t at = shown.find(part);
            EXPECT_EQ(at, std::string::npos)
                << where << ": " << shown.substr(at < 200 ? 0 : at - 200, 400);
        }
    }
    void expect_no_values_in_requests() {
        for (const RecordedRequest& request : model_->requests()) {
            EXPECT_EQ(request.fault, "");
            expect_no_values("model request", request.body);
        }
    }

    Server server_;
    std::unique_ptr<ModelServer> model_;
};

TEST_F(AgentEnv, K168IsReplacedWholeAndChecked) {
    start({});
    EXPECT_EQ(get(), json::object());
    const json::object first{{"A", "1"}, {"_b2", ""}};
    const HttpReply stored = put(first);
    ASSERT_EQ(stored.status, 200) << stored.body;
    EXPECT_EQ(stored.json(), (json::object{{"env", first}}));
    EXPECT_EQ(get(), first);
    EXPECT_EQ(put({{" C\t", " kept as it is "}}).status, 200);
    const json::object second{{"C", " kept as it is "}};
    EXPECT_EQ(get(), second);

    const auto refused = [&](const json::value& env, int status, const std::string& named) {
        const HttpReply reply = put(env);
        EXPECT_EQ(reply.status, status) << reply.body;
        EXPECT_NE(reply.body.find(named), std::string::npos) << reply.body;
    };
    refused({{"1A", "x"}}, 400, "1A");
    refused({{"", "x"}}, 400, "invalid_env_key");
    refused({{"A-B", "x"}}, 400, "A-B");
    refused({{std::string(129, 'A'), "x"}}, 400, "128 bytes");
    refused({{"TWICE", "x"}, {" TWICE ", "y"}}, 400, "duplicate_env_key");
    refused({{"NUMBER", 7}}, 422, "NUMBER");
    refused({{"LARGE", std::string(32'769, 'x')}}, 422, "LARGE");
    refused({{"NUL", std::string("a\0b", 3)}}, 422, "NUL");
    refused(json::array(), 422, "env");
    json::object many;
    for (int i = 0; i < 201; ++i) {
        many["V" + std::to_string(i)] = "x";
    }
    refused(many, 422, "200");
    json::object large;
    for (int i = 0; i < 5; ++i) {
        large["V" + std::to_string(i)] = std::string(32'000, 'x');
    }
    refused(large, 422, "131072");
    EXPECT_EQ(
        http_json(server_.port(), "PUT", kPath, {{"env", json::object()}, {"more", 1}}).status, 422
    );
    EXPECT_EQ(get(), second) << "what is refused changes nothing";

    many.erase("V200");
    many["V0"] = std::string(32'768, 'x');
    EXPECT_EQ(put(many).status, 200);
    server_.kill();
    server_.start();
    EXPECT_EQ(get(), many);
    EXPECT_EQ(put(json::object()).status, 200);
    EXPECT_EQ(get(), json::object());
}

TEST_F(AgentEnv, K168IsEachUsersOwn) {
    server_.add_settings(
        "users: [{uid: root, role: superadmin}, {uid: bob, role: user}]\n"
        "api_keys: [{name: a, uid: root, key_env: KEY_A}, {name: b, uid: bob, key_env: KEY_B}]\n"
    );
    server_.use_model("http://127.0.0.1:1/v1");
    server_.start({{"KEY_A", "root-has-a-secret-key"}, {"KEY_B", "bob-has-a-secret-key"}});
    const Headers root{{"Authorization", "Bearer root-has-a-secret-key"}};
    const Headers bob{{"Authorization", "Bearer bob-has-a-secret-key"}};
    for (const char* method : {"GET", "PUT"}) {
        const HttpReply reply = http(server_.port(), method, kPath, R"({"env": {}})");
        EXPECT_EQ(reply.status, 401) << reply.body;
    }
    EXPECT_EQ(put({{"A", "of bob"}}, bob).status, 200);
    EXPECT_EQ(get(root), json::object());
    EXPECT_EQ(put({{"A", "of root"}}, root).status, 200);
    EXPECT_EQ(get(bob), (json::object{{"A", "of bob"}}));
}

TEST_F(AgentEnv, K133GoesOverTheAppliancesAndUnderTheAgents) {
    server_.write("agents/main.yaml", R"(slug: main
name: Main
description: Has variables.
backend_id: ChatbotAgent
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json:
  context: {system_prompt: "You work for a test.", env: {OF_AGENT: agent}}
)");
    json::array rules;
    add_talk(
        rules,
        "look",
        {{execute("cd /home/gem/user-data; env > env; cat /proc/[0-9]*/cmdline > cmdlines")}}
    );
    start(rules);
    ASSERT_EQ(
        put({{"LANG", "user"}, {"OF_AGENT", "user"}, {"OF_USER", kToken}, {"PEM", kPem}}).status,
        200
    );
    ended(server_.submit("main", "look"));
    const std::string env = "\n" + file_text(in_workspace("env"));
    EXPECT_NE(env.find("\nLANG=user\n"), std::string::npos) << env;
    EXPECT_NE(env.find("\nOF_AGENT=agent\n"), std::string::npos) << env;
    EXPECT_NE(env.find("\nHOME=/home/gem\n"), std::string::npos) << env;
    EXPECT_NE(env.find("\nOF_USER=" + std::string(kToken) + "\n"), std::string::npos) << env;
    EXPECT_NE(env.find("\nPEM=" + std::string(kPem)), std::string::npos) << env;
    const std::string cmdlines = file_text(in_workspace("cmdlines"));
    EXPECT_NE(cmdlines.find("cmdline"), std::string::npos) << "it saw at least itself";
    expect_no_values("command lines", cmdlines);
}

// Everything a tool can say, said by tools of the run and of a sub-agent.
std::vector<json::array> every_way_out() {
    const std::string file = "/home/gem/user-data/token.txt";
    return {
        {execute("env; cd /home/gem/user-data; echo \"$TOKEN\" > token.txt; "
                 "printf %s \"$PEM\" > pem.txt"),
         execute("echo \"x${TOKEN}y\" >&2; ls \"/no/such/$TOKEN\"; exit 3")},
        {call("read_file", {{"file_path", file}}),
         call("read_file", {{"file_path", "/home/gem/user-data/pem.txt"}}),
         call(
             "grep", {{"pattern", "."}, {"path", "/home/gem/user-data"}, {"output_mode", "content"}}
         ),
         call("write_todos", {{"todos", json::array{}}})},
        {call("execute", {{"command", "echo \"$TOKEN\"; sleep 7319"}, {"wait", 1}}),
         execute("sh -c 'sleep 7319' \"$TOKEN\" & printf %s \"$TOKEN\" | sed 's/\"/\\\\\"/g'")},
        {execute("seq 1 15000; echo \"long $TOKEN\"; seq 1 15000")},
        {call("execute_output", json::object()), call("execute_kill", {{"id", "1"}})},
    };
}

TEST_F(AgentEnv, ValuesAreShownToNobody) {
    json::array rules;
    std::vector<json::array> turns = every_way_out();
    add_talk(rules, "child", turns);
    turns.push_back({call("task", {{"subagent_slug", "helper"}, {"description", "for a child"}})});
    add_talk(rules, "parent", turns);
    start(rules);
    ASSERT_EQ(put({{"TOKEN", kToken}, {"PEM", kPem}, {"SHORT", "1234567"}}).status, 200);
    const json::object run = server_.submit("main", "for a parent");
    ended(run);
    EXPECT_EQ(file_text(in_workspace("token.txt")), std::string(kToken) + "\n");
    EXPECT_EQ(file_text(in_workspace("pem.txt")), kPem);

    const std::string shown = shown_of(run);
    expect_no_values("answers", shown);
    expect_no_values_in_requests();
    EXPECT_NE(shown.find("TOKEN=[redacted:TOKEN]"), std::string::npos) << shown;
    EXPECT_NE(shown.find("x[redacted:TOKEN]y"), std::string::npos) << shown;
    EXPECT_NE(shown.find("SHORT=1234567"), std::string::npos) << shown;
    const std::string last = model_->requests().back().body;
    EXPECT_NE(last.find("[redacted:PEM]"), std::string::npos) << last;
    EXPECT_NE(last.find("/no/such/[redacted:TOKEN]"), std::string::npos) << last;
    EXPECT_NE(last.find("long [redacted:TOKEN]"), std::string::npos) << last.size();

    // The same after a kill: what is on disk holds none either.
    std::string log = server_.log();
    server_.kill();
    server_.start();
    expect_no_values("answers after a restart", shown_of(run));
    EXPECT_EQ(server_.stop(), 0);
    log += server_.log();
    expect_no_values("log", log);
}

TEST_F(AgentEnv, ARunThatIsTakenOverShowsNoneEither) {
    json::array rules;
    add_talk(
        rules,
        "work",
        {{execute("echo \"$TOKEN\"; touch /home/gem/user-data/begun; sleep 7321")},
         {execute("echo \"again $TOKEN\" | tee /home/gem/user-data/again")}}
    );
    start(rules);
    ASSERT_EQ(put({{"TOKEN", kToken}}).status, 200);
    const json::object run = server_.submit("main", "work");
    wait_for_file("begun");
    std::string log = server_.log();
    server_.kill();
    server_.start();
    ended(run);
    EXPECT_EQ(file_text(in_workspace("again")), "again " + std::string(kToken) + "\n");
    const std::string shown = shown_of(run);
    EXPECT_NE(shown.find("again [redacted:TOKEN]"), std::string::npos) << shown;
    expect_no_values("answers", shown);
    expect_no_values_in_requests();
    EXPECT_EQ(server_.stop(), 0);
    expect_no_values("log", log + server_.log());
}

// Its sub-agents too, so that nothing of the new values comes to a model that is not looked after.
TEST_F(AgentEnv, AChangeIsForTheNextRun) {
    const std::string note = "echo \"$TOKEN\" >> /home/gem/user-data/notes";
    json::array rules;
    add_talk(rules, "child", {{execute(note)}});
    add_talk(rules, "next", {{execute(note)}});
    add_talk(
        rules,
        "parent",
        {{execute(note + "; while [ ! -e /home/gem/user-data/go ]; do sleep 0.05; done")},
         {execute(note)},
         {call("task", {{"subagent_slug", "helper"}, {"description", "for a child"}})}}
    );
    start(rules);
    ASSERT_EQ(put({{"TOKEN", "the-old-one"}}).status, 200);
    const json::object run = server_.submit("main", "for a parent");
    wait_for_file("notes");
    ASSERT_EQ(put({{"TOKEN", "the-new-one"}}).status, 200);
    std::ofstream(in_workspace("go")).close();
    ended(run);
    ended(server_.submit("main", "next"));
    EXPECT_EQ(
        file_text(in_workspace("notes")), "the-old-one\nthe-old-one\nthe-old-one\nthe-new-one\n"
    );
}

}  // namespace
}  // namespace ars::tests
