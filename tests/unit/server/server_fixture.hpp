// A real listener on a free port of 127.0.0.1 with a real store behind it. Only the run manager is
// a stand-in: it stores what it is asked to, with the queue's own rules, and serves nothing by
// itself.
#pragma once

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "runtime/runs/intake.hpp"
#include "server/api.hpp"
#include "server/listener.hpp"
#include "server/reloader.hpp"
#include "server/router.hpp"
#include "tests/unit/server/raw_client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <stdlib.h>

namespace ars::server::testing {

class FakeRunManager final : public runs::RunManager {
  public:
    FakeRunManager(store::Store& store, base::asio::any_io_executor executor)
        : store_(store),
          requests_(
              store, executor, quiet_, [this](store::RunRecord run) { launched.push_back(run); }
          ),
          changed_(std::move(executor)) {
        requests_.open();
    }

    base::Task<base::Result<runs::Submitted>> submit(runs::SubmitRun request) override {
        last_submit = request;
        if (submit_error) {
            co_return std::unexpected(*submit_error);
        }
        runs::Intake intake;
        intake.query = request.query;
        intake.run.uid = request.user.uid;
        intake.run.agent_slug = request.agent_slug;
        intake.run.request_id = request.request_id;
        intake.run.body_digest = request.body_digest;
        intake.run.queue_policy = request.queue_policy;
        intake.run.source = request.source;
        if (auto thread = find_thread(request.user, request.thread_id)) {
            intake.thread = *thread;
        } else {
            intake.thread.uid = request.user.uid;
            intake.thread.agent_slug = request.agent_slug;
            intake.thread.title = request.query;
            intake.thread.id = request.makes_thread ? request.thread_id : "";
        }
        std::function<base::Result<runs::Submitted>(store::WriteTxn&)> change =
            [intake, bounds = bounds](store::WriteTxn& txn) {
                return runs::write_intake(txn, intake, bounds);
            };
        co_return co_await store_.write<runs::Submitted>(std::move(change));
    }
    base::Task<base::Result<runs::Submitted>> resume(runs::ResumeRun request) override {
        last_resume = request;
        auto run = find_run(request.user, request.run_id);
        if (!run) {
            co_return std::unexpected(run.error());
        }
        co_return store_.read([&run](const store::ReadTxn& txn) {
            return runs::submitted_run(txn, *run, false);
        });
    }
    base::Task<base::Result<store::RunRecord>> cancel(const agents::User& user, std::string run_id)
        override {
        auto run = find_run(user, run_id);
        if (run && !store::is_terminal(run->status)) {
            run->status = store::RunStatus::cancel_requested;
        }
        co_return run;
    }
    base::Task<base::Result<store::ThreadRecord>> fork_thread(runs::ForkThread request) override {
        auto origin = find_thread(request.user, request.thread_id);
        if (!origin) {
            co_return std::unexpected(origin.error());
        }
        std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> change =
            [origin = *origin, request](store::WriteTxn& txn) {
                return runs::write_fork(txn, origin, request);
            };
        co_return co_await store_.write<store::ThreadRecord>(std::move(change));
    }
    base::Task<base::Result<store::ThreadRecord>> change_thread(runs::ChangeThread change
    ) override {
        const auto thread = find_thread(change.user, change.thread_id);
        if (!thread) {
            co_return std::unexpected(thread.error());
        }
        std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> write =
            [no = thread->no, change](store::WriteTxn& txn) {
                return runs::write_thread_change(txn, no, change);
            };
        co_return co_await store_.write<store::ThreadRecord>(std::move(write));
    }
    base::Task<base::Result<store::ThreadRecord>> mark_viewed(
        const agents::User& user, std::string thread_id
    ) override {
        const auto thread = find_thread(user, thread_id);
        if (!thread) {
            co_return std::unexpected(thread.error());
        }
        std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> write =
            [no = thread->no](store::WriteTxn& txn) { return runs::write_thread_viewed(txn, no); };
        co_return co_await store_.write<store::ThreadRecord>(std::move(write));
    }
    base::Task<base::Result<runs::Project>> create_project(runs::Project wanted) override {
        std::function<base::Result<runs::Project>(store::WriteTxn&)> change =
            [wanted](store::WriteTxn& txn) { return runs::write_project(txn, wanted); };
        co_return co_await store_.write<runs::Project>(std::move(change));
    }
    base::Task<base::Result<void>> set_user_variables(
        const agents::User& user, runs::Variables variables
    ) override {
        return runs::write_user_variables(store_, user.uid, std::move(variables));
    }
    base::Task<base::Result<void>> delete_thread(const agents::User& user, std::string id)
        override {
        const auto thread = find_thread(user, id);
        co_return thread ? base::Result<void>{} : std::unexpected(thread.error());
    }
    base::Task<base::Result<store::ThreadRecord>> create_thread(runs::NewThread request) override {
        std::function<base::Result<store::ThreadRecord>(store::WriteTxn&)> change =
            [request](store::WriteTxn& txn) -> base::Result<store::ThreadRecord> {
            store::ThreadRecord thread;
            thread.uid = request.user.uid;
            thread.agent_slug = request.agent_slug;
            thread.title = request.title;
            thread.metadata = request.metadata;
            thread.workdir_path = "projects/p1";
            txn.put_thread(thread);
            return thread;
        };
        co_return co_await store_.write<store::ThreadRecord>(std::move(change));
    }
    base::Result<store::RunRecord> find_run(const agents::User& user, const std::string& run_id)
        const override {
        auto run = store_.read([&](const store::ReadTxn& txn) { return txn.run_by_id(run_id); });
        if (!run || run->uid != user.uid) {
            return base::fail(base::ErrorKind::not_found, "run_not_found", "there is no such run");
        }
        return *run;
    }
    base::Result<store::ThreadRecord> find_thread(
        const agents::User& user, const std::string& thread_id
    ) const override {
        auto thread =
            store_.read([&](const store::ReadTxn& txn) { return txn.thread_by_id(thread_id); });
        if (!thread || thread->uid != user.uid) {
            return base::fail(
                base::ErrorKind::not_found, "thread_not_found", "there is no such thread"
            );
        }
        return *thread;
    }
    base::Result<runs::RunOutcome> outcome(const agents::User& user, const std::string& run_id)
        const override {
        auto run = find_run(user, run_id);
        if (!run) {
            return std::unexpected(run.error());
        }
        return runs::RunOutcome{
            *run, run->output_message != 0 ? "the output" : "", "", std::nullopt
        };
    }
    runs::RequestService& requests() override { return requests_; }
    base::Task<bool> wait_for_events(store::RunNo, base::Deadline deadline) override {
        ++waiting;
        struct Leave {
            int& count;
            ~Leave() { --count; }
        } leave{waiting};
        co_return co_await changed_.wait(deadline);
    }
    base::Task<void> wait_for_rest(store::RunNo run, base::Deadline deadline) override {
        co_await wait_for_events(run, deadline);
    }
    const store::Store& store() const override { return store_; }
    Counts counts() const override { return figures; }
    bool accepting() const override { return ready; }

