#include "tests/unit/server/server_fixture.hpp"

namespace ars::server::testing {
namespace {

using RoutesTest = ServerTest;
namespace json = boost::json;

std::string text(const json::value& value) { return std::string(value.as_string()); }

TEST_F(RoutesTest, StartingARunAnswers202WithItsAddresses) {
    start();
    const RawResponse response = post(
        "/api/agent/runs",
        R"({"query":"hello","agent_slug":"default-chatbot","request_id":"r1","timeout":"10m",
            "max_steps":7,"tool_approval_mode":"always_trust","model_spec":" main:x "})"
    );
    ASSERT_EQ(response.status, 202) << response.body;
    const json::value body = response.json();
    EXPECT_EQ(text(body.at("request_id")), "r1");
    EXPECT_EQ(text(body.at("status")), "dispatched");
    EXPECT_EQ(text(body.at("queue_policy")), "enqueue");
    EXPECT_EQ(body.at("queue_position").as_int64(), 0);
    EXPECT_EQ(text(body.at("run_status")), "pending");
    EXPECT_TRUE(body.at("request_events_url").is_null());
    const std::string run_id = text(body.at("run_id"));
    EXPECT_EQ(text(body.at("stream_url")), "/api/agent/runs/" + run_id + "/events");
    EXPECT_EQ(response.headers.at("location"), "/api/agent/runs/" + run_id);
    EXPECT_FALSE(text(body.at("thread_id")).empty());
    EXPECT_FALSE(text(body.at("message_id")).empty());
    EXPECT_EQ(runs_->last_submit.timeout, std::chrono::minutes(10));
    EXPECT_EQ(runs_->last_submit.max_steps, 7U);
    EXPECT_EQ(runs_->last_submit.model_spec, "main:x");
    EXPECT_EQ(runs_->last_submit.approval_mode, agents::ApprovalMode::always_trust);
    EXPECT_EQ(runs_->last_submit.user.uid, "alice");

    const json::value run = get("/api/agent/runs/" + run_id).json().at("run");
    EXPECT_EQ(text(run.at("id")), run_id);
    EXPECT_EQ(text(run.at("status")), "pending");
    EXPECT_EQ(text(run.at("input_message_id")), text(body.at("message_id")));
    EXPECT_TRUE(run.at("started_at").is_null());
    EXPECT_TRUE(text(run.at("created_at")).ends_with("Z"));
    const json::value result = get("/api/agent/runs/" + run_id + "/result").json();
    EXPECT_EQ(text(result.at("status")), "pending");
    EXPECT_EQ(text(result.at("output")), "");
    EXPECT_EQ(text(result.at("agent_run_id")), run_id);
}

TEST_F(RoutesTest, TheRequestIdMayStandInThreePlacesButMustAgree) {
    start();
    const auto submit = [this](std::string_view fields, std::string_view headers) {
        return post(
            "/api/agent/runs",
            R"({"query":"q","agent_slug":"a")" + std::string(fields) + "}",
            headers
        );
    };
    EXPECT_EQ(text(submit("", "Idempotency-Key: k1\r\n").json().at("request_id")), "k1");
    EXPECT_EQ(text(submit(R"(,"meta":{"request_id":"k2"})", "").json().at("request_id")), "k2");
    EXPECT_EQ(
        submit(R"(,"request_id":"k3","meta":{"request_id":"k3"})", "Idempotency-Key: k3\r\n")
            .status,
        202
    );
    const RawResponse differ = submit(R"(,"request_id":"k4")", "Idempotency-Key: k5\r\n");
    EXPECT_EQ(differ.status, 422);
    EXPECT_EQ(differ.code(), "request_id_mismatch");
    EXPECT_EQ(submit(R"(,"request_id":"")", "").status, 422);
    EXPECT_EQ(submit("", "Idempotency-Key: " + std::string(300, 'k') + "\r\n").status, 422);
}

TEST_F(RoutesTest, TheDigestIsOfTheMeaningNotOfTheSpelling) {
    start();
    const auto digest = [this](std::string_view body) {
        EXPECT_EQ(post("/api/agent/runs", body).status, 202) << body;
        return on_server([this] { return runs_->last_submit.body_digest; });
    };
    const std::string first = digest(R"({"query":"q","agent_slug":"a","request_id":"x"})");
    EXPECT_EQ(first.size(), 64U);
    EXPECT_EQ(digest(R"({ "agent_slug":"a", "query":"q","meta":{"request_id":"y"} })"), first);
    EXPECT_EQ(digest(R"({"query":"q","agent_slug":"a","queue_policy":"enqueue"})"), first);
    EXPECT_NE(digest(R"({"query":"q2","agent_slug":"a"})"), first);
    EXPECT_NE(digest(R"({"query":"q","agent_slug":"a","max_steps":3})"), first);
}

