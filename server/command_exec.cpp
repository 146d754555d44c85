// `ars exec`: commands in a fresh scope, their output and exit code passed through.
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/offload.hpp"
#include "base/text.hpp"
#include "fsmount/mount_plan.hpp"
#include "sandbox/privileges.hpp"
#include "sandbox/scope.hpp"
#include "server/exec_answers.hpp"
#include "server/exec_batch.hpp"
#include "server/exec_printer.hpp"
#include "server/line_reader.hpp"
#include "server/options.hpp"
#include "server/tier_choice.hpp"
#include "server/tool_settings.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json/serialize.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

#include <unistd.h>

namespace ars::server {

namespace {

namespace asio = boost::asio;

constexpr int kSetupFailed = 125;
// For a reader who is slow, beyond the command's own time limit.
constexpr auto kFlushGrace = std::chrono::seconds(1);

struct Session {
    const ExecOptions& options;
    sandbox::Tier tier = sandbox::Tier::namespaces;
    std::shared_ptr<fsmount::Workspace> workspace;
    ToolSettings settings;
    std::unique_ptr<sandbox::Sandbox> sandbox;
    Printer printer;
    LineReader lines{STDIN_FILENO};
    bool interrupted = false;
    int exit_code = 0;
};

int fail_setup(const std::string& message) {
    std::fprintf(stderr, "ars exec: %s\n", message.c_str());
    return kSetupFailed;
}

void print_json(Session& session, const boost::json::object& answer) {
    session.printer.put(STDOUT_FILENO, boost::json::serialize(answer) + "\n");
}

base::Task<base::Result<std::shared_ptr<sandbox::Scope>>> acquire_scope(Session& session) {
    auto spec = [&session] {
        fsmount::MountPlanner planner(session.settings.plan);
        return make_scope_spec(session.settings.policy, session.tier, *session.workspace, planner);
    };
    const sandbox::ScopeKey key{"exec", "exec", session.settings.policy.name};
    auto scope = co_await session.sandbox->acquire(key, spec);
    if (scope || scope.error().code != "scope_setup_failed" || session.options.tier ||
        session.tier == sandbox::Tier::landlock) {
        co_return scope;
    }
    // --tier auto: the second best, from here on. Its workspace is not the one that was opened.
    auto real = open_workspace(sandbox::Tier::landlock, session.options.workspace, false);
    if (real) {
        session.tier = sandbox::Tier::landlock;
        session.workspace = std::move(real->workspace);
        auto second = co_await session.sandbox->acquire(key, spec);
        if (second) {
            co_return second;
        }
        real = std::unexpected(second.error());
    }
    base::Error both = scope.error();
    both.message += ". The landlock tier: " + real.error().message;
    co_return std::unexpected(std::move(both));
}

// Output and exit code passed through: the command waits for a reader who is slow, but not beyond
// its time limit.
base::Task<sandbox::Outcome> pass_through(Session& session, sandbox::Command command) {
    auto scope = co_await acquire_scope(session);
    if (!scope) {
        co_return failed_outcome(scope.error().message);
    }
    command.on_output = [&session](int stream, std::string_view bytes) {
        return session.printer.put(stream == 1 ? STDOUT_FILENO : STDERR_FILENO, std::string(bytes));
    };
    auto started = co_await (*scope)->start(std::move(command));
    if (!started) {
        co_return failed_outcome(started.error().message);
    }
    const auto process = *started;
    session.printer.on_room([process] { process->resume_output(); });
    bool cancelled = false;
    try {
        co_await process->wait(base::Deadline::never());  // its own time limit bounds it
    } catch (const boost::system::system_error&) {
        cancelled = true;
    }
    if (cancelled) {
        co_await base::shield_from_cancellation();
        co_await process->kill();
        throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_return process->outcome();
}

base::Task<sandbox::Outcome> run_command(Session& session, sandbox::Command command) {
    auto scope = co_await acquire_scope(session);
    if (!scope) {
        co_return failed_outcome(scope.error().message);
    }
    co_return co_await (*scope)->run(std::move(command));
}

// What a person needs to know and the exit code does not say.
void explain(Session& session, const sandbox::Outcome& outcome) {
    std::string text;
    if (outcome.status == sandbox::OutcomeStatus::timed_out) {
        text = "timed out after " + std::to_string(session.options.timeout.count()) + " ms";
    }
    if (!outcome.detail.empty()) {
        text += (text.empty() ? "" : ": ") + outcome.detail;
    }
    if (!outcome.background.empty()) {
        text += std::string(text.empty() ? "" : "; ") + std::to_string(outcome.background.size()) +
                " background process(es) ended with the sandbox";
    }
    if (!text.empty()) {
        session.printer.put(STDERR_FILENO, "ars exec: " + text + "\n");
    }
}

base::Task<void> exec_one(Session& session) {
    sandbox::Command command = exec_command(
        session.options.command, session.options.timeout, session.settings.environment
    );
    const auto limit = base::Deadline::after(session.options.timeout);
    sandbox::Outcome outcome;
    bool cancelled = false;
    try {
        outcome = co_await (
            session.options.json ? run_command(session, std::move(command))
                                 : pass_through(session, std::move(command))
        );
    } catch (const boost::system::system_error&) {
        cancelled = true;  // a signal; the command's tree is gone
    }
    if (cancelled) {
        co_await base::shield_from_cancellation();
        outcome.status = sandbox::OutcomeStatus::cancelled;
    }
    session.exit_code = outcome.shell_code();
    if (session.options.json) {
        print_json(session, outcome.to_json());
    } else {
        explain(session, outcome);
    }
    try {
        const auto grace = base::Deadline::after(kFlushGrace);
        co_await session.printer.flushed(limit.at > grace.at ? limit : grace);
    } catch (const boost::system::system_error&) {
        cancelled = true;
    }
    co_await base::shield_from_cancellation();
    session.printer.on_room(nullptr);
    co_await session.sandbox->close();
}

base::Task<boost::json::object> answer_line(Session& session, const LineReader::Line& line) {
    auto parsed =
        line.too_long
            ? base::fail(base::ErrorKind::too_large, "bad_batch_line", "line too long")
            : parse_batch_line(line.text, session.options.timeout, session.settings.environment);
    if (!parsed) {
        co_return failed_outcome(parsed.error().message).to_json();
    }
    // Acquired for each line: a scope that died under the last one is replaced.
    auto scope = co_await acquire_scope(session);
    if (!scope) {
        co_return failed_outcome(scope.error().message).to_json();
    }
    co_return co_await answer(*scope, std::move(*parsed));
}

base::Task<void> exec_lines(Session& session, base::Offload& offload) {
    for (;;) {
        auto read = [&session] { return session.lines.next(); };
        const LineReader::Line line = co_await offload.run(read);
        if (line.end) {
            co_return;
        }
        if (base::trim(line.text).empty() && !line.too_long) {
            continue;
        }
        print_json(session, co_await answer_line(session, line));
        // Its reader bounds it; commands that go on keep their time limits meanwhile.
        co_await session.printer.flushed(base::Deadline::never());
    }
}

base::Task<void> exec_batch(Session& session) {
    base::Offload offload(1);
    try {
        co_await exec_lines(session, offload);
    } catch (const boost::system::system_error&) {
        session.interrupted = true;
    }
    session.exit_code = session.interrupted ? 128 + SIGINT : 0;
    co_await base::shield_from_cancellation();
    co_await session.sandbox->close();
}

base::Result<OpenedWorkspace> open_exec_workspace(sandbox::Tier tier, const ExecOptions& options) {
    if (tier == sandbox::Tier::namespaces && options.workspace.empty() && !options.batch) {
        // One command in a scope that ends with it: its files need no disk.
        return OpenedWorkspace{nullptr, fsmount::in_scope_workspace()};
    }
    return open_workspace(tier, options.workspace, options.allow_root_owner);
}

// Runs the session to its end; SIGINT and SIGTERM end the command and everything it started first.
void drive(Session& session, asio::io_context& io) {
    asio::cancellation_signal cancel;
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&cancel, &session](const boost::system::error_code& error, int) {
        if (!error) {
            session.interrupted = true;
            session.lines.stop();
            cancel.emit(asio::cancellation_type::terminal);
        }
    });
    std::exception_ptr failure;
    asio::co_spawn(
        io,
        session.options.batch ? exec_batch(session) : exec_one(session),
        asio::bind_cancellation_slot(
            cancel.slot(),
            [&failure, &signals](std::exception_ptr error) {
                failure = error;
                signals.cancel();
            }
        )
    );
    io.run();
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace

int command_exec(const ExecOptions& options) {
    ToolSettings settings;
    if (const int code =
            load_tool_settings("ars exec", options.config, options.policy, options.io, settings);
        code != 0) {
        return code;
    }
    const sandbox::Tier tier = options.tier.value_or(sandbox::Tier::namespaces);
    auto opened = open_exec_workspace(tier, options);
    if (!opened) {
        return fail_setup(opened.error().message);
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        return fail_setup(dropped.error().message);
    }
    const base::Log log(STDERR_FILENO, base::LogLevel::off);
    asio::io_context io(1);
    settings.sandbox.expected_tier = tier;
    settings.sandbox.max_scopes = 1;
    if (settings.sandbox.backend == sandbox::IoBackend::automatic && !options.batch) {
        // One command's output costs less than a ring's life.
        settings.sandbox.backend = sandbox::IoBackend::epoll;
    }
    auto sandbox = sandbox::make_sandbox(io.get_executor(), settings.sandbox, log);
    if (!sandbox) {
        return fail_setup(sandbox.error().message);
    }
    Session session{
        .options = options,
        .tier = tier,
        .workspace = opened->workspace,
        .settings = std::move(settings),
        .sandbox = std::move(*sandbox),
        .printer = Printer(io.get_executor())
    };
    drive(session, io);
    return session.exit_code;
}

}  // namespace ars::server
