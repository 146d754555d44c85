#include "server/exec_batch.hpp"

#include "base/fields.hpp"
#include "fsmount/layout.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

#include <unistd.h>

namespace ars::server {

namespace {

namespace json = boost::json;
namespace limits = base::limits;
using base::Fields;

constexpr std::int64_t kHour =
    std::chrono::milliseconds(limits::kCommandTimeoutMax).count();  // the longest of all times

std::unexpected<base::Error> bad_line(const std::string& what) {
    return base::fail(base::ErrorKind::invalid, "bad_batch_line", what);
}

std::string no_nul(std::string_view text) {
    return text.find('\0') == std::string_view::npos ? "" : "holds a NUL character";
}

struct LimitKeys {
    std::optional<base::milliseconds> cpu;
    std::optional<std::uint64_t> file_size;
    std::optional<std::uint64_t> open_files;
    std::optional<std::uint64_t> processes;
};

const Fields<LimitKeys>& limit_fields() {
    static const auto table = Fields<LimitKeys>{}
                                  .duration("cpu", &LimitKeys::cpu, {.min = 1000, .max = kHour})
                                  .size("file_size", &LimitKeys::file_size, {.min = 1})
                                  .integer("open_files", &LimitKeys::open_files, {.min = 4})
                                  .integer("processes", &LimitKeys::processes, {.min = 1});
    return table;
}

const Fields<sandbox::TerminalSize>& terminal_fields() {
    static const auto table = Fields<sandbox::TerminalSize>{}
                                  .integer("rows", &sandbox::TerminalSize::rows, {.min = 1})
                                  .integer("columns", &sandbox::TerminalSize::columns, {.min = 1});
    return table;
}

struct RunKeys {
    json::value command;
    base::milliseconds timeout{0};
    std::optional<base::milliseconds> wait;
    std::optional<std::string> stdin_data;
    bool stdin_open = false;
    std::optional<sandbox::TerminalSize> terminal;
    json::object env;
    bool raw = false;
    LimitKeys limits;
};

const Fields<RunKeys>& run_fields() {
    static const auto table =
        Fields<RunKeys>{}
            .any("command", &RunKeys::command, {.required = true})
            .duration("timeout", &RunKeys::timeout, {.min = 1, .max = kHour})
            .duration("wait", &RunKeys::wait, {.min = 0, .max = kHour})
            .text("stdin", &RunKeys::stdin_data, {.max = std::int64_t{limits::kStdinBytes}})
            .boolean("stdin_open", &RunKeys::stdin_open)
            .object("terminal", &RunKeys::terminal, terminal_fields())
            .raw("env", &RunKeys::env)
            .boolean("raw", &RunKeys::raw)
            .object("limits", &RunKeys::limits, limit_fields());
    return table;
}

std::vector<std::string> shell_argv(std::string text) {
    const bool bash = ::access("/bin/bash", X_OK) == 0;
    return {bash ? "/bin/bash" : "/bin/sh", "-c", std::move(text)};
}

base::Result<std::vector<std::string>> argv_of(const json::value& value) {
    std::vector<std::string> argv;
    if (value.is_string()) {
        argv = shell_argv(std::string(value.get_string()));
    } else if (value.is_array() &&
               std::ranges::all_of(value.get_array(), &json::value::is_string)) {
        for (const json::value& argument : value.get_array()) {
            argv.emplace_back(argument.get_string());
        }
    }
    if (argv.empty()) {
        return bad_line("\"command\" must be text or a list of texts");
    }
    for (const std::string& argument : argv) {
        if (const std::string wrong = no_nul(argument); !wrong.empty()) {
            return bad_line("\"command\" " + wrong);
        }
    }
    return argv;
}

base::Result<void> add_environment(const json::object& env, sandbox::Command& command) {
    for (const auto& [name, value] : env) {
        const bool named = !name.empty() && name.find('=') == std::string_view::npos;
        if (!named || !no_nul(name).empty() || !value.is_string() ||
            !no_nul(value.get_string()).empty()) {
            return bad_line("\"env\" must be names without \"=\" and texts without NUL");
        }
        command.environment[std::string(name)] = std::string(value.get_string());
    }
    return {};
}

sandbox::ResourceLimits limits_of(const LimitKeys& keys) {
    sandbox::ResourceLimits out;
    if (keys.cpu) {
        out.cpu_seconds = static_cast<std::uint64_t>((keys.cpu->count() + 999) / 1000);
    }
    out.file_size = keys.file_size.value_or(0);
    out.open_files = keys.open_files.value_or(0);
    out.processes = keys.processes.value_or(0);
    return out;
}

template <class T>
base::Result<T> decode(const Fields<T>& fields, const json::object& line, T out) {
    if (const auto faults = fields.decode(line, out); !faults.empty()) {
        return std::unexpected(base::faults_error("bad_batch_line", faults));
    }
    return out;
}

base::Result<BatchLine> parse_run(
    const json::object& line,
    base::milliseconds timeout,
    const std::map<std::string, std::string>& environment
) {
    RunKeys defaults;
    defaults.timeout = timeout;
    auto keys = decode(run_fields(), line, std::move(defaults));
    if (!keys) {
        return std::unexpected(keys.error());
    }
    auto argv = argv_of(keys->command);
    if (!argv) {
        return std::unexpected(argv.error());
    }
    BatchRun run;
    run.wait = keys->wait;
    run.command = exec_command(std::move(*argv), keys->timeout, environment);
    run.command.stdin_data = std::move(keys->stdin_data);
    run.command.stdin_open = keys->stdin_open;
    run.command.terminal = keys->terminal;
    run.command.raw = keys->raw;
    run.command.limits = limits_of(keys->limits);
    if (auto added = add_environment(keys->env, run.command); !added) {
        return std::unexpected(added.error());
    }
    return run;
}

template <class T>
base::Result<BatchLine> parse_as(const Fields<T>& fields, const json::object& line) {
    auto out = decode(fields, line, T{});
    if (!out) {
        return std::unexpected(out.error());
    }
    return BatchLine(std::move(*out));
}

struct ResizeKeys {
    std::string id;
    std::uint16_t rows = 0;
    std::uint16_t columns = 0;
};

base::Result<BatchLine> parse_resize(const json::object& line) {
    static const auto table =
        Fields<ResizeKeys>{}
            .text("resize", &ResizeKeys::id, {.required = true})
            .integer("rows", &ResizeKeys::rows, {.required = true, .min = 1})
            .integer("columns", &ResizeKeys::columns, {.required = true, .min = 1});
    auto keys = decode(table, line, ResizeKeys{});
    if (!keys) {
        return std::unexpected(keys.error());
    }
    return BatchResize{std::move(keys->id), {keys->rows, keys->columns}};
}

}  // namespace

sandbox::Command exec_command(
    std::vector<std::string> argv,
    base::milliseconds timeout,
    std::map<std::string, std::string> environment
) {
    sandbox::Command command;
    command.argv = std::move(argv);
    command.environment = std::move(environment);
    command.cwd = std::string(fsmount::kUserData);
    command.timeout = timeout;
    return command;
}

base::Result<BatchLine> parse_batch_line(
    std::string_view line,
    base::milliseconds timeout,
    const std::map<std::string, std::string>& environment
) {
    static const auto poll = Fields<BatchPoll>{}
                                 .text("poll", &BatchPoll::id, {.required = true})
                                 .integer("offset", &BatchPoll::offset)
                                 .duration("wait", &BatchPoll::wait, {.min = 0, .max = kHour});
    static const auto input =
        Fields<BatchInput>{}
            .text("input", &BatchInput::id, {.required = true})
            .text("data", &BatchInput::data, {.max = std::int64_t{limits::kInputBytes}})
            .boolean("close", &BatchInput::close);
    static const auto kill = Fields<BatchKill>{}.text("kill", &BatchKill::id, {.required = true});
    static const auto list =
        Fields<BatchList>{}.boolean("list", &BatchList::list, {.required = true});
    boost::system::error_code error;
    const json::value parsed = json::parse(line, error);
    if (error || !parsed.is_object()) {
        return bad_line("not a JSON object");
    }
    const json::object& object = parsed.get_object();
    if (object.contains("poll")) {
        return parse_as(poll, object);
    }
    if (object.contains("input")) {
        return parse_as(input, object);
    }
    if (object.contains("resize")) {
        return parse_resize(object);
    }
    if (object.contains("kill")) {
        return parse_as(kill, object);
    }
    if (object.contains("list")) {
        return parse_as(list, object);
    }
    return parse_run(object, timeout, environment);
}

}  // namespace ars::server
