// SIGKILL right before and right after every durable write of a run, of a dialog with a person, of
// a queue, of a webhook, of a fork and of a deletion. See failpoint_fixture.hpp for how.
#include "tests/integration/failpoint_fixture.hpp"
#include "tests/support/model_server.hpp"

#include <fstream>
#include <optional>
#include <set>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

class Failpoints : public testing::TestWithParam<const char*> {
  protected:
    template <class T>
    void tell(unsigned long fewest_points) {
        tell_at_every_commit<T>(GetParam(), fewest_points);
    }
};

// R3: tools of every kind, and sub-agents that are waited for in both ways.
class RunStory : public Story {
  public:
    // Effects of all tellings that nobody can be sure of.
    static inline int unsure = 0;

    void set_up(Server& server) override {
        server.write("scripts/main.yaml", R"(agent: main
turns:
  - tool_calls:
      - {id: one, tool: execute, args: {command: "echo one >> effects"}}
      - {id: todo, tool: write_todos, args: {todos: [{content: "count", status: "pending"}]}}
      - {id: look, tool: ls, args: {}}
      - {id: write, tool: write_file, args: {file_path: made, content: "made once"}}
  - tool_calls:
      - {id: ask, tool: task, args: {subagent_slug: helper, description: "ask"}}
      - {id: start, tool: subagent_start, args: {subagent_slug: helper, description: "start"}}
  - tool_calls:
      - {id: wait, tool: subagent_await, args: {run_id: "{{start.json.run_id}}"}}
  - text: "counted"
)");
        server.write("scripts/helper.yaml", R"(agent: helper
turns:
  - tool_calls: [{id: count, tool: execute, args: {command: "echo {{user}} >> effects"}}]
  - text: "helped"
)");
    }
    void tell(Server& server) override {
        run_ = server.submit("main", "go", {{"Idempotency-Key", "the-one-run"}});
        result_ = server.wait_for_end(text(run_, "run_id"));
    }
    void check(Server& server) override {
        EXPECT_EQ(result_.at("status"), "completed") << json::serialize(result_);
        EXPECT_EQ(result_.at("output"), "counted") << json::serialize(result_);
        expect_closed_log(server, text(run_, "run_id"));
        expect_whole(server, text(run_, "thread_id"));
        for (const object& call : calls(server, text(run_, "thread_id"))) {
            const bool answered_for =
                text(call, "output").find("may have happened") != std::string::npos;
            unsure += answered_for ? 1 : 0;
            EXPECT_TRUE(call.at("name") == "execute" || call.at("status") == "success")
                << "it could be run again: " << json::serialize(call);
        }
    }

  private:
    object run_;
    object result_;
};

// R1: a parent that ends while its child is at work.
class ParentStory : public Story {
  public:
    void set_up(Server& server) override {
        server.write("scripts/main.yaml", R"(agent: main
turns:
  - tool_calls:
      - {id: start, tool: subagent_start, args: {subagent_slug: helper, description: "start"}}
  - text: "left"
)");
        server.write("scripts/helper.yaml", R"(agent: helper
turns:
  - tool_calls: [{id: nap, tool: execute, args: {command: "echo began >> effects; sleep 7207"}}]
  - tool_calls: [{id: after_a_restart, tool: execute, args: {command: "sleep 7207"}}]
  - text: "never said"
)");
    }
    void tell(Server& server) override {
        run_ = server.submit("main", "go", {{"Idempotency-Key", "leaves"}});
        result_ = server.wait_for_end(text(run_, "run_id"));
        const json::value state =
            get(server, "/api/chat/thread/" + text(run_, "thread_id") + "/state").json();
        const json::array& children = state.at("agent_state").at("subagent_runs").as_array();
        ASSERT_EQ(children.size(), 1U) << json::serialize(state);
        child_ = text(children[0].as_object(), "run_id");
        child_result_ = server.wait_for_end(child_);
    }
    void check(Server& server) override {
        EXPECT_EQ(result_.at("output"), "left") << json::serialize(result_);
        EXPECT_EQ(child_result_.at("status"), "cancelled") << json::serialize(child_result_);
        expect_closed_log(server, text(run_, "run_id"));
        expect_closed_log(server, child_);
        expect_whole(server, text(view(server, child_), "thread_id"));
        EXPECT_TRUE(no_process_stays_with("sleep 7207"));
    }

  private:
    object run_;
    object result_;
    std::string child_;
    object child_result_;
};

