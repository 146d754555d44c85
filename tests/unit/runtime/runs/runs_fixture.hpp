// Runs as the server serves them: real store, real workspace, real tools; only the model is told
// what to say. No sandbox: its tools are those that need none.
#pragma once

#include "runtime/runs/events.hpp"
#include "runtime/runs/run_service.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/subagent_tools.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ars::runs {

// A reply that only calls tools: {name, arguments} each.
inline models::ModelReply calling(std::vector<std::pair<std::string, std::string>> calls) {
    models::ModelReply reply;
    for (auto& [name, arguments] : calls) {
        reply.tool_calls.push_back({"", std::move(name), std::move(arguments)});
    }
    return reply;
}
inline models::ModelReply saying(std::string text) {
    models::ModelReply reply;
    reply.content = std::move(text);
    return reply;
}

// Refuses what a strict provider refuses, and keeps what it was asked.
class ToldModel final : public models::ModelClient {
  public:
    using Answer = std::function<models::ModelReply(const models::ModelRequest&)>;

    base::Task<base::Result<models::ModelReply>>
    complete(const models::ModelRequest& request, models::DeltaSink&) override {
        requests.push_back(request);
        if (gate != nullptr && request.agent_slug == gated_agent) {
            co_await gate->wait(request.deadline);
        }
        std::set<std::string> open;
        for (const models::Message& message : request.messages) {
            const bool is_result = message.role == models::Role::tool;
            if (is_result ? open.erase(message.tool_call_id) != 1 : !open.empty()) {
                co_return base::fail(
                    base::ErrorKind::invalid, "model_rejected", "calls and results do not pair"
                );
            }
            for (const models::ToolCall& call : message.tool_calls) {
                open.insert(call.id);
            }
        }
        co_return answer(request);
    }

    Answer answer;
    std::vector<models::ModelRequest> requests;
    base::Notifier* gate = nullptr;  // whoever is `gated_agent` waits for it
    std::string gated_agent;
};

// Nobody here needs a process.
class NoSandbox final : public sandbox::Sandbox {
  public:
    base::Task<base::Result<std::shared_ptr<sandbox::Scope>>>
    acquire(sandbox::ScopeKey, std::function<base::Result<sandbox::ScopeSpec>()>) override {
        co_return base::fail(base::ErrorKind::unavailable, "no_sandbox", "no sandbox here");
    }
    base::Task<void> release(sandbox::ScopeKey) override { co_return; }
    base::Task<void> close() override { co_return; }
    [[nodiscard]] std::size_t size() const override { return 0; }
    [[nodiscard]] const sandbox::SandboxCounters& counters() const override { return counters_; }
    [[nodiscard]] std::string backend() const override { return "none"; }

  private:
    sandbox::SandboxCounters counters_;
};

class RunsTest : public fsmount::WorkspaceTest {
  protected:
    RunsTest() { boot(); }
    ~RunsTest() override { stop(); }

    // A process of its own as far as runs can tell: what it knows, it read from the store.
    void boot() {
        io_ = std::make_unique<base::asio::io_context>(1);
        auto opened = store::Store::open(
            {.directory = directory_.path() + "/store",
             .max_size = std::size_t{256} << 20U,
             .sync = false},
            log_
        );
        ASSERT_TRUE(opened) << opened.error().message;
        store_ = std::move(*opened);
        models_ = std::make_unique<models::ModelRegistry>();
        auto model = std::make_unique<ToldModel>();
        model_ = model.get();
        model_->answer = answer_;
        models_->add("told", std::move(model));
        RunSettings settings;
        settings.default_model = "told:model";
        settings.max_concurrent = slots_;
        runs_ = std::make_unique<RunService>(RunParts{
            io_->get_executor(),
            *store_,
            agents_,
            *models_,
            sandbox_,
            offload_,
            log_,
            std::move(settings),
            [this](const std::string&) { return workspace_; },
            [](const fsmount::Workspace&, const std::string&) {
                return base::Result<sandbox::ScopeSpec>();
            },
            [this](const std::string&) { return is_known_ ? std::optional(alice_) : std::nullopt; },
        });
        ToolSet tools = tools::make_file_tools();
        for (auto& tool : tools::make_subagent_tools(runs_->child_runs())) {
            tools.push_back(std::move(tool));
        }
        runs_->set_tools(std::move(tools));
        ASSERT_TRUE(await(runs_->recover()));
    }
    // What is left on disk is what a SIGKILL would leave.
    void stop() {
        if (runs_) {
            await_void(runs_->shutdown());
            runs_.reset();
            models_.reset();
            store_.reset();
            io_.reset();
        }
    }
    void reboot() {
        stop();
        boot();
    }
    void answer_with(ToldModel::Answer answer) {
        answer_ = std::move(answer);
        model_->answer = answer_;
    }
    // The n-th reply to the n-th turn after the user's message.
    void script(std::vector<models::ModelReply> turns) {
        answer_with([turns](const models::ModelRequest& request) {
            std::size_t turn = 0;
            for (const models::Message& message : request.messages) {
                turn = message.role == models::Role::user ? 0 : turn;
                turn += message.role == models::Role::assistant ? 1U : 0U;
            }
            return turn < turns.size() ? turns[turn] : saying("nothing is left to say");
        });
    }

