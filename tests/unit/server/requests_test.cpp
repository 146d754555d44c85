// The queue over HTTP: shapes and codes of its routes. Runs are played by writing their status.
#include "tests/unit/server/server_fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace ars::server::testing {
namespace {

namespace json = boost::json;
using store::RunStatus;

std::string text(const json::value& value) { return std::string(value.as_string()); }

class RequestsTest : public ServerTest {
  protected:
    // A thread with a running run.
    void busy(std::vector<people::DeclaredKey> keys = {}) {
        start({}, std::move(keys));
        run_ = make_run(0, RunStatus::running);
    }
    RawResponse send(const std::string& query, const std::string& more = {}) {
        return post(
            "/api/agent/runs",
            R"({"agent_slug":"default-chatbot","thread_id":")" + run_.thread_id + R"(","query":")" +
                query + "\"" + more + "}"
        );
    }
    void set_status(store::RunNo no, RunStatus status) {
        const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            store::RunRecord run = txn.run(no).value();
            run.status = status;
            run.finished_ms = store::is_terminal(status) ? base::now_ms() : 0;
            txn.put_run(run);
            return {};
        });
        ASSERT_TRUE(done);
    }
    std::string queue_path(const std::string& tail = {}) const {
        return "/api/agent/thread/" + run_.thread_id + "/requests" + tail;
    }
    static std::string request_path(const std::string& id, const std::string& tail = {}) {
        return "/api/agent/requests/" + id + tail;
    }
    json::value queue_state() { return get(queue_path()).json().at("queue"); }

    store::RunRecord run_;
};

TEST_F(RequestsTest, AQueuedMessageAnswers202WithItsPlaceAndItsAddresses) {
    busy();
    const RawResponse response = send("hello", R"(,"request_id":"r 1")");
    EXPECT_EQ(response.status, 422) << "ids travel in URLs";
    const RawResponse queued = send("hello", R"(,"request_id":"r/1")");
    ASSERT_EQ(queued.status, 202) << queued.body;
    const json::value body = queued.json();
    EXPECT_EQ(text(body.at("status")), "queued");
    EXPECT_EQ(text(body.at("queue_policy")), "enqueue");
    EXPECT_EQ(body.at("queue_position").as_int64(), 1);
    EXPECT_TRUE(body.at("run_id").is_null());
    EXPECT_TRUE(body.at("stream_url").is_null());
    EXPECT_EQ(text(body.at("thread_id")), run_.thread_id);
    EXPECT_EQ(text(body.at("request_events_url")), "/api/agent/requests/r%2F1/events");
    EXPECT_EQ(queued.headers.at("location"), "/api/agent/requests/r%2F1");
    EXPECT_EQ(send("more").json().at("queue_position").as_int64(), 2);

    const json::value shown = get("/api/agent/requests/r%2F1").json().at("request");
    EXPECT_EQ(text(shown.at("request_id")), "r/1");
    EXPECT_EQ(text(shown.at("status")), "queued");
    EXPECT_EQ(text(shown.at("source")), "chat");
    EXPECT_EQ(text(shown.at("input_message_id")), text(body.at("message_id")));
    EXPECT_TRUE(shown.at("dispatched_run_id").is_null());
    EXPECT_TRUE(shown.at("dispatched_at").is_null());
    EXPECT_FALSE(shown.as_object().contains("content"));
}

TEST_F(RequestsTest, TheQueueOfAThreadIsListedInOrderWithItsState) {
    busy();
    EXPECT_EQ(text(queue_state().at("status")), "running");
    EXPECT_EQ(text(queue_state().at("blocking_run_id")), run_.id);
    send("one");
    send("two");
    const json::value steered = send("three", R"(,"queue_policy":"steer")").json();
    EXPECT_EQ(steered.at("queue_position").as_int64(), 1);
    const json::value listed = get(queue_path("?agent_slug=default-chatbot")).json();
    std::string order;
    for (const json::value& entry : listed.at("requests").as_array()) {
        order += text(entry.at("content")) + std::to_string(entry.at("queue_position").as_int64());
    }
    EXPECT_EQ(order, "three1one2two3");
    EXPECT_FALSE(listed.at("queue").at("can_continue").as_bool());
    EXPECT_EQ(get(queue_path("?agent_slug=other")).code(), "thread_not_found");
    EXPECT_EQ(get("/api/agent/thread/none/requests").code(), "thread_not_found");
    set_status(run_.no, RunStatus::interrupted);
    EXPECT_EQ(text(queue_state().at("status")), "interrupted");
    EXPECT_TRUE(queue_state().at("paused_reason").is_null());
}

