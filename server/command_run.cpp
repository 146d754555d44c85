// `ars run`: one run in this process, shown as it happens. Each call has a store of its own, so
// that calls don't wait for each other and an unfinished one never goes on in another's directory.
#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/units.hpp"
#include "runtime/runs/interrupts.hpp"
#include "runtime/runs/run_view.hpp"
#include "sandbox/privileges.hpp"
#include "server/app.hpp"
#include "server/changed_files.hpp"
#include "server/directories.hpp"
#include "server/options.hpp"
#include "server/run_dialog.hpp"
#include "server/run_follower.hpp"
#include "server/tier_choice.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace ars::server {

namespace json = boost::json;

namespace {

int fail_start(const base::Error& error) {
    std::fprintf(stderr, "ars run: %s\n", error.message.c_str());
    return kExitUsage;
}

std::string find_config(const std::string& given) {
    if (!given.empty()) {
        return given;
    }
    return ::access("configs/appliance.yaml", R_OK) == 0 ? "configs/appliance.yaml"
                                                         : "/etc/ars/appliance.yaml";
}

// "<state>/runs/2026-11-30T12-00-00Z-1a2b3c4d"
std::string run_directory(const std::string& state) {
    std::string stamp = base::iso8601(base::now_ms()).substr(0, 19);
    std::replace(stamp.begin(), stamp.end(), ':', '-');
    return state + "/runs/" + stamp + "Z-" + base::random_uuid().substr(0, 8);
}

struct Session {
    const RunOptions& options;
    App& app;
    agents::User user;
    std::string log_path;
    std::int64_t started_ms = 0;
    std::optional<RunDialog> dialog;  // when a person is there to be asked
    int exit_code = 1;
};

json::array pending_of(const Session& session, const store::RunRecord& run) {
    return session.app.runs().store().read([&](const store::ReadTxn& txn) {
        return runs::interrupts_to_json(txn, run);
    });
}

// A run that nobody is there to answer: what it wanted to know, and how to get by without that.
void print_waiting(const Session& session, const store::RunRecord& run) {
    std::fprintf(stderr, "ars run: the run waits for a person who is not here:\n");
    for (const json::value& item : pending_of(session, run)) {
        const json::object& interrupt = item.as_object();
        const char* what = interrupt.contains("questions") ? "questions" : "arguments";
        std::fprintf(
            stderr,
            "  %s %s\n",
            interrupt.at("tool_name").as_string().c_str(),
            json::serialize(interrupt.at(what)).c_str()
        );
    }
    std::fprintf(
        stderr,
        "Run it on a terminal to answer, or give the agent `tool_approval_mode: always_trust` and "
        "leave ask_user_question out of its `tools`.\n"
    );
}

void print_end(const Session& session, const runs::RunOutcome& outcome) {
    const store::RunRecord& run = outcome.run;
    std::printf("\n");
    if (run.status == store::RunStatus::interrupted) {
        print_waiting(session, run);
    } else if (!outcome.output.empty()) {
        std::printf("Answer:\n%s\n\n", outcome.output.c_str());
    } else {
        std::printf("%s: %s\n\n", store::to_string(run.status), run.error_message.c_str());
    }
    const auto thread = session.app.runs().find_thread(session.user, run.thread_id);
    const auto workspace = session.app.workspace_of(run.uid);
    const std::vector<ChangedFile> files =
        thread && workspace ? changed_files(*workspace, thread->workdir_path, session.started_ms)
                            : std::vector<ChangedFile>();
    if (!files.empty()) {
        std::printf("Files written:\n");
    }
    for (const ChangedFile& file : files) {
        std::printf(
            "  %s  (%llu bytes)\n", file.path.c_str(), static_cast<unsigned long long>(file.size)
        );
    }
    std::printf("Event log: %s\n", session.log_path.c_str());
    std::printf(
        "%s in %s, %u model calls, %llu tokens in, %llu out\n",
        store::to_string(run.status),
        base::format_duration(base::milliseconds(base::now_ms() - session.started_ms)).c_str(),
        run.steps,
        static_cast<unsigned long long>(run.usage.input),
        static_cast<unsigned long long>(run.usage.output)
    );
}

base::Task<void> cancel_on_signal(Session* session, std::string run_id) {
    base::asio::signal_set signals(session->app.io(), SIGTERM, SIGINT);
    co_await signals.async_wait(base::asio::use_awaitable);
    std::fprintf(stderr, "ars run: cancelling (once more to stop at once)\n");
    signals.clear();
    (void)co_await session->app.runs().cancel(session->user, std::move(run_id));
    if (session->dialog) {
        session->dialog->stop();
    }
}

base::Task<base::Result<runs::Submitted>> submit(Session* session) {
    runs::RunService& runs = session->app.runs();
    if (const auto ready = co_await runs.recover(); !ready) {
        co_return std::unexpected(ready.error());
    }
    runs::NewThread new_thread;
    new_thread.user = session->user;
    new_thread.agent_slug = session->options.agent;
    if (!session->options.workdir.empty()) {
        new_thread.workdir_path = "";  // the given directory itself
    }
    const auto thread = co_await runs.create_thread(std::move(new_thread));
    if (!thread) {
        co_return std::unexpected(thread.error());
    }
    runs::SubmitRun request;
    request.user = session->user;
    request.agent_slug = session->options.agent;
    request.query = session->options.prompt;
    request.thread_id = thread->id;
    co_return co_await runs.submit(std::move(request));
}

// Asks the person what the run waits for: the run that goes on, or nothing when nobody answers.
base::Task<std::optional<store::RunRecord>> resumed(Session* session, store::RunRecord run) {
    json::array pending = pending_of(*session, run);
    if (!session->dialog || pending.empty()) {
        co_return std::nullopt;
    }
    std::optional<json::object> answers = co_await session->dialog->ask(std::move(pending));
    if (!answers) {
        co_return std::nullopt;
    }
    runs::ResumeRun request;
    request.user = session->user;
    request.run_id = run.id;
    request.agent_slug = run.agent_slug;
    request.resume = std::move(*answers);
    const auto next = co_await session->app.runs().resume(std::move(request));
    if (!next) {
        std::fprintf(stderr, "ars run: %s\n", next.error().message.c_str());
        co_return std::nullopt;
    }
    co_return next->run;
}

base::Task<void> serve_one(Session* session) {
    const base::Result<runs::Submitted> submitted = co_await submit(session);
    if (!submitted) {
        session->exit_code = fail_start(submitted.error());
        co_await session->app.shutdown();
        session->app.io().stop();
        co_return;
    }
    base::asio::co_spawn(
        session->app.io(), cancel_on_signal(session, submitted->run.id), [](std::exception_ptr) {}
    );
    const base::Fd log_file(
        ::open(session->log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)
    );
    RunPrinter printer(stdout, ::isatty(STDOUT_FILENO) == 1);
    const bool json = session->options.json;
    RunFollower follower(
        session->app.runs(),
        session->app.io().get_executor(),
        json ? nullptr : &printer,
        json ? stdout : nullptr,
        &log_file
    );
    std::string run_id = submitted->run.id;
    for (std::optional<store::RunRecord> run = submitted->run; run;) {
        run_id = run->id;
        co_await follower.follow(*run);
        const auto ended = session->app.runs().find_run(session->user, run_id);
        run = ended ? co_await resumed(session, *ended) : std::nullopt;
    }
    const auto outcome = session->app.runs().outcome(session->user, run_id);
    if (outcome && outcome->run.status == store::RunStatus::completed) {
        session->exit_code = 0;
    } else if (outcome && outcome->run.status == store::RunStatus::interrupted) {
        session->exit_code = kExitInterrupted;
    }
    if (outcome && !json) {
        print_end(*session, *outcome);
    }
    co_await session->app.shutdown();
    session->app.io().stop();
}

// The options of an app for one run, with its directories made; before privileges are dropped.
base::Result<AppOptions> prepare(const RunOptions& options) {
    const std::string state = state_directory();
    AppOptions app;
    app.io = options.io;
    app.log_level = base::LogLevel::warning;
    app.users_dir = state + "/users";
    app.data_dir = run_directory(state);
    for (const std::string& path : {state, state + "/runs", app.users_dir, app.data_dir}) {
        if (auto made = make_own_directory(path); !made) {
            return std::unexpected(made.error());
        }
    }
    app.tier = choose_tier(options.tier);
    if (!options.workdir.empty() || app.tier == sandbox::Tier::landlock) {
        auto opened = open_workspace(app.tier, options.workdir, options.allow_root_owner);
        if (!opened) {
            return std::unexpected(opened.error());
        }
        app.workspace = std::move(opened->workspace);
    }
    return app;
}

}  // namespace

int command_run(const RunOptions& options) {
    LoadedConfig config;
    if (const int code = load_config_or_report("ars run", find_config(options.config), config);
        code != 0) {
        return code;
    }
    auto app_options = prepare(options);
    if (!app_options) {
        return fail_start(app_options.error());
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        return fail_start(dropped.error());
    }
    const std::string data_dir = app_options->data_dir;
    if (auto reachable = check_reachable(data_dir); !reachable) {
        return fail_start(reachable.error());
    }
    auto app = App::build(std::move(config), std::move(*app_options));
    if (!app) {
        return fail_start(app.error());
    }
    Session session{
        options,
        **app,
        (*app)->config().local_user(),
        data_dir + "/events.jsonl",
        base::now_ms(),
        std::nullopt,
    };
    std::FILE* screen = ::isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    if (!options.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(::fileno(screen)) == 1) {
        session.dialog.emplace(STDIN_FILENO, screen);
    }
    base::asio::co_spawn((*app)->io(), serve_one(&session), [](std::exception_ptr) {});
    (*app)->io().run();
    return session.exit_code;
}

}  // namespace ars::server
