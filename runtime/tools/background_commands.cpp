// execute_output, execute_input and execute_kill: what becomes of the commands that `execute` left
// running.
#include "base/fields.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/command_report.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace ars::tools {

namespace {

namespace limits = base::limits;
using ProcessPtr = std::shared_ptr<sandbox::Process>;

constexpr auto kInputWait = std::chrono::seconds(10);
constexpr std::size_t kPageBytes = limits::kToolResultBytes - 16 * limits::kKiB;

struct OutputArguments {
    std::optional<std::string> id;
    std::uint64_t offset = 0;
    std::int64_t wait = 0;
};
struct InputArguments {
    std::string id;
    std::string text;
    bool close = false;
};
struct KillArguments {
    std::string id;
};

constexpr std::string_view kIdDoc = "As execute named it.";

const base::Fields<OutputArguments>& output_fields() {
    static const auto table =
        base::Fields<OutputArguments>{}
            .text(
                "id", &OutputArguments::id, {.doc = "Of the command; without it, all are listed."}
            )
            .integer(
                "offset",
                &OutputArguments::offset,
                {.doc = "Byte to read on from: the next offset of the last answer."}
            )
            .integer(
                "wait",
                &OutputArguments::wait,
                {.min = 0,
                 .max = std::chrono::seconds(limits::kCommandTimeoutMax).count(),
                 .doc = "Seconds to wait for its end before answering."}
            );
    return table;
}

const base::Fields<InputArguments>& input_fields() {
    static const auto table =
        base::Fields<InputArguments>{}
            .text("id", &InputArguments::id, {.required = true, .doc = kIdDoc})
            .text(
                "text",
                &InputArguments::text,
                {.max = std::int64_t{limits::kInputBytes},
                 .doc = "Written as it is: end a line with a line feed."}
            )
            .boolean("close", &InputArguments::close, {.doc = "Ends its input after the text."});
    return table;
}

const base::Fields<KillArguments>& kill_fields() {
    static const auto table = base::Fields<KillArguments>{}.text(
        "id", &KillArguments::id, {.required = true, .doc = kIdDoc}
    );
    return table;
}

std::string state_of(const sandbox::Process& process) {
    return process.running() ? "running" : sandbox::to_string(process.outcome().status);
}

std::uint64_t total_of(const sandbox::Process& process) {
    return process.read(std::numeric_limits<std::uint64_t>::max(), 0).total;
}

base::Task<ToolResult> list(std::shared_ptr<sandbox::Scope> scope) {
    ToolResult result;
    for (const ProcessPtr& process : scope->processes()) {
        result.text += fmt::format(
            "{}: {}, {} s, {} bytes of output: {}\n",
            command_id(*scope, *process),
            state_of(*process),
            std::chrono::duration_cast<std::chrono::seconds>(process->outcome().duration).count(),
            total_of(*process),
            base::utf8_head(process->command(), 120)
        );
    }
    const auto left = co_await scope->background();
    for (const sandbox::BackgroundProcess& process : left) {
        result.text += fmt::format(
            "left running by a command that is over: pid {} ({})\n",
            process.pid,
            base::utf8_head(process.command, 120)
        );
    }
    if (result.text.empty()) {
        result.text = "Nothing runs in the background.";
    }
    result.facts = {{"commands", scope->processes().size()}, {"background", left.size()}};
    co_return result;
}

ToolResult page_of(
    const sandbox::Scope& scope, const sandbox::Process& process, std::uint64_t offset
) {
    const sandbox::OutputPage page = process.read(offset, kPageBytes);
    ToolResult result;
    if (page.dropped > 0) {
        result.text = fmt::format("[{} bytes before this are no longer kept]\n", page.dropped);
    }
    result.text += whole_lines(base::to_utf8(page.bytes).text);
    const bool more = page.next_offset < page.total;
    if (process.running()) {
        result.text += going_on(command_id(scope, process), page.next_offset);
        result.facts = {{"status", "running"}};
    } else if (more) {
        result.text += fmt::format("[it is over; read on from offset {}]", page.next_offset);
        result.facts = facts_of(process.outcome());
    } else {
        result.text += ending(process.outcome(), 0);
        result.facts = facts_of(process.outcome());
    }
    result.facts["id"] = command_id(scope, process);
    result.facts["next_offset"] = page.next_offset;
    return result;
}

class OutputTool final : public Tool {
  public:
    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, boost::json::object arguments)
        override {
        OutputArguments decoded;
        if (const auto faults = output_fields().decode(arguments, decoded); !faults.empty()) {
            co_return error_result(base::faults_error("invalid_argument", faults));
        }
        const auto scope = co_await context.environment->scope();
        if (!scope) {
            co_return error_result(scope.error());
        }
        if (!decoded.id) {
            co_return co_await list(*scope);
        }
        const auto process = find_command(**scope, *decoded.id);
        if (!process) {
            co_return error_result(process.error());
        }
        const auto limit = base::Deadline::after(std::chrono::seconds(decoded.wait));
        co_await (*process)->wait(limit.earlier(context.deadline));
        co_return page_of(**scope, **process, decoded.offset);
    }