TEST_F(RoutesTest, FaultsOfARunsBodyAreNamedAllAtOnce) {
    start();
    const RawResponse response = post(
        "/api/agent/runs",
        R"({"query":"  ","model_specc":"x","queue_policy":"guided","timeout":5,"max_steps":0})"
    );
    EXPECT_EQ(response.status, 422);
    EXPECT_EQ(response.code(), "invalid_request");
    std::string paths;
    for (const json::value& fault : response.json().at("detail").at("faults").as_array()) {
        paths += text(fault.at("path")) + " ";
    }
    EXPECT_EQ(paths, "/query /agent_slug /queue_policy /timeout /max_steps /model_specc ");
    EXPECT_EQ(post("/api/agent/runs", "[]").status, 422);
    EXPECT_EQ(post("/api/agent/runs", R"({"query":1,"agent_slug":"a"})").status, 422);
}

TEST_F(RoutesTest, S32CancelAnswersTheRun) {
    start();
    const auto running = make_run(0, store::RunStatus::running);
    RawClient client = connect();
    client.request("POST /api/agent/runs/" + running.id + "/cancel");
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(text(response.json().at("run").at("status")), "cancel_requested");
    const auto done = make_run(0, store::RunStatus::completed);
    const RawResponse noop = post("/api/agent/runs/" + done.id + "/cancel", "{}");
    EXPECT_EQ(noop.status, 200);
    EXPECT_EQ(text(noop.json().at("run").at("status")), "completed");
    EXPECT_EQ(post("/api/agent/runs/none/cancel", "{}").code(), "run_not_found");
}

TEST_F(RoutesTest, AgentsAreListedAndShown) {
    start();
    const json::value main = get("/api/agent").json().at("agents");
    ASSERT_EQ(main.as_array().size(), 1U);
    EXPECT_EQ(text(main.at(0).at("slug")), "default-chatbot");
    EXPECT_TRUE(main.at(0).at("is_default").as_bool());
    const json::value all = get("/api/agent?include_subagents=true").json().at("agents");
    EXPECT_EQ(all.as_array().size(), 2U);
    EXPECT_EQ(text(get("/api/agent/default").json().at("agent").at("slug")), "default-chatbot");
    const json::value sub = get("/api/agent/general-purpose").json().at("agent");
    EXPECT_TRUE(sub.at("is_subagent").as_bool());
    EXPECT_EQ(text(sub.at("backend_id")), "SubAgentBackend");
    EXPECT_EQ(sub.at("share_config").at("version").as_int64(), 2);
    EXPECT_EQ(get("/api/agent/none").code(), "agent_not_found");
}

TEST_F(RoutesTest, AdminFieldsAreHiddenFromPlainUsers) {
    agents::Agent agent;
    agent.slug = "mine";
    agent.backend_id = agents::kChatbotBackend;
    agent.share_config.read_scope = agents::AccessScope{};
    agent.config_json = {{"context", {{"model", "m:x"}, {"max_execution_steps", 5}}}};
    agent_files_.push_back(agent);
    users_[1].role = agents::UserRole::admin;
    start({}, two_keys());
    const auto context = [this](const char* key) {
        const auto shown = get("/api/agent/mine", "x-api-key: " + std::string(key) + "\r\n").json();
        return shown.at("agent").at("config_json").at("context").as_object();
    };
    EXPECT_FALSE(context(kAliceKey).contains("max_execution_steps"));
    EXPECT_TRUE(context(kAliceKey).contains("model"));
    EXPECT_TRUE(context(kBobKey).contains("max_execution_steps"));
}

TEST_F(RoutesTest, ThreadsAreMadeListedAndShown) {
    start();
    const RawResponse made = post(
        "/api/chat/thread", R"({"agent_id":"default-chatbot","title":"T","metadata":{"a":1}})"
    );
    ASSERT_EQ(made.status, 200) << made.body;
    const std::string id = text(made.json().at("id"));
    EXPECT_EQ(text(made.json().at("thread_status")), "done");
    EXPECT_EQ(text(made.json().at("project_id")), "p1");
    EXPECT_EQ(made.json().at("metadata").at("a").as_int64(), 1);
    EXPECT_EQ(text(get("/api/chat/thread/" + id).json().at("title")), "T");
    const auto run = make_run(0, store::RunStatus::running);
    EXPECT_EQ(text(get("/api/chat/thread/" + run.thread_id).json().at("thread_status")), "loading");
    EXPECT_EQ(get("/api/chat/threads").json().at("threads").as_array().size(), 2U);
    EXPECT_EQ(get("/api/chat/threads?limit=1").json().at("threads").as_array().size(), 1U);
    EXPECT_EQ(get("/api/chat/threads?agent_id=none").json().at("threads").as_array().size(), 0U);
    EXPECT_EQ(get("/api/chat/threads?limit=501").status, 422);
    EXPECT_EQ(get("/api/chat/threads?offset=x").status, 422);
    EXPECT_EQ(get("/api/chat/thread/none").code(), "thread_not_found");
}

