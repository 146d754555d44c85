// `ars tool NAME JSON`: one built-in tool in a real environment, as an agent would call it. For
// people who write agents and want to see what a tool answers.
#include "base/digest.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/offload.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/environment.hpp"
#include "runtime/tools/result_cap.hpp"
#include "sandbox/privileges.hpp"
#include "sandbox/scope.hpp"
#include "server/options.hpp"
#include "server/tier_choice.hpp"
#include "server/tool_settings.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json/stream_parser.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

namespace ars::server {

namespace {

namespace json = boost::json;
namespace asio = boost::asio;

constexpr int kExitFailed = 1;
constexpr std::size_t kOffloadThreads = 2;
constexpr std::size_t kStdinBytes = 128 * base::limits::kMiB;

int complain(int exit_code, const std::string& text) {
    fmt::print(stderr, "ars tool: {}\n", text);
    return exit_code;
}

std::unique_ptr<tools::Tool> find_tool(const std::string& name, std::string& known) {
    std::unique_ptr<tools::Tool> found;
    for (auto& tool : tools::make_file_tools()) {
        known += (known.empty() ? "" : ", ") + tool->spec().name;
        if (tool->spec().name == name) {
            found = std::move(tool);
        }
    }
    return found;
}

base::Result<json::object> parse_arguments(const std::string& text) {
    json::stream_parser parser;
    boost::system::error_code error;
    const std::size_t good = parser.write_some(text, error);
    if (!error && good == text.size()) {
        parser.finish(error);
    }
    const auto bad = [&](const std::string& why) {
        return base::fail(base::ErrorKind::invalid, "bad_arguments", why);
    };
    if (error || !parser.done()) {
        return bad(fmt::format(
            "the arguments are not JSON: {} at byte {}, before \"{}\"",
            error ? error.message() : "incomplete text",
            good,
            text.substr(std::min(good, text.size()), 40)
        ));
    }
    const std::size_t rest = text.find_first_not_of(" \t\r\n", good);
    if (rest != std::string::npos) {
        return bad(fmt::format("the arguments go on after their JSON at byte {}", rest));
    }
    json::value value = parser.release();
    if (!value.is_object()) {
        return bad(R"(the arguments must be a JSON object, such as {"path": "."})");
    }
    return std::move(value.as_object());
}

// One call from start to end: what it needs outlives it in run_tool().
base::Task<void> call_tool(
    tools::Tool& tool,
    tools::Environment& environment,
    sandbox::Sandbox& sandbox,
    json::object arguments,
    tools::ToolResult& result
) {
    tools::ToolContext context;
    context.uid = "local";
    context.call_id = "tool-" + base::random_uuid();
    context.environment = &environment;
    std::exception_ptr failure;
    try {
        result = co_await tool.call(context, std::move(arguments));
        result = co_await tools::cap_result(std::move(result), environment, context.call_id);
    } catch (const boost::system::system_error&) {
        result = tools::tool_error("cancelled");
    } catch (...) {
        failure = std::current_exception();
    }
    co_await base::shield_from_cancellation();
    co_await sandbox.close();
    if (failure) {
        std::rethrow_exception(failure);
    }
}

base::Result<tools::ToolResult> run_tool(
    tools::Tool& tool,
    json::object arguments,
    sandbox::Tier tier,
    const std::shared_ptr<fsmount::Workspace>& workspace,
    const ToolSettings& settings
) {
    asio::io_context io(1);
    const base::Log log(STDERR_FILENO, base::LogLevel::warning);
    base::Offload offload(kOffloadThreads);
    sandbox::SandboxOptions options = settings.sandbox;
    options.expected_tier = tier;
    auto sandbox = sandbox::make_sandbox(io.get_executor(), options, log);
    if (!sandbox) {
        return std::unexpected(sandbox.error());
    }
    const auto spec = [&workspace, &settings, tier] {
        fsmount::MountPlanner planner(settings.plan);
        return make_scope_spec(settings.policy, tier, *workspace, planner);
    };
    tools::Environment environment(
        workspace,
        "",
        **sandbox,
        {"local", "tool", settings.policy.name},
        spec,
        offload,
        [&settings] { return settings.environment; }
    );
    tools::ToolResult result;
    std::exception_ptr failure;
    asio::cancellation_signal cancel;
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&cancel](const boost::system::error_code& error, int) {
        if (!error) {
            cancel.emit(asio::cancellation_type::terminal);
        }
    });
    asio::co_spawn(
        io,
        call_tool(tool, environment, **sandbox, std::move(arguments), result),
        asio::bind_cancellation_slot(
            cancel.slot(),
            [&signals, &failure](std::exception_ptr error) {
                failure = error;
                signals.cancel();
            }
        )
    );
    io.run();
    if (failure) {
        std::rethrow_exception(failure);
    }
    return result;
}

}  // namespace

int command_tool(const ToolOptions& options) {
    std::string known;
    const auto tool = find_tool(options.name, known);
    if (tool == nullptr) {
        return complain(
            kExitUsage,
            fmt::format("there is no tool \"{}\"; the tools are: {}", options.name, known)
        );
    }
    auto text = base::Result<std::string>(options.arguments);
    if (options.arguments == "-") {  // an argument of a program ends at 128 KiB
        text = base::read_to_end(STDIN_FILENO, kStdinBytes);
    }
    auto arguments = text ? parse_arguments(*text) : std::unexpected(text.error());
    if (!arguments) {
        return complain(kExitUsage, arguments.error().message);
    }
    ToolSettings settings;
    if (const int code =
            load_tool_settings("ars tool", options.config, options.policy, options.io, settings);
        code != 0) {
        return code;
    }
    const sandbox::Tier tier = choose_tier(options.tier);
    const auto opened = open_workspace(tier, options.workspace, options.allow_root_owner);
    if (!opened) {
        return complain(kExitUsage, opened.error().message);
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        return complain(kExitFailed, dropped.error().message);
    }
    const auto result = run_tool(*tool, std::move(*arguments), tier, opened->workspace, settings);
    if (!result) {
        return complain(kExitFailed, result.error().message);
    }
    std::fwrite(result->text.data(), 1, result->text.size(), stdout);
    if (!result->text.ends_with('\n')) {
        std::fputc('\n', stdout);
    }
    return result->is_error ? kExitFailed : 0;
}

}  // namespace ars::server