// A question and two calls to approve, decided in two steps.
class DialogStory : public Story {
  public:
    void set_up(Server& server) override {
        server.write("scripts/main.yaml", R"(agent: main
turns:
  - text: "May I?"
    tool_calls:
      - {id: look, tool: ls, args: {}}
      - {id: one, tool: execute, args: {command: "echo one >> effects"}}
      - {id: two, tool: execute, args: {command: "echo two >> effects"}}
      - id: ask
        tool: ask_user_question
        args: {questions: [{question_id: colour, question: "Which?", options: [red, blue]}]}
  - text: "decided"
)");
        server.write(
            "agents/main.yaml",
            "slug: main\nname: Main\ndescription: Asks before it acts.\nbackend_id: ChatbotAgent\n"
            "share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}\n"
            "config_json:\n  context: {system_prompt: \"Ask.\", tool_approval_mode: default}\n"
        );
    }
    void tell(Server& server) override {
        first_ = server.submit("main", "go", {{"Idempotency-Key", "asks"}});
        const std::string first = text(first_, "run_id");
        wait_until(server, [&] { return view(server, first).at("status") == "interrupted"; });
        if (open_.empty()) {
            open_ = view(server, first).at("interrupts").as_array();
        }
        ASSERT_EQ(open_.size(), 3U) << json::serialize(open_);
        const std::string second = answer(server, first, "answer-1", {open_[0]});
        wait_until(server, [&] { return view(server, second).at("status") == "interrupted"; });
        last_ = answer(server, second, "answer-2", {open_[1], open_[2]});
        result_ = server.wait_for_end(last_);
        between_ = second;
    }
    void check(Server& server) override {
        EXPECT_EQ(result_.at("status"), "completed") << json::serialize(result_);
        EXPECT_EQ(result_.at("output"), "decided");
        const std::string thread = text(first_, "thread_id");
        for (const std::string& run : {text(first_, "run_id"), between_, last_}) {
            expect_closed_log(server, run);
        }
        expect_whole(server, thread);
        const json::value state = get(server, "/api/chat/thread/" + thread + "/state").json();
        EXPECT_TRUE(state.at("interrupts").as_array().empty()) << json::serialize(state);
    }

  private:
    static std::string answer(
        const Server& server, const std::string& run, const std::string& key, const json::array& to
    ) {
        object answers;
        for (const json::value& one : to) {
            answers[one.at("id").as_string()] = one.at("type") == "question"
                                                    ? object{{"answers", {{"colour", "blue"}}}}
                                                    : object{{"decision", "approve"}};
        }
        const HttpReply reply = post(
            server,
            "/api/agent/runs",
            {{"agent_slug", "main"},
             {"created_by_run_id", run},
             {"request_id", key},
             {"resume", answers}}
        );
        EXPECT_EQ(reply.status, 202) << reply.body;
        return text(reply.json().as_object(), "run_id");
    }

    object first_;
    json::array open_;  // what a client remembers of what it was asked
    std::string between_;
    std::string last_;
    object result_;
};

// Two messages that wait behind a run at work, and one that steers it.
class QueueStory : public Story {
  public:
    void set_up(Server& server) override {
        server.write("scripts/hold.yaml", R"(agent: main
when: {user_contains: "hold"}
turns:
  - tool_calls:
      - {id: hold, tool: execute, args: {command: "echo held >> effects; until [ -e go ]; do sleep 0.02; done"}}
  - text: "done: hold"
)");
        server.write("scripts/main.yaml", "agent: main\nturns:\n  - text: \"done: {{user}}\"\n");
    }
    void tell(Server& server) override {
        const object thread =
            post(server, "/api/chat/thread", {{"agent_id", "main"}, {"request_id", "t"}})
                .json()
                .as_object();
        thread_ = text(thread, "id");
        const std::string workdir = server.workspace("local") + "/" + text(thread, "workdir_path");
        const std::string hold = send(server, "hold", "enqueue");
        // At work, or over in an earlier telling.
        wait_until(server, [&] {
            return std::ifstream(workdir + "/effects").good() || is_over(server, hold);
        });
        send(server, "second", "enqueue");
        send(server, "third", "enqueue");
        const HttpReply steer = try_send(server, "steer", "steer");
        // One that comes when the run has ended finds nothing to steer.
        steered_ = steer.status == 202;
        EXPECT_TRUE(steered_ || steer.status == 409) << steer.body;
        std::ofstream(workdir + "/go") << "go";
        for (const char* key : {"hold", "second", "third", "steer"}) {
            if (steered_ || key != std::string("steer")) {
                runs_[key] = run_of(server, key);
                results_[key] = server.wait_for_end(runs_[key]);
            }
        }
    }
    void check(Server& server) override {
        std::vector<std::string> users;
        const json::value history = get(server, "/api/chat/thread/" + thread_ + "/history").json();
        for (const json::value& message : history.at("history").as_array()) {
            if (message.at("role") == "user") {
                users.emplace_back(message.at("content").as_string());
            }
        }
        std::set<std::string> once(users.begin(), users.end());
        EXPECT_EQ(once.size(), users.size()) << json::serialize(history);
        EXPECT_EQ(users.size(), steered_ ? 4U : 3U) << json::serialize(history);
        const auto place = [&](const char* key) { return std::ranges::find(users, key); };
        EXPECT_LT(place("second"), place("third")) << json::serialize(history);
        for (const auto& [key, run] : runs_) {
            EXPECT_EQ(results_[key].at("status"), "completed") << json::serialize(results_[key]);
            expect_closed_log(server, run);
        }
        expect_whole(server, thread_);
        const json::value queue = get(server, "/api/agent/thread/" + thread_ + "/requests").json();
        EXPECT_EQ(json::serialize(queue).find("\"queued\""), std::string::npos)
            << json::serialize(queue);
    }

