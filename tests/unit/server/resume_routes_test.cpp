// POST /api/agent/runs with `resume`: what of a body reaches the runs, and what is refused before.
#include "tests/unit/server/server_fixture.hpp"

namespace ars::server::testing {
namespace {

class ResumeRoute : public ServerTest {
  protected:
    void SetUp() override {
        start();
        run_ = make_run(0, store::RunStatus::interrupted);
    }
    RawResponse resume(const std::string& more, std::string_view headers = {}) const {
        return post(
            "/api/agent/runs",
            R"({"agent_slug": "main", "resume": {"decision": "approve"}, "created_by_run_id": ")" +
                run_.id + "\"" + more + "}",
            headers
        );
    }
    runs::ResumeRun last() {
        return on_server([this] { return runs_->last_resume; });
    }
    store::RunRecord run_;
};

TEST_F(ResumeRoute, HandsTheAnswerOnWithItsRequestId) {
    const RawResponse taken = resume(
        R"(, "thread_id": "t-1", "model_spec": "a:b", "max_steps": 7)",
        "Idempotency-Key: answer-1\r\n"
    );
    EXPECT_EQ(taken.status, 202) << taken.body;
    const runs::ResumeRun asked = last();
    EXPECT_EQ(asked.run_id, run_.id);
    EXPECT_EQ(asked.agent_slug, "main");
    EXPECT_EQ(asked.thread_id, "t-1");
    EXPECT_EQ(asked.request_id, "answer-1");
    EXPECT_EQ(asked.resume.at("decision"), "approve");
    EXPECT_NE(taken.body.find(R"("not_applied":["model_spec","max_steps"])"), std::string::npos)
        << taken.body;
}

TEST_F(ResumeRoute, RefusesWhatIsNoResume) {
    EXPECT_EQ(resume(R"(, "query": "hello")").status, 422);
    EXPECT_EQ(resume(R"(, "query": "")").status, 202) << "an empty message is none";
    EXPECT_EQ(resume(R"(, "queue_policy": "reject")").status, 422);
    EXPECT_EQ(resume(R"(, "colour": "red")").status, 422);
    EXPECT_EQ(resume(R"(, "thread_id": 7)").status, 422);
    EXPECT_EQ(resume(R"(, "request_id": "a")", "Idempotency-Key: b\r\n").status, 422);
    EXPECT_EQ(
        post("/api/agent/runs", R"({"agent_slug": "main", "resume": {"decision": "approve"}})")
            .status,
        422
    );
}

TEST_F(ResumeRoute, AMessageThatSpeaksOfAResumeIsAMessage) {
    const RawResponse taken =
        post("/api/agent/runs", R"({"agent_slug": "main", "query": "resume"})");
    EXPECT_EQ(taken.status, 202) << taken.body;
    EXPECT_TRUE(last().run_id.empty());
}

}  // namespace
}  // namespace ars::server::testing