    void notify() { changed_.notify_all(); }

    runs::SubmitRun last_submit;
    runs::ResumeRun last_resume;
    std::optional<base::Error> submit_error;
    runs::IntakeBounds bounds;
    std::vector<store::RunRecord> launched;  // from the queue
    bool ready = true;
    int waiting = 0;
    Counts figures;

  private:
    store::Store& store_;
    base::Log quiet_{2, base::LogLevel::off};
    runs::RequestService requests_;
    base::Notifier changed_;
};

inline const char* kAliceKey = "alice-secret";
inline const char* kBobKey = "bob-secret";

inline agents::User user_named(std::string uid) {
    agents::User user;
    user.uid = std::move(uid);
    return user;
}

class ServerTest : public ::testing::Test {
  protected:
    ServerTest() {
        char name[] = "/tmp/ars-server-test-XXXXXX";
        directory_ = ::mkdtemp(name);
        auto opened = store::Store::open(
            {.directory = directory_, .max_size = std::size_t{1} << 30U, .sync = false}, log_
        );
        if (!opened) {
            throw std::runtime_error(opened.error().message);
        }
        store_ = std::move(*opened);
    }
    ~ServerTest() override {
        stop();
        people_.reset();
        runs_.reset();
        store_.reset();
        for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
            std::filesystem::remove(entry.path());
        }
        std::filesystem::remove(directory_);
    }

    static std::vector<people::DeclaredKey> two_keys() {
        return {
            {.name = "a", .sha256 = base::sha256_hex(kAliceKey), .uid = "alice"},
            {.name = "b", .sha256 = base::sha256_hex(kBobKey), .uid = "bob"},
        };
    }

