// execute: a shell command in the sandbox scope of the execution tree. The only tool that starts
// processes; what goes on in the background is looked after by background_commands.
#include "base/fields.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/command_report.hpp"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>

#include <unistd.h>

namespace ars::tools {

namespace {

namespace limits = base::limits;

struct Arguments {
    std::string command;
    std::optional<std::int64_t> timeout;
    std::optional<std::int64_t> wait;
    std::optional<std::string> stdin_data;
    bool stdin_open = false;
    bool terminal = false;

    // Seconds. What is to go on in the background has its time.
    [[nodiscard]] std::int64_t hard_limit() const {
        const auto limit = wait ? limits::kCommandTimeoutMax : limits::kCommandTimeout;
        return timeout.value_or(std::chrono::seconds(limit).count());
    }
};

constexpr std::int64_t kLongest = std::chrono::seconds(limits::kCommandTimeoutMax).count();

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table =
        base::Fields<Arguments>{}
            .text(
                "command",
                &Arguments::command,
                {.required = true,
                 .min = 1,
                 .doc = "Shell text, run by bash in the working directory."}
            )
            .integer(
                "timeout",
                &Arguments::timeout,
                {.min = 1,
                 .max = kLongest,
                 .doc = "Seconds after which the command and all it started are killed. Default "
                        "180, with `wait` 3600."}
            )
            .integer(
                "wait",
                &Arguments::wait,
                {.min = 0,
                 .max = kLongest,
                 .doc = "Seconds to wait for its end. When they pass it goes on in the background, "
                        "and the answer has its id. For servers, watchers and long builds."}
            )
            .text(
                "stdin",
                &Arguments::stdin_data,
                {.max = std::int64_t{limits::kStdinBytes},
                 .doc = "Text it reads from its standard input, which is empty otherwise."}
            )
            .boolean(
                "stdin_open",
                &Arguments::stdin_open,
                {.doc = "Leaves its standard input open for execute_input. Needs `wait`."}
            )
            .boolean(
                "terminal",
                &Arguments::terminal,
                {.doc = "Runs it in a terminal, for programs that insist on one."}
            );
    return table;
}

// The scope shows the image that this process sees, so its shells are ours.
const char* shell() {
    static const bool has_bash = ::access("/bin/bash", X_OK) == 0;
    return has_bash ? "bash" : "sh";
}

class ExecuteTool final : public Tool {
  public:
    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, boost::json::object arguments)
        override {
        Arguments decoded;
        if (const auto faults = fields().decode(arguments, decoded); !faults.empty()) {
            co_return error_result(base::faults_error("invalid_argument", faults));
        }
        if (auto refused = refuse(decoded)) {
            co_return std::move(*refused);
        }
        Environment& environment = *context.environment;
        const auto scope = co_await environment.scope();
        if (!scope) {
            co_return error_result(scope.error());
        }
        // Without a log the answer still has head and tail.
        const auto log = environment.reserve_output_file(context.call_id);
        sandbox::Command command = command_of(decoded, context);
        if (log) {
            command.log = log->fd;
            command.log_guest_path = log->guest_path;
        }
        const bool replaced = environment.note_generation((*scope)->generation());
        ToolResult result;
        if (decoded.wait) {
            const auto soft = base::Deadline::after(std::chrono::seconds(*decoded.wait));
            auto started = co_await start_and_wait(*scope, std::move(command), soft);
            if (!started) {
                co_return error_result(started.error());
            }
            const sandbox::Process& process = **started;
            if (process.running()) {
                result = running_result(**scope, process);
                if (log) {
                    publish(environment, *log, result);
                }
            } else {
                result = ended_result(process.outcome(), decoded, environment, log);
            }
        } else {
            const sandbox::Outcome outcome = co_await (*scope)->run(std::move(command));
            result = ended_result(outcome, decoded, environment, log);
        }
        if (replaced) {
            result.text.insert(
                0,
                "[the sandbox was made anew: /tmp and background processes from before are gone]\n"
            );
        }
        co_return result;
    }