    template <class T>
    T await(base::Task<T> task) {
        std::optional<T> out;
        std::exception_ptr failure;
        base::asio::co_spawn(*io_, std::move(task), [&](std::exception_ptr error, T value) {
            failure = error;
            out = std::move(value);
        });
        run_until([&] { return out.has_value() || failure; });
        if (failure) {
            std::rethrow_exception(failure);
        }
        return std::move(*out);
    }
    void await_void(base::Task<void> task) {
        bool done = false;
        base::asio::co_spawn(*io_, std::move(task), [&](std::exception_ptr) { done = true; });
        run_until([&] { return done; });
    }
    template <class Condition>
    void run_until(Condition condition) {
        const auto guard = base::asio::make_work_guard(*io_);
        io_->restart();
        while (!condition()) {
            io_->run_one();
        }
    }

    base::Result<Submitted> submit(
        const std::string& query, const std::string& thread = {}, bool trusted = false
    ) {
        SubmitRun request;
        request.user = alice_;
        request.agent_slug = std::string(agents::kDefaultAgent);
        request.query = query;
        request.thread_id = thread;
        if (trusted) {
            request.approval_mode = agents::ApprovalMode::always_trust;
        }
        return await(runs_->submit(std::move(request)));
    }
    base::Result<Submitted> resume(
        const std::string& run, boost::json::value answers, const std::string& request_id = {}
    ) {
        ResumeRun request;
        request.user = alice_;
        request.agent_slug = std::string(agents::kDefaultAgent);
        request.run_id = run;
        request.request_id = request_id;
        request.resume = std::move(answers);
        return await(runs_->resume(std::move(request)));
    }
    store::RunRecord cancel(const std::string& run) {
        return await(runs_->cancel(alice_, run)).value();
    }
    store::RunRecord record(const std::string& run) { return runs_->find_run(alice_, run).value(); }
    // Serves until the run waits or has ended, and nothing of it is at work any more.
    store::RunRecord settled(const std::string& run) {
        run_until([&] {
            const store::RunStatus status = record(run).status;
            return (store::is_terminal(status) || status == store::RunStatus::interrupted) &&
                   runs_->counts().running_roots == 0;
        });
        return record(run);
    }
    std::vector<store::EventRecord> events(const std::string& run) {
        return store_->read([&](const store::ReadTxn& txn) {
            return events::read(txn, txn.run_by_id(run).value(), {}, 10'000);
        });
    }
    std::vector<store::MessageRecord> history(const std::string& thread) {
        return store_->read([&](const store::ReadTxn& txn) {
            return txn.messages(txn.thread_by_id(thread)->no);
        });
    }
    // Results of each call of the thread, by call id.
    std::map<std::string, int> results(const std::string& thread) {
        std::map<std::string, int> out;
        for (const store::MessageRecord& message : history(thread)) {
            for (const store::ToolCall& call : message.tool_calls) {
                out[call.id] += 0;
            }
            if (message.role == store::Role::tool) {
                ++out[message.tool_call_id];
            }
        }
        return out;
    }
    std::string result_of(const std::string& thread, const std::string& call_id) {
        for (const store::MessageRecord& message : history(thread)) {
            if (message.tool_call_id == call_id) {
                return message.content;
            }
        }
        return {};
    }
    // Host path of a file in the thread's directory.
    std::string file(const std::string& thread, const std::string& name) {
        const auto found = runs_->find_thread(alice_, thread);
        return user_data(found->workdir_path + "/" + name);
    }

    base::Log log_{2, base::LogLevel::off};
    agents::User alice_{"alice", agents::UserRole::user, {}};
    bool is_known_ = true;  // or deleted since
    agents::AgentTable agents_ = agents::AgentTable::with_built_ins();
    base::Offload offload_{1};
    NoSandbox sandbox_;
    ToldModel::Answer answer_;
    std::uint32_t slots_ = 4;
    std::unique_ptr<base::asio::io_context> io_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<models::ModelRegistry> models_;
    ToldModel* model_ = nullptr;
    std::unique_ptr<RunService> runs_;
};

}  // namespace ars::runs
