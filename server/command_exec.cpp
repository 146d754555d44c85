// `ars exec`: commands in a fresh scope, their output and exit code passed through.
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/offload.hpp"
#include "base/text.hpp"
#include "fsmount/mount_plan.hpp"
#include "sandbox/privileges.hpp"
#include "sandbox/scope.hpp"
#include "server/exec_batch.hpp"
#include "server/options.hpp"
#include "server/tier_choice.hpp"

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

struct Session {
    const ExecOptions& options;
    sandbox::Tier tier = sandbox::Tier::namespaces;
    std::shared_ptr<fsmount::Workspace> workspace;
    sandbox::Policy policy;
    std::unique_ptr<sandbox::Sandbox> sandbox;
    LineReader lines{STDIN_FILENO};
    bool interrupted = false;
    int exit_code = 0;
};

int fail_setup(const std::string& message) {
    std::fprintf(stderr, "ars exec: %s\n", message.c_str());
    return kSetupFailed;
}

base::Result<sandbox::Policy> policy_named(const std::string& name) {
    sandbox::Policy policy;
    policy.name = name;
    if (name == "host") {
        policy.network = sandbox::Network::host;
        policy.shared_network = sandbox::SharedNetwork();
    } else if (name != "default") {
        return base::fail(
            base::ErrorKind::invalid,
            "unknown_policy",
            "unknown policy \"" + name +
                "\"; there are: default, host (shares this machine's network)"
        );
    }
    return policy;
}

sandbox::Outcome failed_outcome(const std::string& detail) {
    sandbox::Outcome outcome;
    outcome.detail = detail;
    return outcome;
}

void print_json(const sandbox::Outcome& outcome) {
    // Straight to the descriptor: a reader of a batch sees each line when its command ended.
    (void)base::write_all(STDOUT_FILENO, boost::json::serialize(outcome.to_json()) + "\n");
}

base::Task<base::Result<std::shared_ptr<sandbox::Scope>>> acquire_scope(Session& session) {
    auto spec = [&session] {
        return make_scope_spec(session.policy, session.tier, *session.workspace, {});
    };
    const sandbox::ScopeKey key{"exec", "exec", session.policy.name};
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

base::Task<sandbox::Outcome> run_command(Session& session, sandbox::Command command) {
    // Acquired for each command: a scope that died under the last one is replaced.
    auto scope = co_await acquire_scope(session);
    if (!scope) {
        co_return failed_outcome(scope.error().message);
    }
    co_return co_await (*scope)->run(std::move(command));
}

// What a person needs to know and the exit code does not say.
void explain(const sandbox::Outcome& outcome, base::milliseconds timeout) {
    std::string text;
    if (outcome.status == sandbox::OutcomeStatus::timed_out) {
        text = "timed out after " + std::to_string(timeout.count()) + " ms";
    }
    if (!outcome.detail.empty()) {
        text += (text.empty() ? "" : ": ") + outcome.detail;
    }
    if (!outcome.background.empty()) {
        text += std::string(text.empty() ? "" : "; ") + std::to_string(outcome.background.size()) +
                " background process(es) ended with the sandbox";
    }
    if (!text.empty()) {
        std::fprintf(stderr, "ars exec: %s\n", text.c_str());
    }
}

base::Task<void> exec_one(Session& session) {
    sandbox::Command command = exec_command(session.options.command, session.options.timeout);
    if (!session.options.json) {
        // A reader that went away ends nothing: the command's exit code still counts.
        command.on_output = [](int stream, std::string_view bytes) {
            (void)base::write_all(stream == 1 ? STDOUT_FILENO : STDERR_FILENO, bytes);
            return true;
        };
    }
    sandbox::Outcome outcome;
    bool cancelled = false;
    try {
        outcome = co_await run_command(session, std::move(command));
    } catch (const boost::system::system_error&) {
        cancelled = true;  // a signal; the command's tree is gone
    }
    if (cancelled) {
        co_await base::shield_from_cancellation();
        outcome.status = sandbox::OutcomeStatus::cancelled;
    }
    if (session.options.json) {
        print_json(outcome);
    } else {
        explain(outcome, session.options.timeout);
    }
    session.exit_code = outcome.shell_code();
    co_await session.sandbox->close();
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
        auto command =
            line.too_long
                ? base::fail(base::ErrorKind::too_large, "bad_batch_line", "line too long")
                : parse_batch_line(line.text, session.options.timeout);
        if (!command) {
            print_json(failed_outcome(command.error().message));
            continue;
        }
        print_json(co_await run_command(session, std::move(*command)));
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
    auto policy = policy_named(options.policy);
    if (!policy) {
        std::fprintf(stderr, "ars exec: %s\n", policy.error().message.c_str());
        return kExitUsage;
    }
    const sandbox::Tier tier = options.tier.value_or(sandbox::Tier::namespaces);
    auto opened = open_workspace(tier, options.workspace, options.allow_root_owner);
    if (!opened) {
        return fail_setup(opened.error().message);
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        return fail_setup(dropped.error().message);
    }
    const base::Log log(STDERR_FILENO, base::LogLevel::off);
    asio::io_context io(1);
    auto sandbox = sandbox::make_sandbox(
        io.get_executor(), {.expected = policy->network, .expected_tier = tier}, log
    );
    if (!sandbox) {
        return fail_setup(sandbox.error().message);
    }
    Session session{
        .options = options,
        .tier = tier,
        .workspace = opened->workspace,
        .policy = *policy,
        .sandbox = std::move(*sandbox)
    };
    drive(session, io);
    return session.exit_code;
}

}  // namespace ars::server