TEST_F(RoutesTest, ThreadBodiesAreChecked) {
    start();
    EXPECT_EQ(post("/api/chat/thread", R"({"agent_id":"a","nope":1})").status, 422);
    EXPECT_EQ(
        post("/api/chat/thread", R"({"agent_id":"a","metadata":{"attachments":[]}})").status, 400
    );
    const std::string long_id(65, 'r');
    EXPECT_EQ(
        post("/api/chat/thread", R"({"agent_id":"a","request_id":")" + long_id + "\"}").status, 422
    );
}

TEST_F(RoutesTest, HistoryJoinsCallsWithTheirResults) {
    start();
    const auto run = make_run(0, store::RunStatus::completed);
    const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
        const auto add = [&](store::Role role, std::string content, store::MessageRecord message) {
            message.thread = run.thread;
            message.run = run.no;
            message.role = role;
            message.content = std::move(content);
            txn.add_message(message);
        };
        add(store::Role::user, "question", {});
        store::MessageRecord calls;
        calls.tool_calls = {
            {"c0", "p", "read_file", R"({"path":"x"})"}, {"c1", "p", "execute", "not json"}
        };
        add(store::Role::assistant, "", calls);
        store::MessageRecord result;
        result.tool_call_id = "c0";
        add(store::Role::tool, "file text", result);
        add(store::Role::assistant, "answer", {});
        return {};
    });
    ASSERT_TRUE(done);
    const RawResponse response = get("/api/chat/thread/" + run.thread_id + "/history");
    ASSERT_EQ(response.status, 200);
    const json::value history = response.json().at("history");
    ASSERT_EQ(history.as_array().size(), 3U);
    EXPECT_EQ(text(history.at(0).at("role")), "user");
    EXPECT_FALSE(history.at(0).as_object().contains("run_started_at"));
    const json::value calls = history.at(1).at("tool_calls");
    EXPECT_EQ(text(calls.at(0).at("output")), "file text");
    EXPECT_EQ(text(calls.at(0).at("status")), "success");
    EXPECT_EQ(text(calls.at(0).at("input").at("path")), "x");
    EXPECT_EQ(text(calls.at(1).at("status")), "pending");
    EXPECT_EQ(text(calls.at(1).at("input")), "not json");
    EXPECT_EQ(text(history.at(2).at("content")), "answer");
    EXPECT_TRUE(history.at(2).at("run_finished_at").is_null());
}

TEST_F(RoutesTest, ReadySaysWhetherRunsAreAccepted) {
    start();
    EXPECT_EQ(get("/api/system/ready").status, 200);
    on_server([this] { runs_->ready = false; });
    const RawResponse response = get("/api/system/ready");
    EXPECT_EQ(response.status, 503);
    EXPECT_TRUE(response.headers.contains("retry-after"));
    EXPECT_EQ(get("/api/system/health").status, 200);
}

TEST_F(RoutesTest, MetricsAreText) {
    start();
    EXPECT_EQ(get("/nowhere").status, 404);
    const RawResponse response = get("/metrics");
    EXPECT_TRUE(response.headers.at("content-type").starts_with("text/plain"));
    EXPECT_NE(response.body.find("ars_http_responses_total{class=\"4xx\"} 1\n"), std::string::npos);
    EXPECT_NE(response.body.find("\nars_http_connections "), std::string::npos);
    EXPECT_NE(response.body.find("\nars_egress_refused_total 0\n"), std::string::npos);
    EXPECT_NE(
        response.body.find("\nars_sandbox_info{tier=\"namespaces\",child_io=\"epoll\"} 1\n"),
        std::string::npos
    );
    EXPECT_EQ(response.body.find("process_resident_memory_bytes 0\n"), std::string::npos);
}

TEST_F(RoutesTest, MetricsSayWhatTheSandboxDidAndRefused) {
    start();
    sandbox::SandboxCounters& counters = runs_->figures.sandbox;
    runs_->figures.scopes = 3;
    counters.commands = {{"exited", 7}, {"timed_out", 1}};
    counters.denied_calls = {{"ptrace", 2}};
    counters.oom_kills = 4;
    counters.egress.denied_hosts = 5;
    const std::string body = get("/metrics").body;
    for (const char* line :
         {"ars_scopes 3",
          "ars_commands_total{status=\"exited\"} 7",
          "ars_commands_total{status=\"timed_out\"} 1",
          "ars_denied_calls_total{call=\"ptrace\"} 2",
          "ars_oom_kills_total 4",
          "ars_egress_denied_hosts_total 5"}) {
        EXPECT_NE(body.find("\n" + std::string(line) + "\n"), std::string::npos) << line;
    }
}

TEST_F(RoutesTest, DiscoveryNamesVersionAndAuth) {
    start({}, two_keys());
    const json::value body = get("/api/system/discovery").json();
    EXPECT_EQ(text(body.at("version")), "0.0.test");
    EXPECT_TRUE(body.at("auth").at("required").as_bool());
    EXPECT_EQ(text(body.at("sandbox").at("tier")), "namespaces");
}

}  // namespace
}  // namespace ars::server::testing