TEST_F(RequestsTest, K91ARejectedMessageIs409WithTheRunInItsWay) {
    busy();
    const RawResponse refused = send("no", R"(,"queue_policy":"reject","request_id":"r1")");
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.code(), "run_busy");
    const json::value detail = refused.json().at("detail");
    EXPECT_EQ(text(detail.at("active_run_id")), run_.id);
    EXPECT_EQ(text(detail.at("active_run_status")), "running");
    EXPECT_EQ(text(detail.at("request_id")), "r1");
    EXPECT_EQ(text(detail.at("status")), "rejected");
    EXPECT_TRUE(detail.at("run_id").is_null());
    EXPECT_EQ(send("no", R"(,"queue_policy":"reject","request_id":"r1")").code(), "run_busy");
    EXPECT_EQ(send("yes", R"(,"request_id":"r1")").code(), "request_id_conflict");
    EXPECT_EQ(text(get(request_path("r1")).json().at("request").at("error_type")), "run_busy");
}

TEST_F(RequestsTest, S39S41AWaitingRunRefusesMessagesWithACodeOfItsOwn) {
    busy();
    set_status(run_.no, RunStatus::interrupted);
    const RawResponse refused = send("hello");
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.code(), "run_interrupted");
    EXPECT_EQ(text(refused.json().at("detail").at("active_run_id")), run_.id);
}

TEST_F(RequestsTest, AFullQueueIs429WithRetryAfter) {
    busy();
    on_server([this] { runs_->bounds.max_queued = 0; });
    const RawResponse full = send("hello");
    EXPECT_EQ(full.status, 429);
    EXPECT_EQ(full.code(), "queue_full");
    EXPECT_TRUE(full.headers.contains("retry-after"));
}

TEST_F(RequestsTest, K97CancelIsIdempotentAndKnowsWhatIsARun) {
    busy();
    send("one", R"(,"request_id":"r1")");
    const RawResponse cancelled = post(request_path("r1", "/cancel"), "{}");
    EXPECT_EQ(cancelled.status, 200) << cancelled.body;
    EXPECT_EQ(text(cancelled.json().at("status")), "cancelled");
    EXPECT_EQ(post(request_path("r1", "/cancel"), "{}").status, 200);
    EXPECT_EQ(post(request_path("none", "/cancel"), "{}").code(), "request_not_found");
    const RawResponse run = post(request_path(run_.request_id, "/cancel"), "{}");
    EXPECT_EQ(run.status, 409);
    EXPECT_EQ(run.code(), "request_already_dispatched");
    EXPECT_EQ(text(run.json().at("detail").at("run_id")), run_.id);
}

TEST_F(RequestsTest, K99K100K101SteerGoesFirstAndStaysUntilItsRunEnds) {
    busy();
    send("one", R"(,"request_id":"r1")");
    send("two", R"(,"request_id":"r2")");
    const RawResponse steered = post(request_path("r2", "/steer"), "{}");
    ASSERT_EQ(steered.status, 200) << steered.body;
    EXPECT_EQ(text(steered.json().at("queue_policy")), "steer");
    EXPECT_EQ(steered.json().at("queue_position").as_int64(), 1);
    EXPECT_EQ(text(steered.json().at("request_events_url")), request_path("r2", "/events"));
    EXPECT_EQ(post(request_path("r1", "/steer"), "{}").code(), "steer_already_pending");
    EXPECT_EQ(post(request_path("r2", "/cancel"), "{}").code(), "steer_in_progress");
    EXPECT_EQ(post(request_path(run_.request_id, "/steer"), "{}").code(), "request_not_queued");
    EXPECT_EQ(post(request_path("none", "/steer"), "{}").code(), "request_not_found");
    const store::RunRecord pending = make_run(0, RunStatus::pending);
    run_ = pending;
    const RawResponse refused = send("x", R"(,"queue_policy":"steer")");
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.code(), "run_not_steerable");
    EXPECT_EQ(text(refused.json().at("detail").at("active_run_status")), "pending");
}

TEST_F(RequestsTest, K95ContinueDispatchesThePausedHead) {
    busy();
    EXPECT_EQ(post(queue_path("/continue"), "{}").code(), "queue_empty");
    send("one", R"(,"request_id":"r1")");
    const RawResponse active = post(queue_path("/continue"), "{}");
    EXPECT_EQ(active.code(), "run_active");
    EXPECT_EQ(text(active.json().at("detail").at("active_run_id")), run_.id);
    set_status(run_.no, RunStatus::failed);
    EXPECT_EQ(text(queue_state().at("paused_reason")), "run_failed");
    EXPECT_TRUE(queue_state().at("can_continue").as_bool());
    EXPECT_EQ(post(queue_path("/continue?agent_slug=other"), "{}").code(), "thread_not_found");
    const RawResponse done = post(queue_path("/continue"), "{}");
    ASSERT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(text(done.json().at("status")), "dispatched");
    EXPECT_EQ(text(done.json().at("request_id")), "r1");
    ASSERT_EQ(on_server([this] { return runs_->launched.size(); }), 1U);
    EXPECT_EQ(on_server([this] { return runs_->launched[0].id; }), text(done.json().at("run_id")));
}

