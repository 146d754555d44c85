#include "sandbox/failure_hint.hpp"

#include "fsmount/layout.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace ars::sandbox {

namespace {

constexpr std::size_t kShownPathBytes = 200;

bool says(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [text](std::string_view word) {
        return text.find(word) != std::string_view::npos;
    });
}

bool failed(const Outcome& outcome) {
    switch (outcome.status) {
        case OutcomeStatus::exited:
            return outcome.exit_code != 0;
        case OutcomeStatus::signalled:
        case OutcomeStatus::violation:
        case OutcomeStatus::timed_out:  // bash tries a fork again and again
        case OutcomeStatus::setup_failed:
            return true;
        case OutcomeStatus::cancelled:
        case OutcomeStatus::oom:
            break;
    }
    return false;
}

// EAGAIN of fork and clone, as shells and runtimes put it. Reading from a pipe has the same errno.
bool ran_out_of_processes(std::string_view said) {
    const bool again =
        says(said, {"Resource temporarily unavailable", "EAGAIN", "errno=11", "os error 11"});
    return (again && says(said, {"fork", "thread", "Thread", "spawn", "clone"})) ||
           says(said, {"unable to create native thread", "Cannot fork"});
}

bool ends_path(char c) {
    return static_cast<unsigned char>(c) >= 0x80 || c <= ' ' ||
           says({&c, 1}, {"'", "\"", "`", ":", ",", ";", ")", "]"});
}

// The last absolute path of a line: before it stands, if any, the program's own.
std::string_view path_in(std::string_view line) {
    std::string_view found;
    for (std::size_t at = 0; at < line.size(); ++at) {
        if (line[at] != '/' ||
            (at != 0 && !ends_path(line[at - 1]) && line[at - 1] != '(' && line[at - 1] != '[')) {
            continue;
        }
        std::size_t end = at;
        while (end < line.size() && !ends_path(line[end])) {
            ++end;
        }
        found = line.substr(at, end - at);
        at = end;
    }
    return found.substr(0, kShownPathBytes);
}

bool below(std::string_view path, std::string_view directory) {
    return !directory.empty() && path.starts_with(directory) &&
           (path.size() == directory.size() || path[directory.size()] == '/');
}

// Where a refusal is not the sandbox's doing but that of a file's mode.
bool is_open(std::string_view path, const ScopeFacts& facts) {
    if (below(path, fsmount::kUserData) || below(path, "/dev") || below(path, "/proc")) {
        return true;
    }
    if (facts.tier == Tier::landlock) {
        return below(path, facts.private_tmp);
    }
    return below(path, "/tmp") || (below(path, "/home/gem") && !below(path, fsmount::kSkills));
}

// A path that the command was refused, or the errno when it named none; empty when it was neither.
std::string refused_path(std::string_view said, const ScopeFacts& facts) {
    while (!said.empty()) {
        const std::string_view line = said.substr(0, said.find('\n'));
        said.remove_prefix(std::min(line.size() + 1, said.size()));
        const bool read_only = says(line, {"ead-only file system", "EROFS"});
        if (!read_only && !says(line, {"ermission denied", "EACCES"})) {
            continue;
        }
        const std::string_view path = path_in(line);
        if (path.empty() ? read_only : !is_open(path, facts)) {
            return path.empty() ? "read-only file system" : std::string(path);
        }
    }
    return {};
}

}  // namespace

std::string failure_hint(const Outcome& outcome, const ScopeFacts& facts) {
    if (!failed(outcome)) {
        return {};
    }
    std::string hint;
    const auto add = [&hint](const std::string& text) {
        hint += (hint.empty() ? "" : "; ") + text;
    };
    const std::string& said = outcome.err.empty() ? outcome.out : outcome.err;
    const bool unstarted = outcome.status == OutcomeStatus::setup_failed;
    if (ran_out_of_processes(unstarted ? outcome.detail : said)) {
        add("the sandbox's process limit of " + std::to_string(facts.processes) + " is " +
            (unstarted ? "" : "probably ") +
            "reached: end background processes, or raise "
            "sandbox.policies." +
            facts.policy + ".processes");
    }
    if (const std::string path = refused_path(said, facts); !unstarted && !path.empty()) {
        add(path +
            ": outside of /home/gem/user-data and $TMPDIR this sandbox is read-only or closed");
    }
    if (!outcome.denied_hosts.empty()) {
        std::string hosts;
        for (const std::string& host : outcome.denied_hosts) {
            hosts += (hosts.empty() ? "" : ", ") + host;
        }
        add(hosts + " refused by sandbox.policies." + facts.policy + ".allowed_hosts");
    }
    return hint;
}

}  // namespace ars::sandbox
