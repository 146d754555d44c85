#include "server/exec_batch.hpp"

#include "base/units.hpp"
#include "fsmount/layout.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace ars::server {

namespace {

constexpr int kStopPollMs = 100;

std::unexpected<base::Error> bad_line(const std::string& what) {
    return base::fail(
        base::ErrorKind::invalid,
        "bad_batch_line",
        what +
            "; a line is {\"command\": \"sh text\" | [argv], \"timeout\": \"2s\", \"stdin\": "
            "\"...\"}"
    );
}

std::vector<std::string> shell_argv(std::string text) {
    const bool bash = ::access("/bin/bash", X_OK) == 0;
    return {bash ? "/bin/bash" : "/bin/sh", "-c", std::move(text)};
}

base::Result<std::vector<std::string>> parse_command(const boost::json::value& value) {
    if (value.is_string()) {
        return shell_argv(std::string(value.get_string()));
    }
    if (!value.is_array() || value.get_array().empty()) {
        return bad_line("\"command\" must be text or a list of texts");
    }
    std::vector<std::string> argv;
    for (const boost::json::value& argument : value.get_array()) {
        if (!argument.is_string()) {
            return bad_line("\"command\" must be text or a list of texts");
        }
        argv.emplace_back(argument.get_string());
    }
    return argv;
}

bool has_nul(const std::vector<std::string>& argv) {
    for (const std::string& argument : argv) {
        if (argument.find('\0') != std::string::npos) {
            return true;
        }
    }
    return false;
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

base::Result<sandbox::Command> parse_batch_line(
    std::string_view line,
    base::milliseconds timeout,
    const std::map<std::string, std::string>& environment
) {
    boost::system::error_code error;
    const boost::json::value parsed = boost::json::parse(line, error);
    if (error || !parsed.is_object()) {
        return bad_line("not a JSON object");
    }
    sandbox::Command command = exec_command({}, timeout, environment);
    for (const auto& [key, value] : parsed.get_object()) {
        if (key == "command") {
            auto argv = parse_command(value);
            if (!argv) {
                return std::unexpected(argv.error());
            }
            command.argv = std::move(*argv);
        } else if (key == "timeout") {
            if (!value.is_string()) {
                return bad_line("\"timeout\" must be text like \"2s\"");
            }
            auto limit = base::parse_duration(std::string_view(value.get_string()));
            if (!limit || limit->count() <= 0 || *limit > base::limits::kCommandTimeoutMax) {
                return bad_line("\"timeout\" must be between 1ms and 1h");
            }
            command.timeout = *limit;
        } else if (key == "stdin") {
            if (!value.is_string() || value.get_string().size() > base::limits::kStdinBytes) {
                return bad_line("\"stdin\" must be text of at most 16 MiB");
            }
            command.stdin_data = std::string(value.get_string());
        } else {
            return bad_line("unknown key \"" + std::string(key) + "\"");
        }
    }
    if (command.argv.empty()) {
        return bad_line("\"command\" is missing");
    }
    if (has_nul(command.argv)) {
        return bad_line("\"command\" holds a NUL character");
    }
    return command;
}

LineReader::Line LineReader::next() {
    bool skipping = false;
    for (;;) {
        if (const std::size_t at = pending_.find('\n'); at != std::string::npos) {
            Line line{pending_.substr(0, at), false, skipping};
            pending_.erase(0, at + 1);
            return line;
        }
        if (end_) {
            Line line{std::move(pending_), false, skipping};
            pending_.clear();
            line.end = line.text.empty() && !skipping;
            return line;
        }
        if (pending_.size() > kBatchLineBytes) {
            pending_.clear();
            skipping = true;
        }
        read_more();
    }
}

void LineReader::read_more() {
    pollfd readable{fd_, POLLIN, 0};
    if (stopped_) {
        pending_.clear();
        end_ = true;
        return;
    }
    if (::poll(&readable, 1, kStopPollMs) == 0) {
        return;
    }
    char buffer[65536];
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n > 0) {
        pending_.append(buffer, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
        end_ = true;
    }
}

}  // namespace ars::server