  private:
    using Log = base::Result<Environment::OutputFile>;

    static std::optional<ToolResult> refuse(const Arguments& arguments) {
        const std::string& command = arguments.command;
        if (arguments.stdin_open && !arguments.wait) {
            return tool_error(
                "invalid_argument: stdin_open needs wait: nobody could write to it before it ends"
            );
        }
        if (command.find('\0') != std::string::npos) {
            return tool_error("invalid_argument: command has a NUL character");
        }
        if (command.size() >= limits::kCommandBytes) {
            return tool_error(fmt::format(
                "invalid_argument: command has {} bytes, more than the {} one may have; put the "
                "text into a file "
                "with write_file and run that",
                command.size(),
                limits::kCommandBytes - 1
            ));
        }
        return std::nullopt;
    }

    static sandbox::Command command_of(const Arguments& arguments, const ToolContext& context) {
        sandbox::Command command;
        command.argv = {shell(), "-c", arguments.command};
        command.environment = context.environment->variables();
        command.cwd = context.environment->cwd();
        command.timeout = std::chrono::seconds(arguments.hard_limit());
        command.stdin_data = arguments.stdin_data;
        command.stdin_open = arguments.stdin_open;
        if (arguments.terminal) {
            command.terminal = sandbox::TerminalSize{};
        }
        // Room for the lines that we add, so that the answer is never cut twice.
        command.capture_bytes = limits::kToolResultBytes - 16 * limits::kKiB;
        return command;
    }

    // A caller that is cancelled meanwhile takes the command with it.
    static base::Task<base::Result<std::shared_ptr<sandbox::Process>>> start_and_wait(
        std::shared_ptr<sandbox::Scope> scope, sandbox::Command command, base::Deadline soft
    ) {
        auto started = co_await scope->start(std::move(command));
        if (!started) {
            co_return std::unexpected(started.error());
        }
        bool cancelled = false;
        try {
            co_await (*started)->wait(soft);
        } catch (const boost::system::system_error&) {
            cancelled = true;
        }
        if (cancelled) {
            co_await base::shield_from_cancellation();
            co_await (*started)->kill();
            throw boost::system::system_error(base::asio::error::operation_aborted);
        }
        co_return *started;
    }

    static ToolResult running_result(const sandbox::Scope& scope, const sandbox::Process& process) {
        const std::string id = command_id(scope, process);
        const auto total = process.read(std::numeric_limits<std::uint64_t>::max(), 0).total;
        ToolResult result;
        result.text = whole_lines(process.outcome().merged) + going_on(id, total);
        result.facts = {{"status", "running"}, {"id", id}, {"next_offset", total}};
        return result;
    }

    static ToolResult ended_result(
        const sandbox::Outcome& outcome,
        const Arguments& arguments,
        const Environment& environment,
        const Log& log
    ) {
        ToolResult result;
        result.text = whole_lines(outcome.merged) + ending(outcome, arguments.hard_limit());
        result.is_error = is_error(outcome);
        result.facts = facts_of(outcome);
        if (log && (outcome.omitted_bytes > 0 || !outcome.log_path.empty())) {
            publish(environment, *log, result);
        }
        return result;
    }

    static void publish(
        const Environment& environment, const Environment::OutputFile& log, ToolResult& result
    ) {
        if (auto published = environment.publish_output_file(log); !published) {
            result.text +=
                fmt::format("\n[the full output is not kept: {}]", published.error().message);
            return;
        }
        result.facts["log_path"] = log.guest_path;
    }

    ToolSpec spec_{
        "execute",
        "Runs shell text in the sandbox, in the working directory, and returns its output and exit "
        "code. Each call is a new shell. Nobody is there to answer questions: use non-interactive "
        "options. No network unless the policy says so. Long output is cut in the middle and kept "
        "in a file that the answer names. Processes left in the background stay until the "
        "conversation's sandbox is released.",
        fields().schema(),
        Effect::effect
    };
};

}  // namespace

std::unique_ptr<Tool> make_execute_tool() { return std::make_unique<ExecuteTool>(); }

}  // namespace ars::tools