TEST_F(RequestsTest, S94CommandsRefuseOptionsTheyDoNotHave) {
    busy();
    send("one", R"(,"request_id":"r1")");
    for (const std::string& path :
         {request_path("r1", "/cancel"), request_path("r1", "/steer"), queue_path("/continue")}) {
        EXPECT_EQ(post(path, R"({"force":true})").code(), "invalid_request") << path;
        EXPECT_EQ(post(path, "[]").status, 422) << path;
    }
    EXPECT_EQ(send("x", R"(,"queue_policy":"bridge")").status, 422);
    EXPECT_EQ(text(get(request_path("r1")).json().at("request").at("status")), "queued");
}

TEST_F(RequestsTest, S90RequestsOfOthersLookMissing) {
    busy(two_keys());
    const std::string alice = "x-api-key: " + std::string(kAliceKey) + "\r\n";
    const std::string bob = "x-api-key: " + std::string(kBobKey) + "\r\n";
    const std::string mine = request_path(run_.request_id);
    EXPECT_EQ(get(mine, alice).status, 200);
    const std::string unknown = get(request_path("x"), bob).body;
    EXPECT_EQ(get(mine, bob).status, 404);
    EXPECT_EQ(get(mine, bob).code(), "request_not_found");
    EXPECT_EQ(unknown.find(run_.id), std::string::npos);
    EXPECT_EQ(get(mine + "/events", bob).status, 404);
    EXPECT_EQ(post(mine + "/cancel", "{}", bob).status, 404);
    EXPECT_EQ(post(mine + "/steer", "{}", bob).status, 404);
    EXPECT_EQ(get(queue_path(), bob).status, 404);
    EXPECT_EQ(post(queue_path("/continue"), "{}", bob).status, 404);
    EXPECT_EQ(get("/api/agent/thread/" + run_.thread_id + "/active_run", bob).status, 404);
}

TEST_F(RequestsTest, TheActiveRunIsTheLatestThatHasNotEnded) {
    busy();
    const std::string path = "/api/agent/thread/" + run_.thread_id + "/active_run";
    EXPECT_EQ(text(get(path).json().at("run").at("id")), run_.id);
    set_status(run_.no, RunStatus::interrupted);
    EXPECT_EQ(text(get(path).json().at("run").at("status")), "interrupted");
    set_status(run_.no, RunStatus::cancelled);
    EXPECT_TRUE(get(path).json().at("run").is_null());
    EXPECT_EQ(get("/api/agent/thread/none/active_run").code(), "thread_not_found");
}

TEST_F(RequestsTest, K108TheEventsOfARequestTellEachPlaceOnceAndThenTheRun) {
    HttpLimits limits;
    limits.heartbeat = std::chrono::milliseconds(20);
    start(limits);
    run_ = make_run(0, RunStatus::running);
    send("one", R"(,"request_id":"r1")");
    send("two", R"(,"request_id":"r2")");
    RawClient client = connect();
    client.request("GET " + request_path("r2", "/events"));
    EXPECT_EQ(client.read_head().headers.at("content-type"), "text/event-stream");
    EXPECT_NE(
        client.read_until("\n\n").find(R"({"request_id":"r2","status":"queued","position":2})"),
        std::string::npos
    );
    EXPECT_NE(client.read_until(": heartbeat").find(": heartbeat"), std::string::npos);
    EXPECT_EQ(post(request_path("r1", "/cancel"), "{}").status, 200);
    EXPECT_NE(client.read_until("\"position\":1}").find("event: queued"), std::string::npos);
    set_status(run_.no, RunStatus::completed);
    base::asio::co_spawn(io_, runs_->requests().advance(run_.thread), [](std::exception_ptr) {});
    const std::string rest = client.read_until("/events\"}");
    EXPECT_NE(rest.find("event: run_created"), std::string::npos) << rest;
    EXPECT_EQ(rest.find("event: queued"), std::string::npos) << "a place is told when it changes";
    const std::string run_id = on_server([this] { return runs_->launched.at(0).id; });
    EXPECT_NE(rest.find("/api/agent/runs/" + run_id), std::string::npos);

    const auto events_of = [this](const std::string& id) {
        return get(request_path(id, "/events")).body;
    };
    EXPECT_TRUE(events_of("r2").starts_with("event: run_created\n"))
        << "and again for who comes late";
    EXPECT_TRUE(events_of("r1").starts_with("event: cancelled\n"));
    EXPECT_TRUE(events_of(run_.request_id).starts_with("event: run_created\n"));
    EXPECT_TRUE(eventually([this] { return api_->stats.streams == 0; }));
}

}  // namespace
}  // namespace ars::server::testing