  private:
    HttpReply try_send(const Server& server, const std::string& query, const std::string& policy) {
        return post(
            server,
            "/api/agent/runs",
            {{"agent_slug", "main"},
             {"query", query},
             {"thread_id", thread_},
             {"request_id", query},
             {"queue_policy", policy}}
        );
    }
    std::string send(const Server& server, const std::string& query, const std::string& policy) {
        const HttpReply reply = try_send(server, query, policy);
        EXPECT_EQ(reply.status, 202) << reply.body;
        return query;
    }
    static std::string run_of(Server& server, const std::string& key) {
        std::string run;
        wait_until(server, [&] {
            const object request =
                get(server, "/api/agent/requests/" + key).json().at("request").as_object();
            const json::value& id = request.at("dispatched_run_id");
            run = id.is_null() ? "" : std::string(id.as_string());
            return !run.empty();
        });
        return run;
    }
    static bool is_over(Server& server, const std::string& key) {
        return text(view(server, run_of(server, key)), "status") == "completed";
    }

    std::string thread_;
    bool steered_ = false;
    std::map<std::string, std::string> runs_;
    std::map<std::string, object> results_;
};

// Both receivers hear of each end, at least once and always in the same words.
class WebhookStory : public Story {
  public:
    WebhookStory()
        : receiver_(any_request(), [](const RecordedRequest&, std::size_t n) {
              return error_reply(n == 0 ? 503 : 200, "{}");
          }) {}

    void set_up(Server& server) override {
        server.write("scripts/main.yaml", "agent: main\nturns:\n  - text: \"told\"\n");
        const std::string url = "http://127.0.0.1:" + std::to_string(receiver_.port());
        server.add_settings(
            "webhooks:\n  - {name: a, url: \"" + url +
            "/a\", secret_env: HOOK_KEY}\n"
            "  - {name: b, url: \"" +
            url + "/b\", secret_env: HOOK_KEY}\n"
        );
    }
    [[nodiscard]] std::map<std::string, std::string> environment() const override {
        return {{"HOOK_KEY", "a-key-that-signs-webhooks"}};
    }
    void tell(Server& server) override {
        runs_.clear();
        for (const char* key : {"first", "second"}) {
            const std::string run =
                text(server.submit("main", key, {{"Idempotency-Key", key}}), "run_id");
            server.wait_for_end(run);
            runs_.insert(run);
        }
        wait_until(server, [this] { return told().size() == 2 * runs_.size(); });
    }
    void check(Server& server) override {
        std::map<std::string, std::set<std::string>> bodies;
        for (const RecordedRequest& request : receiver_.requests()) {
            const std::string run(request.json.at("run").at("agent_run_id").as_string());
            EXPECT_TRUE(runs_.contains(run)) << "a delivery of no accepted run: " << run;
            bodies[request.target + " " + run].insert(
                request.header("x-ars-delivery") + request.body
            );
        }
        EXPECT_EQ(bodies.size(), 2 * runs_.size());
        for (const auto& [what, said] : bodies) {
            EXPECT_EQ(said.size(), 1U) << what;
        }
        for (const std::string& run : runs_) {
            expect_closed_log(server, run);
        }
    }

  private:
    static ModelServer::Options any_request() {
        ModelServer::Options options;
        options.strict = false;
        return options;
    }
    [[nodiscard]] std::set<std::string> told() const {
        std::set<std::string> out;
        for (const RecordedRequest& request : receiver_.requests()) {
            out.insert(request.header("x-ars-delivery"));
        }
        return out;
    }

    ModelServer receiver_;
    std::set<std::string> runs_;
};