    void start(HttpLimits limits = {}, std::vector<people::DeclaredKey> keys = {}) {
        runs_ = std::make_unique<FakeRunManager>(*store_, io_.get_executor());
        auto people = people::Directory::open(
            io_.get_executor(),
            *store_,
            log_,
            {.file = "appliance.yaml", .users = users_, .keys = std::move(keys), .rate_limit = rate_
            }
        );
        ASSERT_TRUE(people) << people.error().message;
        people_ = std::move(*people);
        authenticator_ = std::make_unique<Authenticator>(*people_, "127.0.0.1");
        catalog_ = std::make_unique<agents::AgentCatalog>(*store_, log_);
        ASSERT_TRUE(catalog_->load(agent_files_));
        reloader_ = std::make_unique<Reloader>(
            io_.get_executor(),
            config_,
            *catalog_,
            offload_,
            log_,
            [this](people::Declaration now) { return people_->declare(std::move(now)); }
        );
        agents::KnownNames names;
        names.tools = {"execute", "read_file"};
        names.providers = {"main"};
        names.policies = {"default"};
        auto attachments = runs::AttachmentService::open(
            {io_.get_executor(),
             *store_,
             offload_,
             log_,
             files_.workspace_of,
             base::milliseconds(3600'000)},
            directory_ + "/attachments"
        );
        ASSERT_TRUE(attachments) << attachments.error().message;
        attachments_ = std::move(*attachments);
        api_.reset(new Api{
            *runs_,
            catalog_->table(),
            *catalog_,
            std::move(names),
            *reloader_,
            *people_,
            *authenticator_,
            log_,
            stats_,
            "0.0.test",
            "namespaces",
            "epoll",
            base::now_ms(),
            files_,
            *attachments_,
            limits
        });
        router_ = std::make_unique<Router>(*api_);
        add_routes(*router_);
        auto opened = Listener::open(io_.get_executor(), {"127.0.0.1", 0, true}, *api_, *router_);
        ASSERT_TRUE(opened) << opened.error().message;
        listener_ = std::move(*opened);
        port_ = listener_->port();
        base::asio::co_spawn(io_, listener_->serve(), [this](std::exception_ptr error) {
            serve_error_ = error;
            served_.set_value();
        });
        thread_ = std::thread([this] { io_.run(); });
    }
    void stop(base::milliseconds grace = base::milliseconds(2000)) {
        if (!thread_.joinable()) {
            return;
        }
        base::asio::post(io_, [this, grace] { listener_->stop(grace); });
        thread_.join();
        EXPECT_FALSE(serve_error_);
    }

    // Runs `work` on the server's thread and waits for it.
    template <class Work>
    auto on_server(Work work) {
        std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
        auto done = task.get_future();
        base::asio::post(io_, [&task] { task(); });
        return done.get();
    }
    // Waits until `condition`, seen on the server's thread, holds; false after ten seconds.
    template <class Condition>
    bool eventually(Condition condition) {
        for (int i = 0; i < 1000; ++i) {
            if (on_server(condition)) {
                return true;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return false;
    }

    RawClient connect() const { return RawClient(port_); }
    RawResponse get(std::string_view path, std::string_view headers = {}) const {
        RawClient client = connect();
        client.request("GET " + std::string(path), headers);
        return client.read_response();
    }
    RawResponse post(std::string_view path, std::string_view body, std::string_view headers = {})
        const {
        RawClient client = connect();
        client.request("POST " + std::string(path), headers, body);
        return client.read_response();
    }

    // A run of `uid` with `events` of type "custom" stored, and `end` when it is terminal.
    store::RunRecord make_run(
        int events, store::RunStatus status, const std::string& uid = "alice", bool with_end = true
    ) {
        store::RunRecord run;
        const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            store::ThreadRecord thread;
            thread.uid = uid;
            thread.agent_slug = "default-chatbot";
            txn.put_thread(thread);
            run.thread = thread.no;
            run.thread_id = thread.id;
            run.uid = uid;
            run.agent_slug = thread.agent_slug;
            run.request_id = "req-" + thread.id;
            run.status = status;
            txn.put_run(run);
            for (int i = 0; i < events; ++i) {
                store::EventRecord event;
                event.run = run.no;
                event.type = "custom";
                event.payload = "{\"n\":" + std::to_string(i) + "}";
                txn.add_event(event);
            }
            if (store::is_terminal(status) && with_end) {
                store::EventRecord event;
                event.run = run.no;
                event.type = "end";
                event.payload = R"({"status":"completed"})";
                txn.add_event(event);
            }
            return {};
        });
        EXPECT_TRUE(done);
        return run;
    }
    void add_event(
        store::RunNo run,
        const std::string& type,
        const std::string& payload = "{}",
        std::optional<store::RunStatus> status = std::nullopt
    ) {
        const auto done = store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            store::EventRecord event;
            event.run = run;
            event.type = type;
            event.payload = payload;
            txn.add_event(event);
            if (status) {
                auto record = txn.run(run);
                record->status = *status;
                txn.put_run(*record);
            }
            return {};
        });
        ASSERT_TRUE(done);
        on_server([this] { runs_->notify(); });
    }

    base::Log log_{2, base::LogLevel::off};
    std::string directory_;
    std::unique_ptr<store::Store> store_;
    base::asio::io_context io_{1};
    std::vector<agents::Agent> agent_files_;
    LoadedConfig config_;
    base::Offload offload_{1};
    std::unique_ptr<agents::AgentCatalog> catalog_;
    std::unique_ptr<Reloader> reloader_;
    FileAccess files_;
    HttpStats stats_;
    std::unique_ptr<FakeRunManager> runs_;
    std::unique_ptr<runs::AttachmentService> attachments_;
    std::vector<agents::User> users_{user_named("alice"), user_named("bob")};  // declared ones
    std::optional<people::RateLimit> rate_;
    std::unique_ptr<people::Directory> people_;
    std::unique_ptr<Authenticator> authenticator_;
    std::unique_ptr<Api> api_;
    std::unique_ptr<Router> router_;
    std::unique_ptr<Listener> listener_;
    std::thread thread_;
    std::promise<void> served_;
    std::exception_ptr serve_error_;
    std::uint16_t port_ = 0;
};

inline std::string events_path(const store::RunRecord& run) {
    return "/api/agent/runs/" + run.id + "/events";
}

}  // namespace ars::server::testing
