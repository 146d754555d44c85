// execute: a shell command in the sandbox scope of the execution tree. The only tool that starts
// processes.
#include "base/fields.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace ars::tools {

namespace {

namespace limits = base::limits;

struct Arguments {
    std::string command;
    std::int64_t timeout = std::chrono::seconds(limits::kCommandTimeout).count();
};

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
                 .max = std::chrono::seconds(limits::kCommandTimeoutMax).count(),
                 .doc = "Seconds after which the command and all it started are killed."}
            );
    return table;
}

// The scope shows the image that this process sees, so its shells are ours.
const char* shell() {
    static const bool has_bash = ::access("/bin/bash", X_OK) == 0;
    return has_bash ? "bash" : "sh";
}

std::string ending(const sandbox::Outcome& outcome, std::int64_t timeout) {
    using sandbox::OutcomeStatus;
    switch (outcome.status) {
        case OutcomeStatus::exited:
            return fmt::format("[exit code {}]", outcome.exit_code);
        case OutcomeStatus::signalled:
            return fmt::format(
                "[killed by signal {}, exit code {}]", outcome.signal, outcome.shell_code()
            );
        case OutcomeStatus::timed_out:
            return fmt::format("[timed out after {} s; its processes were killed]", timeout);
        case OutcomeStatus::cancelled:
            return "[cancelled; its processes were killed]";
        case OutcomeStatus::oom:
            return fmt::format("[killed: out of memory: {}]", outcome.memory_text());
        case OutcomeStatus::violation:
            return fmt::format("[stopped by the sandbox: {}]", outcome.detail);
        case OutcomeStatus::setup_failed:
            break;
    }
    return fmt::format("[could not be started: {}]", outcome.detail);
}

std::string background(const sandbox::Outcome& outcome) {
    if (outcome.background.empty()) {
        return {};
    }
    std::string out = fmt::format(
        "[{} background process{} left running:",
        outcome.background.size(),
        outcome.background.size() == 1 ? "" : "es"
    );
    for (const sandbox::BackgroundProcess& process : outcome.background) {
        out += fmt::format(" {} ({})", process.pid, base::utf8_head(process.command, 120));
        out += &process == &outcome.background.back() ? "]\n" : ",";
    }
    return out;
}

boost::json::object facts_of(const sandbox::Outcome& outcome) {
    boost::json::object facts{
        {"status", sandbox::to_string(outcome.status)}, {"duration_ms", outcome.duration.count()}
    };
    if (outcome.status == sandbox::OutcomeStatus::exited) {
        facts["exit_code"] = outcome.exit_code;
    }
    if (outcome.status == sandbox::OutcomeStatus::signalled) {
        facts["signal"] = outcome.signal;
    }
    if (!outcome.background.empty()) {
        facts["background"] = outcome.background.size();
    }
    return facts;
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
        if (auto refused = refuse(decoded.command)) {
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
        const sandbox::Outcome outcome = co_await (*scope)->run(std::move(command));
        ToolResult result;
        if (replaced) {
            result.text = "[the sandbox was made anew: /tmp and background processes were reset]\n";
        }
        result.text += text_of(outcome, decoded.timeout);
        result.is_error = outcome.status != sandbox::OutcomeStatus::exited;
        result.facts = facts_of(outcome);
        if (log && (outcome.omitted_bytes > 0 || !outcome.log_path.empty())) {
            publish(environment, *log, result);
        }
        co_return result;
    }

  private:
    static std::optional<ToolResult> refuse(const std::string& command) {
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
        command.timeout = std::chrono::seconds(arguments.timeout);
        // Room for the lines that we add, so that the answer is never cut twice.
        command.capture_bytes = limits::kToolResultBytes - 16 * limits::kKiB;
        return command;
    }

    static std::string text_of(const sandbox::Outcome& outcome, std::int64_t timeout) {
        std::string text = outcome.merged;
        if (!text.empty() && !text.ends_with('\n')) {
            text += '\n';
        }
        return text + background(outcome) + ending(outcome, timeout);
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
        "code. No "
        "terminal and no input: use non-interactive options. No network unless the policy says so. "
        "Long output is "
        "cut in the middle and kept in a file that the answer names. Processes left in the "
        "background stay until "
        "the conversation's sandbox is released.",
        fields().schema(),
        Effect::effect
    };
};

}  // namespace

std::unique_ptr<Tool> make_execute_tool() { return std::make_unique<ExecuteTool>(); }

}  // namespace ars::tools
