// What the tests of interrupted runs share: a run that waits for a person.
#pragma once

#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/resume.hpp"
#include "tests/unit/runtime/runs/runs_fixture.hpp"

#include <algorithm>

namespace ars::runs {

namespace json = boost::json;

inline constexpr const char* kWriteA = R"({"file_path": "a.txt", "content": "a"})";
inline constexpr const char* kWriteB = R"({"file_path": "b.txt", "content": "b"})";
inline constexpr const char* kAsk =
    R"({"questions": [{"question_id": "colour", "question": "Which?",
        "options": ["red", "blue"], "allow_other": false}]})";

inline json::object approve() { return {{"decision", "approve"}}; }
inline json::object reject() { return {{"decision", "reject"}, {"reason", "not today"}}; }

class Interrupts : public RunsTest {
  protected:
    std::vector<Interrupt> pending(const std::string& run) {
        return store_->read([&](const store::ReadTxn& txn) {
            return pending_interrupts(txn, *txn.run_by_id(run));
        });
    }
    // A run that waits with the calls of `turn`; says "done" when it goes on.
    store::RunRecord waiting(models::ModelReply turn) {
        script({std::move(turn), saying("done")});
        const auto submitted = submit("go");
        EXPECT_TRUE(submitted) << submitted.error().message;
        const store::RunRecord run = settled(submitted->run.id);
        EXPECT_EQ(run.status, store::RunStatus::interrupted) << run.error_message;
        return run;
    }
    static std::vector<std::string> types(const std::vector<store::EventRecord>& events) {
        std::vector<std::string> out;
        for (const store::EventRecord& event : events) {
            out.push_back(event.type);
        }
        return out;
    }
    static std::string code(const base::Result<Submitted>& result) {
        return result ? "accepted" : result.error().code;
    }
    // Starts a child, then waits for an approval, then for the child.
    static ToldModel::Answer starting_a_child(std::string& child) {
        return [&child](const models::ModelRequest& request) {
            if (request.agent_slug == agents::kGeneralPurpose) {
                return saying("the child's answer");
            }
            std::size_t turn = 0;
            for (const models::Message& message : request.messages) {
                turn += message.role == models::Role::assistant ? 1U : 0U;
            }
            if (turn == 0) {
                return calling(
                    {{"subagent_start",
                      R"({"subagent_slug": "general-purpose", "description": "help"})"}}
                );
            }
            if (turn == 1) {
                child = json::parse(request.messages.back().content).at("run_id").as_string();
                return calling({{"write_file", kWriteA}});
            }
            return turn == 2
                       ? calling(
                             {{"subagent_await", json::serialize(json::object{{"run_id", child}})}}
                         )
                       : saying(request.messages.back().content);
        };
    }
    void expect_one_result_each(const std::string& thread) {
        for (const auto& [call, count] : results(thread)) {
            EXPECT_EQ(count, 1) << call;
        }
    }
};

}  // namespace ars::runs