  private:
    ToolSpec spec_{
        "execute_output",
        "Reads what a command that goes on in the background has written since an offset, and says "
        "how it ended when it is over. Without an id: lists the commands and background processes.",
        output_fields().schema(),
        Effect::read_only
    };
};

class InputTool final : public Tool {
  public:
    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, boost::json::object arguments)
        override {
        InputArguments decoded;
        if (const auto faults = input_fields().decode(arguments, decoded); !faults.empty()) {
            co_return error_result(base::faults_error("invalid_argument", faults));
        }
        const auto scope = co_await context.environment->scope();
        if (!scope) {
            co_return error_result(scope.error());
        }
        const auto process = find_command(**scope, decoded.id);
        if (!process) {
            co_return error_result(process.error());
        }
        const std::size_t bytes = decoded.text.size();
        const auto limit = base::Deadline::after(kInputWait).earlier(context.deadline);
        if (auto written = co_await (*process)->write(std::move(decoded.text), limit); !written) {
            co_return error_result(written.error());
        }
        if (decoded.close) {
            (*process)->close_input();
        }
        ToolResult result;
        result.text = fmt::format(
            "{} bytes written{}.", bytes, decoded.close ? ", and its input is closed" : ""
        );
        co_return result;
    }

  private:
    ToolSpec spec_{
        "execute_input",
        "Writes text to the standard input of a command that goes on in the background; it must "
        "have been started with stdin_open or in a terminal.",
        input_fields().schema(),
        Effect::effect
    };
};

class KillTool final : public Tool {
  public:
    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, boost::json::object arguments)
        override {
        KillArguments decoded;
        if (const auto faults = kill_fields().decode(arguments, decoded); !faults.empty()) {
            co_return error_result(base::faults_error("invalid_argument", faults));
        }
        const auto scope = co_await context.environment->scope();
        if (!scope) {
            co_return error_result(scope.error());
        }
        const auto process = find_command(**scope, decoded.id);
        if (!process) {
            co_return error_result(process.error());
        }
        co_await (*process)->kill();
        ToolResult result;
        result.text = "Nothing of it is running any more.\n" + ending((*process)->outcome(), 0);
        result.facts = facts_of((*process)->outcome());
        co_return result;
    }

  private:
    ToolSpec spec_{
        "execute_kill",
        "Ends a command that goes on in the background, and all it started; returns when nothing "
        "of it is alive. Also for one that is over but left processes running.",
        kill_fields().schema(),
        Effect::idempotent
    };
};

}  // namespace

std::unique_ptr<Tool> make_execute_output_tool() { return std::make_unique<OutputTool>(); }
std::unique_ptr<Tool> make_execute_input_tool() { return std::make_unique<InputTool>(); }
std::unique_ptr<Tool> make_execute_kill_tool() { return std::make_unique<KillTool>(); }

}  // namespace ars::tools