// A thread that goes on from the middle of another one, which is then deleted with a run at work
// and a message that waits.
class ForkStory : public Story {
  public:
    void set_up(Server& server) override {
        server.write("scripts/hold.yaml", R"(agent: main
when: {user_contains: "hold"}
turns:
  - tool_calls: [{id: hold, tool: execute, args: {command: "echo held >> effects; sleep 7213"}}]
  - tool_calls: [{id: after_a_restart, tool: execute, args: {command: "sleep 7213"}}]
  - text: "never said"
)");
        server.write("scripts/main.yaml", R"(agent: main
turns:
  - tool_calls: [{id: one, tool: execute, args: {command: "echo {{user}} >> effects"}}]
  - text: "done: {{user}}"
)");
    }
    void tell(Server& server) override {
        if (!deleting_) {
            fork(server);
            run_ = send(server, thread_, "hold").at("run_id").as_string();
            send(server, thread_, "queued");
        }
        deleting_ = true;
        const HttpReply deleted = http(server.port(), "DELETE", "/api/chat/thread/" + thread_);
        EXPECT_TRUE(deleted.status == 200 || deleted.status == 404) << deleted.body;
        result_ = server.wait_for_end(run_);
    }
    void check(Server& server) override {
        EXPECT_EQ(get(server, "/api/chat/thread/" + thread_).status, 404);
        EXPECT_EQ(result_.at("status"), "cancelled") << json::serialize(result_);
        expect_closed_log(server, run_);
        const HttpReply queued = get(server, "/api/agent/requests/queued");
        EXPECT_NE(queued.body.find(R"("status":"cancelled")"), std::string::npos) << queued.body;
        EXPECT_TRUE(no_process_stays_with("sleep 7213"));
        // The fork has what it needs of the one that is gone.
        EXPECT_EQ(say(server, fork_, "after").at("output"), "done: after");
        expect_whole(server, fork_);
        const std::string history = get(server, "/api/chat/thread/" + fork_ + "/history").body;
        EXPECT_NE(history.find("before"), std::string::npos);
        EXPECT_EQ(history.find("queued"), std::string::npos);
        const json::value threads = get(server, "/api/chat/threads").json();
        EXPECT_EQ(threads.at("threads").as_array().size(), 1U) << json::serialize(threads);
    }

  private:
    static object send(const Server& server, const std::string& thread, const std::string& query) {
        const HttpReply reply = post(
            server,
            "/api/agent/runs",
            {{"agent_slug", "main"}, {"query", query}, {"thread_id", thread}, {"request_id", query}}
        );
        EXPECT_EQ(reply.status, 202) << reply.body;
        return reply.json().as_object();
    }
    static object say(Server& server, const std::string& thread, const std::string& query) {
        return server.wait_for_end(text(send(server, thread, query), "run_id"));
    }
    void fork(Server& server) {
        const object made =
            post(server, "/api/chat/thread", {{"agent_id", "main"}, {"request_id", "t"}})
                .json()
                .as_object();
        thread_ = text(made, "id");
        EXPECT_EQ(say(server, thread_, "before").at("status"), "completed");
        const std::string path = "/api/chat/thread/" + thread_;
        const json::value points = get(server, path + "/checkpoints").json();
        const std::string oldest(
            points.at("checkpoints").as_array().back().at("checkpoint_id").as_string()
        );
        const HttpReply forked =
            post(server, path + "/fork", {{"checkpoint_id", oldest}, {"request_id", "f"}});
        EXPECT_EQ(forked.status, 200) << forked.body;
        const std::string id = text(forked.json().as_object(), "id");
        EXPECT_TRUE(fork_.empty() || fork_ == id) << "the same request is the same fork";
        fork_ = id;
        EXPECT_EQ(say(server, fork_, "in-the-fork").at("output"), "done: in-the-fork");
    }

    std::string thread_;
    std::string fork_;
    std::string run_;
    bool deleting_ = false;
    object result_;
};

TEST_P(Failpoints, R3EveryCommitOfARunCanBeTheLast) {
    RunStory::unsure = 0;
    tell<RunStory>(15);
    EXPECT_GT(RunStory::unsure, 0) << "no effect was open at any death";
}
TEST_P(Failpoints, R1EveryCommitOfAParentThatLeavesAChildCanBeTheLast) { tell<ParentStory>(8); }
TEST_P(Failpoints, S7S15EveryCommitOfADialogCanBeTheLast) { tell<DialogStory>(8); }
TEST_P(Failpoints, S5EveryCommitOfAQueueCanBeTheLast) { tell<QueueStory>(12); }
TEST_P(Failpoints, S93EveryCommitOfAWebhookCanBeTheLast) { tell<WebhookStory>(8); }
TEST_P(Failpoints, S13EveryCommitOfAForkAndADeletionCanBeTheLast) { tell<ForkStory>(16); }

INSTANTIATE_TEST_SUITE_P(
    Moments,
    Failpoints,
    testing::Values("before", "after"),
    [](const auto& instance) { return std::string(instance.param); }
);

}  // namespace
}  // namespace ars::tests
